"""A session: nothing is left behind, however a run ends."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

import pytest
import pywellen

from cosim.engines.base import Run, RunOptions, Waves
from cosim.engines.compiled_design import build_design
from cosim.harness.top import TOP, begin_ns
from cosim.simulators.cocotb_results import SimulationFailed
from cosim.stimulus.run_spec import RunSpec
from tests.cosim.drivers.echo import PARAMETERS
from tests.cosim.engines.echo_engines import SIMULATORS, design, on, random_spec
from tests.files import ROOT
from wire.stimulus import Post


@pytest.mark.parametrize("name", SIMULATORS)
def test_run_that_is_left_leaves_nothing(name: str, tmp_path: Path) -> None:
    with Run(on(name), random_spec(1, 10**6), RunOptions(tmp_path)) as records:
        next(iter(records))
    assert list(tmp_path.iterdir()) == []
    assert children(os.getpid()) == []


@pytest.mark.parametrize("name", SIMULATORS)
def test_run_that_is_left_keeps_its_waves_up_to_there(name: str, tmp_path: Path) -> None:
    waves = tmp_path / "waves.fst"
    with Run(on(name), random_spec(1, 10**6), RunOptions(tmp_path, Waves(waves))) as records:
        left = next(iter(records)).cycle
    assert cycles_in(waves) > left
    assert list(tmp_path.iterdir()) == [waves]
    assert children(os.getpid()) == []


def cycles_in(waves: Path) -> int:
    """The last cycle that waves show, of 4,000 ps each."""
    times: list[int] = []
    pywellen.Waveform(str(waves)).stream_time_steps(lambda time, *_: times.append(time), None)
    return times[-1] // 4000


@pytest.mark.parametrize("name", SIMULATORS)
def test_waves_of_some_cycles_have_no_others(name: str, tmp_path: Path) -> None:
    waves = tmp_path / "waves.fst"
    with Run(on(name), random_spec(1, 3_000), RunOptions(tmp_path, Waves(waves, range(1_500, 1_521)))) as records:
        assert max(record.cycle for record in records) > 2_000
    times: list[int] = []
    found = pywellen.Waveform(str(waves))
    found.stream_time_steps(lambda time, *_: times.append(time), None)
    (cycle,) = (variable for variable in found.all_vars() if variable.full_name == f"{TOP}.cycle")
    cycles = [cycle.signal.value_at(time) for time in times]
    assert cycles[0] == 1_500
    assert [value for value in dict.fromkeys(cycles) if isinstance(value, int)] == [*range(1_500, 1_521)]
    assert times[0] == begin_ns(1_500) * 1_000
    # Icarus says in the end that it is the end.
    assert times[-1] <= begin_ns(1_521) * 1_000


@pytest.mark.parametrize("name", SIMULATORS)
def test_waves_of_cycles_that_never_come_are_no_file(name: str, tmp_path: Path) -> None:
    waves = tmp_path / "waves.fst"
    waves.write_text("those of another run")
    with Run(on(name), random_spec(1, 100), RunOptions(tmp_path, Waves(waves, range(10_000, 10_001)))) as records:
        deque(records, maxlen=0)
    assert list(tmp_path.iterdir()) == []


def children(parent: int) -> list[Path]:
    """Processes of this parent, as folders of /proc."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may end while we look
            # The name, in parentheses, may hold anything; behind it come the state and the parent.
            if int((process / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(process)
    return found


@pytest.mark.parametrize("name", SIMULATORS)
def test_interrupt_ends_the_simulator_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    build_design(name, design())
    program = f"""
import itertools
from pathlib import Path
from cosim.engines.base import Run, RunOptions, Waves
from cosim.stimulus.run_spec import RunSpec
from tests.cosim.drivers.echo import PARAMETERS
from tests.cosim.engines.echo_engines import on
from wire.stimulus import Post
posts = (Post.of_words(100 * number, 0, 0, (1, 2, 3, 4, 5)) for number in itertools.count())
with Run(on({name!r}), RunSpec(PARAMETERS, [], posts, 10**12), RunOptions(Path({str(tmp_path / "work")!r}))) as records:
    for number, record in enumerate(records):
        if number == 0:
            print("running", flush=True)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            running = children(process.pid)
            process.send_signal(signal.SIGINT)
            process.wait(60)
        finally:
            process.kill()
    deadline = time.monotonic() + 60
    assert running
    while any(path.exists() for path in running):
        assert time.monotonic() < deadline, "the simulator outlived its run"
        time.sleep(0.05)
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.slow
def test_files_of_a_run_take_no_more_disk_the_longer_it_is(tmp_path: Path) -> None:
    packets = 4_000
    words = tuple(range(500))  # 8 MB in all
    posts = (Post.of_words(510 * number, 0, 0, words) for number in range(packets))
    most = 0
    with Run(on("verilator"), RunSpec(PARAMETERS, [], posts, 510 * packets), RunOptions(tmp_path)) as records:
        for number, _record in enumerate(records):
            if number % 1000 == 0:
                files = (tmp_path / ".simulation").iterdir()
                most = max(most, sum(file.stat().st_blocks * 512 for file in files))
    assert 0 < most < 4_000_000


@pytest.mark.parametrize("name", SIMULATORS)
def test_simulator_that_dies_is_reported_with_its_log(name: str, tmp_path: Path) -> None:
    with Run(on(name), random_spec(1, 10**6), RunOptions(tmp_path)) as run_to_die:
        records = iter(run_to_die)
        next(records)
        (simulator,) = children(os.getpid())
        os.kill(int(simulator.name), signal.SIGKILL)
        with pytest.raises(SimulationFailed, match="the simulator ended early"):
            deque(records, maxlen=0)
    assert [path.name for path in tmp_path.iterdir()] == ["sim.log"]


@pytest.mark.parametrize("name", SIMULATORS)
def test_waves_show_the_fabric_by_name(name: str, tmp_path: Path) -> None:
    waves = tmp_path / "run.fst"
    spec = RunSpec(PARAMETERS, [], [Post.of_words(5, 0, 0, (7, 8, 9, 10, 11))], 50)
    with Run(on(name), spec, RunOptions(tmp_path / "work", Waves(waves))) as records:
        assert len(list(records)) == 2
    variables = {variable.full_name for variable in pywellen.Waveform(str(waves)).all_vars()}
    assert {"ironband_top.cycle", "ironband_top.fabric.trace_valid", "ironband_top.recv_1_data"} <= variables
    assert [variable for variable in variables if "$" in variable] == []
    if name == "verilator":
        assert [variable for variable in variables if variable.rpartition(".")[2].startswith("_")] == []
