"""Amaranth's simulator: what it writes besides the trace."""

from pathlib import Path

import pywellen

from cosim.engines.base import Run, RunOptions, Waves
from cosim.stimulus.run_spec import RunSpec
from tests.cosim.drivers.echo import PARAMETERS
from tests.cosim.engines.echo_engines import on, random_spec
from wire.stimulus import Post


def test_amaranth_writes_vcd_waves(tmp_path: Path) -> None:
    waves = tmp_path / "run.vcd"
    spec = RunSpec(PARAMETERS, [], [Post.of_words(5, 0, 0, (7, 8, 9, 10, 11))], 50)
    with Run(on("amaranth"), spec, RunOptions(tmp_path, Waves(waves))) as records:
        list(records)
    assert [path.name for path in tmp_path.iterdir()] == ["run.vcd"]
    names = [variable.full_name for variable in pywellen.Waveform(str(waves)).all_vars()]
    assert len(names) > 10
    assert [name for name in names if "$" in name] == []


def test_run_that_is_left_keeps_its_waves_up_to_there(tmp_path: Path) -> None:
    waves = tmp_path / "run.vcd"
    with Run(on("amaranth"), random_spec(1), RunOptions(tmp_path, Waves(waves))) as records:
        left = next(iter(records)).cycle
    assert f"#{4_000_000 * left}\n" in waves.read_text()
    assert list(tmp_path.iterdir()) == [waves]


def test_waves_of_some_cycles_have_no_others_and_begin_with_all_values(tmp_path: Path) -> None:
    whole, part, cycles = tmp_path / "whole.vcd", tmp_path / "part.vcd", range(100, 121)
    for waves in (Waves(whole), Waves(part, cycles)):
        with Run(on("amaranth"), random_spec(1, 500), RunOptions(tmp_path, waves)) as records:
            assert max(record.cycle for record in records) > 200
    all_steps, steps = (steps_of(file) for file in (whole, part))
    first, stop = (4_000_000 * cycle - 2_000_000 for cycle in (cycles.start, cycles.stop))
    assert steps == {time: values for time, values in all_steps.items() if first <= time < stop}
    assert first == min(steps)
    assert len(steps) == 2 * len(cycles)  # the clock's edges


def steps_of(file: Path) -> dict[int, list[object]]:
    """The values of all signals by time."""
    found, times = pywellen.Waveform(str(file)), list[int]()
    found.stream_time_steps(lambda time, *_: times.append(time), None)
    return {time: [variable.signal.value_at(time) for variable in found.all_vars()] for time in times}
