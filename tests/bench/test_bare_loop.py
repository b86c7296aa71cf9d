"""The bare C++ loop."""

from pathlib import Path

import pytest

from bench.bare_loop import BareLoop
from cosim.engines import simulation
from cosim.experiments.experiment import scenario_experiment
from cosim.scenario.uniform_load import uniform_load
from cosim.trace.trace_file import read_trace


@pytest.mark.slow
def test_bare_loop_does_what_cocotb_does(tmp_path: Path) -> None:
    experiment = scenario_experiment(uniform_load(2, cycles=3_000))
    bare = BareLoop.prepared(experiment.spec(), tmp_path / "bare")
    assert bare.run() > 0
    with simulation.run("verilator", experiment.spec(), tmp_path / "cocotb") as run:
        assert list(read_trace(bare.trace)) == list(run)
