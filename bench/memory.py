"""Peak memory of a long run, and whether it grows with the run's length."""

from __future__ import annotations

import resource
from collections.abc import Collection
from functools import partial
from pathlib import Path

from bench.figures import Measured, Reading
from bench.settings import Settings
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.engines.base import MODEL
from cosim.engines.simulation import build
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.perform import perform
from cosim.scenario.uniform_load import uniform_load
from toolchain.parallel import in_parallel

__all__ = ["memory"]

_SIZE = 2048
_RATE = 0.9
"""Below what the switch can carry: what it can't waits in the hosts, and a list that grows is no leak."""

_ENGINE = "verilator"
_LONGER = 4
_KB_PER_MB = 1000 / 1.024


def memory(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """`peak_rss_mb` of a run and `peak_rss_growth` in one 4 times as long.

    A run has all that can be switched on: RTL under cocotb, golden model, comparison, check of every delivery. Each
    is in processes of its own; their peaks are added. What is built, is built before, for a compiler takes more.

    Raises:
        SimulationFailed: a run failed.
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """
    for engine in (_ENGINE, MODEL):
        build(engine, _experiment(settings, settings.memory_cycles).topology.fabric)
    lengths = [settings.memory_cycles * times for times in (1, _LONGER)]
    with in_parallel([partial(_peak_mb, settings, cycles, work_dir / f"{cycles}") for cycles in lengths]) as peaks:
        short, long = peaks()
    return Measured({"peak_rss_mb": Reading.once(short), "peak_rss_growth": Reading.once(long / short)})


def _experiment(settings: Settings, cycles: int) -> Experiment:
    load = uniform_load(settings.ports, cycles=cycles, size=_SIZE, rate=_RATE, seed=settings.seed)
    return scenario_experiment(load)


def _peak_mb(settings: Settings, cycles: int, work_dir: Path) -> float:
    """In a process of its own: a run; the peaks of this process and of the simulator in MB, added."""
    experiment = _experiment(settings, cycles)
    perform(experiment, _ENGINE, work_dir, [DeliveryCheck(experiment.topology)])
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(resource.getrusage(one).ru_maxrss for one in who) / _KB_PER_MB
