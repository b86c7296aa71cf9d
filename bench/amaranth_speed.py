"""Cycles per second in Amaranth's own simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cosim.engines import simulation
from cosim.experiments.experiment import Experiment
from cosim.simulators.cocotb_results import SimulationFailed

__all__ = ["amaranth_ready"]


@contextmanager
def amaranth_ready(
    experiment: Experiment, begin: int, work_dir: Path, clock: Callable[[], float] = time.perf_counter
) -> Iterator[Callable[[float], float]]:
    """Elaborate an experiment, compile it and run it to its first record in cycle BEGIN or after.

    Yields:
        A function that goes on for so many seconds, or to the end of the run, and returns the cycles per second.

    Raises:
        SimulationFailed: there is no such record.
    """
    with simulation.run("amaranth", experiment.spec(), work_dir / "amaranth") as run:
        records = iter(run)
        first = next((record for record in records if record.cycle >= begin), None)
        if first is None:
            raise SimulationFailed(f"Amaranth's simulator came to the end before cycle {begin}")

        def rate(seconds: float) -> float:
            started = clock()
            for record in records:
                taken = clock() - started
                if taken > seconds:
                    return (record.cycle - first.cycle) / taken
            return (experiment.cycles - first.cycle) / (clock() - started)

        yield rate
