"""Amaranth's simulator: what it writes besides the trace."""

from pathlib import Path

import pywellen

from cosim.engines.base import Run, RunOptions
from cosim.stimulus.run_spec import RunSpec
from tests.cosim.drivers.echo import PARAMETERS
from tests.cosim.engines.echo_engines import on, random_spec
from wire.stimulus import Post


def test_amaranth_writes_vcd_waves(tmp_path: Path) -> None:
    waves = tmp_path / "run.vcd"
    spec = RunSpec(PARAMETERS, [], [Post.of_words(5, 0, 0, (7, 8, 9, 10, 11))], 50)
    with Run(on("amaranth"), spec, RunOptions(tmp_path, waves)) as records:
        list(records)
    assert [path.name for path in tmp_path.iterdir()] == ["run.vcd"]
    names = [variable.full_name for variable in pywellen.Waveform(str(waves)).all_vars()]
    assert len(names) > 10
    assert [name for name in names if "$" in name] == []


def test_run_that_is_left_keeps_its_waves_up_to_there(tmp_path: Path) -> None:
    waves = tmp_path / "run.vcd"
    with Run(on("amaranth"), random_spec(1), RunOptions(tmp_path, waves)) as records:
        left = next(iter(records)).cycle
    assert f"#{4_000_000 * left}\n" in waves.read_text()
    assert list(tmp_path.iterdir()) == [waves]
