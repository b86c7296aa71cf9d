"""The simulator's process: one that does not end is reported."""

import os
from pathlib import Path

import pytest

from cosim.engines.simulator_process import SimulatorProcess
from cosim.simulators.cocotb_results import SimulationFailed
from toolchain.process import running


def test_simulator_that_does_not_end_is_reported(tmp_path: Path) -> None:
    (tmp_path / "sim.log").write_text("still busy\n")
    ends = [end for pipe in (os.pipe(), os.pipe()) for end in pipe]
    with running(["sleep", "60"], cwd=tmp_path, env=os.environ, log=tmp_path / "sim.log") as process:
        simulator = SimulatorProcess(process, ends[1], ends[2], tmp_path, exit_seconds=0.1)
        with pytest.raises(SimulationFailed, match=r"did not end within 0\.1 s\nstill busy"):
            simulator.finish()
        simulator.close()
    for end in (ends[0], ends[3]):
        os.close(end)
    assert process.poll() is not None
