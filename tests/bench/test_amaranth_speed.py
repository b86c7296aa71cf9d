"""Speed in Amaranth's own simulator."""

from dataclasses import replace
from itertools import chain, count, repeat
from pathlib import Path

import pytest

from bench.amaranth_speed import amaranth_ready
from cosim.engines import simulation
from cosim.experiments.experiment import scenario_experiment
from cosim.scenario.scenario_file import parse_scenario
from cosim.simulators.cocotb_results import SimulationFailed

TWO_HOSTS = """
title = "Two hosts"
cycles = 1
hosts = { A = { mtu = 256 }, B = { mtu = 256 } }
links = [{ ends = ["A", "B"] }]
flows = [{ from = "A", to = "B", size = 16, count = 9 }, { from = "B", to = "A", size = 16, count = 9 }]
"""
EXPERIMENT = replace(scenario_experiment(parse_scenario(TWO_HOSTS, "two_hosts.toml")), cycles=5)


def test_a_short_run_is_timed_to_its_end(tmp_path: Path) -> None:
    with simulation.run("model", EXPERIMENT.spec(), tmp_path / "model") as records:
        first = next(record.cycle for record in records)
    with amaranth_ready(EXPERIMENT, 0, tmp_path, chain([0], repeat(2)).__next__) as rate:
        assert rate(1e9) == (EXPERIMENT.cycles - first) / 2


@pytest.fixture
def on_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The golden model in place of Amaranth's simulator: what is timed is the same trace."""
    run = simulation.run
    monkeypatch.setattr(simulation, "run", lambda _engine, spec, work_dir: run("model", spec, work_dir))


@pytest.mark.usefixtures("on_the_model")
def test_a_long_run_is_timed_as_long_as_asked(tmp_path: Path) -> None:
    with amaranth_ready(replace(EXPERIMENT, cycles=500), 0, tmp_path, count(0, 10).__next__) as rate:
        assert rate(15) * 20 < 500


@pytest.mark.usefixtures("on_the_model")
def test_a_run_that_never_comes_to_the_traffic_is_told(tmp_path: Path) -> None:
    with pytest.raises(SimulationFailed, match="before cycle 6"), amaranth_ready(EXPERIMENT, 6, tmp_path):
        pass
