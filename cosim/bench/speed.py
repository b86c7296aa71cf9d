"""Cycles per second of each engine, on one saturated load."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from cosim import simulation
from cosim.bench.bare_loop import BareLoop
from cosim.bench.figures import Reading
from cosim.bench.settings import Settings
from cosim.compare import Difference, Names
from cosim.engines.run import SimulationFailed
from cosim.experiment import Experiment, perform, scenario_experiment
from cosim.load import uniform_load
from cosim.simulation import Delivery
from wire.packet import blocks_of_words
from wire.trace import RECORD, Kind, Record

__all__ = ["SPEED_FIGURES", "Speeds", "speed"]

SPEED_FIGURES = (
    "cosim_cycles_per_s",
    "bare_cycles_per_s",
    "cosim_ratio",
    "compare_ratio",
    "model_cycles_per_s",
    "amaranth_cycles_per_s",
    "model_over_amaranth",
    "model_block_hops_per_s",
)

_BARE = {"bare_cycles_per_s", "cosim_ratio"}
_COMPARED = {"compare_ratio"}
_COSIM = {"cosim_cycles_per_s"} | _BARE | _COMPARED
_MODEL = {"model_cycles_per_s", "model_over_amaranth", "model_block_hops_per_s"}
_AMARANTH = {"amaranth_cycles_per_s", "model_over_amaranth"}
_SIZE = 2048

Rates = dict[str, list[float]]


@dataclass
class Speeds:
    """What was found.

    Attributes:
        readings: by figure.
        faults: where two runs of the same load did not do the same, in words.
    """

    readings: dict[str, Reading] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def speed(
    settings: Settings, asked: Collection[str], work_dir: Path, *, progress: Callable[[str, int, int], None]
) -> Speeds:
    """Those of `SPEED_FIGURES` that are asked for.

    All runs have the same load. Those that a ratio compares take turns, so that a machine that gets slower or
    faster meanwhile does so for both; a ratio is the median of those of neighbouring runs.
    """
    wanted = set(asked)
    experiment = _load(settings)
    seconds: Rates = {}
    faults: list[str] = []
    repetitions = settings.repetitions
    if wanted & (_COSIM | _MODEL):
        bare = BareLoop.prepared(experiment.spec(), work_dir / "bare") if wanted & _BARE else None
        for turn in range(repetitions):
            progress("speed", turn, repetitions)
            faults += _one_turn(experiment, bare, wanted, work_dir, seconds)
    found: dict[str, Reading] = {}

    def rate(name: str, of: str, amount: float = experiment.cycles) -> None:
        if of in seconds:
            found[name] = _reading(amount / one for one in seconds[of])

    def ratio(name: str, fast: str, slow: str) -> None:
        if fast in seconds and slow in seconds:
            found[name] = _reading(few / many for few, many in zip(seconds[fast], seconds[slow], strict=True))

    rate("cosim_cycles_per_s", "cosim")
    rate("bare_cycles_per_s", "bare")
    rate("model_cycles_per_s", "model")
    ratio("cosim_ratio", "bare", "cosim")
    ratio("compare_ratio", "cosim", "compared")
    if "model_block_hops_per_s" in wanted:
        rate("model_block_hops_per_s", "model", _block_hops(experiment, work_dir))
    if wanted & _AMARANTH:
        progress("amaranth", 0, 1)
        found["amaranth_cycles_per_s"] = Reading.once(_amaranth_rate(experiment, settings, work_dir))
    if "model_over_amaranth" in wanted:
        model, other = found["model_cycles_per_s"], found["amaranth_cycles_per_s"].value
        found["model_over_amaranth"] = Reading(model.value / other, model.least / other, model.most / other)
    return Speeds({name: reading for name, reading in found.items() if name in wanted}, faults)


def _load(settings: Settings) -> Experiment:
    return scenario_experiment(
        uniform_load(settings.ports, cycles=settings.speed_cycles, size=_SIZE, seed=settings.seed)
    )


def _reading(values: Iterable[float]) -> Reading:
    known = list(values)
    return Reading(median(known), min(known), max(known))


def _one_turn(
    experiment: Experiment, bare: BareLoop | None, wanted: set[str], work_dir: Path, seconds: Rates
) -> Iterator[str]:
    """Each run once, adding its wall time to `seconds`; yields what was wrong."""

    def add(name: str, taken: float) -> None:
        seconds.setdefault(name, []).append(taken)

    if bare is not None:
        add("bare", bare.run())
    if wanted & _COSIM:
        started = time.perf_counter()
        records = _run(experiment, "verilator", work_dir, on_delivery=lambda delivery: None)
        add("cosim", time.perf_counter() - started)
        if bare is not None and records * RECORD.size != bare.trace.stat().st_size:
            yield "the bare loop's trace is not as long as that of the run under cocotb"
    if wanted & _COMPARED:
        started = time.perf_counter()
        difference = _compared(experiment, work_dir)
        add("compared", time.perf_counter() - started)
        if difference is not None:
            place = Names(experiment.topology.fabric).place(difference.source)
            yield f"RTL and model differ in cycle {difference.cycle}, {place}"
    if wanted & _MODEL:
        started = time.perf_counter()
        _run(experiment, "model", work_dir)
        add("model", time.perf_counter() - started)


def _run(
    experiment: Experiment, engine: str, work_dir: Path, on_delivery: Callable[[Delivery], None] | None = None
) -> int:
    """Stimulus in, every record and, if wanted, every delivered packet out; how many records."""
    with simulation.run(engine, experiment.spec(), work_dir / engine, on_delivery=on_delivery) as run:
        return sum(1 for _record in run)


def _compared(experiment: Experiment, work_dir: Path) -> Difference | None:
    """The same with the golden model beside it, record by record."""
    comparison = perform(
        experiment, "verilator", work_dir, observe=lambda record: None, on_delivery=lambda delivery: None
    )
    return comparison.difference if comparison else None


def _block_hops(experiment: Experiment, work_dir: Path) -> int:
    """64-byte blocks of data packets times the links that they crossed."""

    def blocks(record: Record) -> int:
        return blocks_of_words(record.b & 0xFFFF) if record.kind == Kind.RX_DATA else 0

    with simulation.run("model", experiment.spec(), work_dir / "model") as run:
        return sum(blocks(record) for record in run)


def _amaranth_rate(experiment: Experiment, settings: Settings, work_dir: Path) -> float:
    """Cycles per second under traffic; with `quick`, of bring-up, which is faster.

    Elaboration and compilation, up to the first record, are not counted.
    """
    begin = 0 if settings.quick else experiment.start
    clock: tuple[float, int] | None = None
    with simulation.run("amaranth", experiment.spec(), work_dir / "amaranth") as run:
        for record in run:
            now = time.perf_counter()
            if clock is None:
                clock = (now, record.cycle) if record.cycle >= begin else None
            elif now - clock[0] > settings.amaranth_seconds:
                return (record.cycle - clock[1]) / (now - clock[0])
    raise SimulationFailed(f"Amaranth's simulator came to the end within {settings.amaranth_seconds:g} s")
