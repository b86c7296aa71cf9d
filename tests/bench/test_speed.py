"""Cycles per second of each engine."""

from pathlib import Path

import pytest

from bench.settings import Settings
from bench.speed import speed
from cosim.experiments.experiment import scenario_experiment
from tests.cosim.loads import jam_under_load


def test_the_golden_model_alone_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "model_cycles", 3_000)
    readings = speed(Settings(ports=2, quick=True), ["model_block_hops_per_s"], tmp_path).readings
    assert set(readings) == {"model_cycles_per_s", "model_block_hops_per_s"}
    cycles, hops = readings["model_cycles_per_s"], readings["model_block_hops_per_s"]
    # Both are of the same runs: what is counted in each, over the same times.
    a_cycle = hops.value / cycles.value
    assert a_cycle == pytest.approx(hops.least / cycles.least) == pytest.approx(hops.most / cycles.most)


@pytest.mark.slow
def test_the_rtl_is_timed_each_way_and_does_the_same_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a fabric that other tests build, too.
    load = scenario_experiment(jam_under_load(3_000, size=(0, 256), rate=1.0))
    monkeypatch.setattr("bench.speed.speed_load", lambda settings, cycles: load)
    asked = ["cosim_cycles_per_s", "bare_cycles_per_s", "cosim_ratio", "compare_ratio"]
    measured = speed(Settings(ports=2, quick=True), asked, tmp_path)
    assert set(measured.readings) == set(asked)
    assert measured.faults == []
    assert all(reading.least > 0 for reading in measured.readings.values())
