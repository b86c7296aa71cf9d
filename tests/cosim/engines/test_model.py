"""The golden model as an engine: what it does not do, and what it leaves out."""

from collections.abc import Collection
from pathlib import Path

import pytest

from cosim.engines.base import RunOptions, Waves, WavesUnsupported
from cosim.engines.model import simulate
from cosim.engines.simulation import run
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from tests.cosim.engines.echo_engines import random_spec
from wire.stimulus import Delivery
from wire.trace import Kind, Record


def test_model_has_no_waves(tmp_path: Path) -> None:
    with (
        pytest.raises(WavesUnsupported, match="the model has no wires to record"),
        run("model", random_spec(1), tmp_path, waves=Waves(tmp_path / "w.fst")) as records,
    ):
        list(records)


def test_records_that_nobody_reads_are_left_out_and_what_is_delivered_is_the_same(tmp_path: Path) -> None:
    def trace(kinds: Collection[int] | None) -> tuple[list[Record], list[Delivery]]:
        spec, delivered = check_experiment(CheckOptions(ports=4, cycles=8_000, sim="model")).spec(), list[Delivery]()
        with run("model", spec, tmp_path, on_delivery=delivered.append, kinds=kinds) as records:
            return list(records), delivered

    (whole, all_delivered), (part, delivered) = trace(None), trace({Kind.STATE})
    assert len(part) < len(whole) / 2
    assert [one for one in part if one.kind == Kind.STATE] == [one for one in whole if one.kind == Kind.STATE] != []
    assert delivered == all_delivered != []


def test_it_is_told_how_far_a_run_is_however_few_of_its_records_are_read(tmp_path: Path) -> None:
    spec, told = check_experiment(CheckOptions(ports=4, cycles=20_000, sim="model")).spec(), list[int]()
    assert list(simulate(spec, RunOptions(tmp_path, kinds=set(), progress=told.append))) == []
    assert told == sorted(told)
    assert told[-1] == 20_000
    assert len(told) > 2
