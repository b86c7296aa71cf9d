"""The bare C++ loop."""

from contextlib import closing
from pathlib import Path

import pytest

from bench.bare_loop import BareLoop
from cosim.engines import simulation
from cosim.experiments.experiment import scenario_experiment
from cosim.harness.stream_files import TraceReader
from cosim.scenario.uniform_load import uniform_load


@pytest.mark.slow
def test_bare_loop_does_what_cocotb_does(tmp_path: Path) -> None:
    experiment = scenario_experiment(uniform_load(2, cycles=3_000))
    bare = BareLoop.prepared(experiment.spec(), tmp_path / "bare")
    assert bare.run() > 0
    with (
        simulation.run("verilator", experiment.spec(), tmp_path / "cocotb") as run,
        closing(TraceReader(bare.trace)) as trace,
    ):
        assert list(trace.new()) == list(run)
