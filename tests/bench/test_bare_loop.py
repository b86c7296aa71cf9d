"""The bare C++ loop."""

from contextlib import closing
from pathlib import Path

import pytest

from bench.bare_loop import BareLoop
from cosim.engines import simulation
from cosim.experiments.experiment import scenario_experiment
from cosim.harness.stream_files import TraceReader
from tests.cosim.loads import jam_under_load
from wire.trace import Kind


@pytest.mark.slow
def test_bare_loop_does_what_cocotb_does(tmp_path: Path) -> None:
    experiment = scenario_experiment(jam_under_load(3_000, size=(0, 256), rate=1.0))
    bare = BareLoop.prepared(experiment.spec(), tmp_path / "bare")
    assert bare.run() > 0
    with (
        simulation.run("verilator", experiment.spec(), tmp_path / "cocotb") as run,
        closing(TraceReader(bare.trace)) as trace,
    ):
        records = list(trace.new())
        assert records == list(run)
    assert sum(record.kind == Kind.DELIVER for record in records) > 10
