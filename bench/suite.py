"""The measurements of the performance table: which there are, which are needed, and what they gave."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.amaranth_speed import amaranth_ready
from bench.builds import builds
from bench.figures import FIGURES, Figure, Reading
from bench.latency import latency
from bench.management import MANAGEMENT_FIGURES, management
from bench.memory import memory
from bench.settings import Settings
from bench.speed import AMARANTH_FIGURES, SPEED_FIGURES, speed, speed_load
from bench.subnets import SUBNET_FIGURES, subnets
from bench.throughput import LOST, THROUGHPUT_FIGURES, throughput
from bench.wide import WIDE_FIGURES, wide
from toolchain.parallel import in_parallel

__all__ = ["NOT_JUDGED_QUICK", "NOT_QUICK", "Benchmark", "Progress", "benchmark"]

Progress = Callable[[str, int, int], None]
"""Is told what is being measured, how much of it is done, and how much there is."""

_LATENCY_FIGURES = ("latency_cycles",)
_MEMORY_FIGURES = ("peak_rss_mb", "peak_rss_growth")

NOT_QUICK = (*WIDE_FIGURES, *SUBNET_FIGURES)
"""Figures that --quick leaves out: a build alone may take longer than a minute."""

NOT_JUDGED_QUICK = ("throughput_voq_2048",)
"""Figures that --quick measures too shortly to say whether they reach their target."""


@dataclass
class Benchmark:
    """What was measured.

    Attributes:
        settings: with what.
        readings: by figure.
        faults: what was wrong with deliveries, and where engines differ, in words.
    """

    settings: Settings
    readings: dict[str, Reading] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def figure_held(self, figure: Figure) -> bool | None:
        """Whether a figure reaches its target; None if it has none, or was not measured or not long enough."""
        if self.settings.quick and figure.name in NOT_JUDGED_QUICK:
            return None
        target, reading = figure.target, self.readings.get(figure.name)
        if target is None or reading is None or not target.applies(self.settings.ports):
            return None
        return target.held(reading.value)

    @property
    def missed(self) -> list[str]:
        """Names of the figures that do not reach their targets."""
        return [name for name, figure in FIGURES.items() if self.figure_held(figure) is False]

    @property
    def held(self) -> bool:
        """Whether every figure reaches its target, and nothing was wrong."""
        return not self.missed and not self.faults


def benchmark(settings: Settings, asked: Collection[str], work_dir: Path, progress: Progress) -> Benchmark:
    """Measure the figures asked for, and no others.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """
    wanted = [name for name in asked if not (settings.quick and name in NOT_QUICK)]
    amaranth = None
    progress("building", 0, 1)
    with in_parallel(builds(settings, wanted)) as built:
        if set(AMARANTH_FIGURES) & set(wanted):
            load = replace(speed_load(settings, settings.speed_cycles), cycles=settings.amaranth_cycles)
            with amaranth_ready(load, 0 if settings.quick else load.start, work_dir) as rate:
                built()
                progress("amaranth", 0, 1)
                amaranth = rate(settings.amaranth_seconds)
        built()
    return _measured(settings, wanted, amaranth, work_dir, progress)


def _measured(
    settings: Settings, wanted: Collection[str], amaranth: float | None, work_dir: Path, progress: Progress
) -> Benchmark:
    """The measurements, one after the other, on what has been built. AMARANTH is the speed of its simulator."""
    result = Benchmark(settings)

    def needed(*figures: str) -> bool:
        return any(name in wanted for name in figures)

    if needed(*_LATENCY_FIGURES):
        progress("latency", 0, 1)
        result.readings |= latency(settings, work_dir)
    for name in THROUGHPUT_FIGURES:
        if needed(name, LOST):
            _add_throughput(result, name, work_dir, progress)
    if needed(*SPEED_FIGURES):
        speeds = speed(settings, wanted, work_dir, amaranth=amaranth, progress=progress)
        result.readings |= speeds.readings
        result.faults += speeds.faults
    if needed(*MANAGEMENT_FIGURES):
        progress("management", 0, 1)
        managed = management(settings, wanted, work_dir)
        result.readings |= managed.readings
        result.faults += managed.faults
    if needed(*_MEMORY_FIGURES):
        progress("memory", 0, 1)
        result.readings |= memory(settings, work_dir)
    if needed(*SUBNET_FIGURES):
        progress("subnets", 0, 1)
        large = subnets(wanted, work_dir)
        result.readings |= large.readings
        result.faults += large.faults
    if needed(*WIDE_FIGURES):
        progress("36 ports", 0, 1)
        result.readings |= wide(settings, wanted, work_dir)
    result.readings = {name: reading for name, reading in result.readings.items() if name in wanted}
    return result


def _add_throughput(result: Benchmark, name: str, work_dir: Path, progress: Progress) -> None:
    measured = throughput(result.settings, name, work_dir, progress=progress)
    result.readings[name] = measured.share
    before = result.readings.get(LOST, Reading.once(0)).value
    result.readings[LOST] = Reading.once(before + measured.lost)
    result.faults += [f"{name}: {fault}" for fault in measured.faults]
