"""The compiled model is the plain one, only faster."""

import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError

import pytest

import model.fabric
from cosim.engines import compiled_model
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from toolchain import build_cache
from wire.stimulus import Post
from wire.trace import Record

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    compiled_model.fabric_class.cache_clear()
    yield
    compiled_model.fabric_class.cache_clear()


@pytest.fixture(scope="module")
def compiled() -> type[model.fabric.Fabric]:
    assert compiled_model.build(), "mypyc is not installed"
    fabric = compiled_model.fabric_class()
    assert fabric is not model.fabric.Fabric
    return fabric


def trace(fabric: type[model.fabric.Fabric], options: CheckOptions) -> tuple[list[Record], list[tuple[object, ...]]]:
    spec = check_experiment(options).spec()
    delivered: list[tuple[object, ...]] = []

    def deliver(packet: model.fabric.Delivery) -> None:
        delivered.append(tuple(packet))

    return list(fabric(spec.parameters, spec.controls, spec.posts, deliver).run(spec.cycles)), delivered


@pytest.mark.parametrize("queueing", ["voq", "fifo"])
@pytest.mark.parametrize("seed", range(4))
def test_it_gives_the_same_trace(compiled, queueing, seed):
    options = CheckOptions(ports=4, vls=2, queueing=queueing, cycles=15_000, seed=seed, sim="model")
    assert trace(compiled, options) == trace(model.fabric.Fabric, options)


def test_it_says_what_is_wrong_with_stimulus_as_the_plain_one_does(compiled):
    spec = check_experiment(CheckOptions(sim="model")).spec()

    def posts() -> Iterator[Post]:
        yield Post.of_words(9, 1, 0, (1,) * 8)
        yield Post.of_words(8, 1, 0, (1,) * 8)

    with pytest.raises(ValueError, match="post in cycle 8: expected 9"):
        list(compiled(spec.parameters, (), posts()).run(100))


def test_sources_that_have_not_been_compiled_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.setenv("IRONBAND_SIM_BUILD", str(tmp_path))
    assert compiled_model.fabric_class() is model.fabric.Fabric
    assert not build_cache.build_root().joinpath("model").exists()


def test_without_mypyc_the_model_runs_as_it_stands(monkeypatch):
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    assert not compiled_model.build()
    assert compiled_model.fabric_class() is model.fabric.Fabric


def test_it_is_machine_code(compiled):
    file = sys.modules[compiled.__module__].__file__
    assert file is not None
    assert file.endswith(tuple(EXTENSION_SUFFIXES))
