"""The measurements of the performance table: which there are, which are needed, and what they gave."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.amaranth_speed import amaranth_ready
from bench.builds import builds
from bench.calibration import Calibration, Speed
from bench.captures import captures
from bench.figures import FIGURES, Figure, LoopKind, Measured, Reading, Target
from bench.latency import latency
from bench.management import MANAGEMENT_FIGURES, management
from bench.memory import memory
from bench.messages import DOOR, MESSAGE_FIGURES, door, messages
from bench.settings import NOT_QUICK, Settings
from bench.speed import SPEED_FIGURES, speed, speed_load
from bench.subnets import build_tree, routes, up
from bench.throughput import LOST, THROUGHPUT_FIGURES, throughput
from bench.wide import WIDE_FIGURES, wide
from toolchain.parallel import in_parallel

__all__ = ["NOT_JUDGED_QUICK", "Benchmark", "BenchmarkInterrupted", "Progress", "benchmark"]

Progress = Callable[[str, int, int], None]
"""Takes what is being measured or what has been found, how many steps are done, and how many there are."""

NOT_JUDGED_QUICK = ("throughput_voq_2048",)
"""Figures that --quick measures too shortly to say whether they reach their target."""

_AMARANTH_FIGURES = ("amaranth_cycles_per_s", "model_over_amaranth")
"""Those that need the speed of Amaranth's simulator."""


class _Step(NamedTuple):
    """A measurement: its name, the figures that it can give, and what makes those that are asked for."""

    name: str
    figures: tuple[str, ...]
    measure: Callable[[Settings, Collection[str], Path], Measured]


_COUNTED = (
    _Step("latency", ("latency_cycles",), latency),
    _Step("management", MANAGEMENT_FIGURES, management),
    _Step("memory", ("peak_rss_mb", "peak_rss_growth"), memory),
    *(_Step(name, (name, LOST), partial(throughput, name)) for name in THROUGHPUT_FIGURES),
)
"""What is the same however busy the machine is, so all run at the same time."""

_TIMED = (
    _Step("speed", SPEED_FIGURES, speed),
    _Step("routes", ("routes_648_s",), routes),
    _Step("bring-up of 216 hosts", ("up_216_s",), up),
    _Step("captures", ("capture_packets_per_s",), captures),
    _Step("messages", MESSAGE_FIGURES, messages),
    _Step("door", (DOOR,), door),
    _Step("build of a tree", ("build_tree_s",), build_tree),
    _Step("36 ports", WIDE_FIGURES, wide),
)
"""What has the machine for itself."""


@dataclass
class Benchmark(Measured):
    """What was measured on a switch and a machine.

    Attributes:
        settings: with what.
        speeds: of this machine, by kind of work.
    """

    settings: Settings = field(default_factory=Settings)
    speeds: Mapping[LoopKind, Speed] = field(default_factory=dict)

    def add(self, measured: Measured) -> None:
        """Take up what a step gave; the packets that several steps lost add up."""
        if LOST in self.readings and LOST in measured.readings:
            lost = self.readings[LOST].value + measured.readings[LOST].value
            measured.readings[LOST] = Reading.once(lost)
        self.readings |= measured.readings
        self.faults += measured.faults

    def target(self, figure: Figure) -> Target | None:
        """What a figure must reach here; None if it has no target for this switch."""
        if figure.target is None or not figure.target.applies(self.settings.ports):
            return None
        if figure.scaled_by is None:
            return figure.target
        if figure.scaled_by not in self.speeds:
            # It was interrupted before the machine was measured.
            return None
        return figure.target.scaled(self.speeds[figure.scaled_by].calibration.value)

    def figure_held(self, figure: Figure) -> bool | None:
        """Whether a figure reaches its target; None if it has none, or was not measured or not long enough."""
        if figure.name not in self.readings or (self.settings.quick and figure.name in NOT_JUDGED_QUICK):
            return None
        target = self.target(figure)
        return None if target is None else target.held(self.readings[figure.name].value)

    @property
    def missed(self) -> list[str]:
        """Names of the figures that do not reach their targets."""
        return [name for name, figure in FIGURES.items() if self.figure_held(figure) is False]

    @property
    def held(self) -> bool:
        """Whether every figure reaches its target, and nothing was wrong."""
        return not self.missed and not self.faults


class BenchmarkInterrupted(KeyboardInterrupt):
    """What was measured until then is `result`."""

    def __init__(self, result: Benchmark) -> None:
        super().__init__()
        self.result = result


def benchmark(
    settings: Settings, asked: Collection[str], work_dir: Path, progress: Progress, calibration: Calibration
) -> Benchmark:
    """Measure the figures asked for, and no others, and now and then the machine.

    Raises:
        BenchmarkInterrupted: it was interrupted.
        What the engines raise (cosim.engines.simulation.run).
    """
    wanted = [name for name in asked if not (settings.quick and name in NOT_QUICK)]
    counted, timed = ([step for step in steps if set(step.figures) & set(wanted)] for steps in (_COUNTED, _TIMED))
    with_amaranth = bool(set(_AMARANTH_FIGURES) & set(wanted))
    result, done = Benchmark(settings=settings), 0

    def finished() -> Benchmark:
        result.readings = {
            name: result.readings[name] for name in FIGURES if name in wanted and name in result.readings
        }
        result.speeds = calibration.speeds
        return result

    def report(text: str) -> None:
        progress(text, done, len(counted) + with_amaranth + len(timed))

    def take(measured: Measured) -> None:
        nonlocal done
        done += 1
        result.add(measured)
        for name in measured.readings:
            if name != LOST:
                report_found(name)

    def report_found(name: str) -> None:
        if name in wanted and name in result.readings:
            report(f"{name} {FIGURES[name].shown(result.readings[name].value)} {FIGURES[name].unit}".rstrip())

    try:
        report("builds")
        with in_parallel(builds(settings, wanted)) as built:
            built()
        calibration.measure()
        with ExitStack() as stack:
            if counted:
                report(f"at the same time: {', '.join(step.name for step in counted)}")
            calls = [partial(step.measure, settings, wanted, _folder(work_dir, step)) for step in counted]
            waiting = [stack.enter_context(in_parallel([call])) for call in calls]
            if with_amaranth:
                load = replace(speed_load(settings, settings.speed_cycles), cycles=settings.amaranth_cycles)
                rate = stack.enter_context(amaranth_ready(load, 0 if settings.quick else load.start, work_dir))
            for wait in waiting:
                take(*wait())
            report_found(LOST)
            if with_amaranth:
                report("Amaranth's simulator")
                take(Measured({"amaranth_cycles_per_s": Reading.once(rate(settings.amaranth_seconds))}))
        # What Amaranth's simulator leaves in memory would be searched for garbage in every timed run of this process.
        gc.collect()
        gc.freeze()
        for step in timed:
            calibration.measure()
            report(step.name)
            take(step.measure(settings, wanted, _folder(work_dir, step)))
        calibration.measure()
        if "model_over_amaranth" in wanted:
            amaranth = result.readings["amaranth_cycles_per_s"].value
            model = result.readings["model_cycles_per_s"]
            result.readings["model_over_amaranth"] = Reading(*(speed / amaranth for speed in astuple(model)))
    except KeyboardInterrupt:
        raise BenchmarkInterrupted(finished()) from None
    return finished()


def _folder(work_dir: Path, step: _Step) -> Path:
    """A folder of its own for a step's runs; make takes no path with a space in it."""
    folder = work_dir / step.name.replace(" ", "_")
    folder.mkdir()
    return folder
