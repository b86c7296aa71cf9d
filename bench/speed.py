"""Cycles per second of each engine, on one saturated load."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from bench.bare_loop import BareLoop
from bench.figures import Measured, Reading
from bench.settings import Settings
from cosim.analysis.observer import Observer
from cosim.engines import simulation
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.perform import perform
from cosim.scenario.uniform_load import uniform_load
from cosim.trace.compare import Difference, Names
from wire.packet import blocks_of_words
from wire.stimulus import Delivery
from wire.trace import RECORD, Kind, Record
from wire.trace_layout import RxData

__all__ = ["SPEED_FIGURES", "speed", "speed_load"]

SPEED_FIGURES = (
    "cosim_cycles_per_s",
    "bare_cycles_per_s",
    "cosim_ratio",
    "compare_ratio",
    "model_cycles_per_s",
    "model_block_hops_per_s",
    "model_over_amaranth",
)
"""The last one needs the speed of Amaranth's simulator, too."""

_BARE = {"bare_cycles_per_s", "cosim_ratio"}
_COMPARED = {"compare_ratio"}
_COSIM = {"cosim_cycles_per_s"} | _BARE | _COMPARED
_MODEL = {"model_cycles_per_s", "model_over_amaranth", "model_block_hops_per_s"}
_SIZE = 2048

Rates = dict[str, list[float]]


def speed_load(settings: Settings, cycles: int) -> Experiment:
    """The load of all runs whose speed is measured."""
    return scenario_experiment(uniform_load(settings.ports, cycles=cycles, size=_SIZE, seed=settings.seed))


def speed(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """Those of `SPEED_FIGURES` that are asked for.

    All runs have the same load. Those that a ratio compares take turns, so that a machine that gets slower or
    faster meanwhile does so for both; a ratio is the median of those of neighbouring runs.
    """
    wanted = set(asked)
    experiment, for_model = (speed_load(settings, cycles) for cycles in (settings.speed_cycles, settings.model_cycles))
    seconds: Rates = {}
    faults: list[str] = []
    bare = BareLoop.prepared(experiment.spec(), work_dir / "bare") if wanted & _BARE else None
    for turn in range(settings.repetitions):
        compared = bool(wanted & _COMPARED) and turn < settings.compared_repetitions
        if wanted & _COSIM:
            faults += _one_turn(experiment, bare, compared, work_dir, seconds)
    if wanted & _MODEL:
        for _repetition in range(settings.short_repetitions):
            started = time.perf_counter()
            _run(for_model, "model", work_dir)
            _add(seconds, "model", started)
    found: dict[str, Reading] = {}

    def rate(name: str, of: str, amount: float) -> None:
        if of in seconds:
            found[name] = Reading.of(amount / one for one in seconds[of])

    def ratio(name: str, fast: str, slow: str) -> None:
        if fast in seconds and slow in seconds:
            found[name] = Reading.of(few / many for few, many in zip(seconds[fast], seconds[slow], strict=False))

    rate("cosim_cycles_per_s", "cosim", experiment.cycles)
    rate("bare_cycles_per_s", "bare", experiment.cycles)
    rate("model_cycles_per_s", "model", for_model.cycles)
    ratio("cosim_ratio", "bare", "cosim")
    ratio("compare_ratio", "cosim", "compared")
    if "model_block_hops_per_s" in wanted:
        rate("model_block_hops_per_s", "model", _block_hops(for_model, work_dir))
    return Measured(found, faults)


def _one_turn(
    experiment: Experiment, bare: BareLoop | None, compared: bool, work_dir: Path, seconds: Rates
) -> Iterator[str]:
    """The RTL once in each mode, the wall times added to `seconds`; yields what was wrong."""
    if bare is not None:
        seconds.setdefault("bare", []).append(bare.run())
    started = time.perf_counter()
    records = _run(experiment, "verilator", work_dir, on_delivery=lambda delivery: None)
    _add(seconds, "cosim", started)
    if bare is not None and records * RECORD.size != bare.trace.stat().st_size:
        yield "the bare loop's trace is not as long as that of the run under cocotb"
    if compared:
        started = time.perf_counter()
        difference = _compared(experiment, work_dir)
        _add(seconds, "compared", started)
        if difference is not None:
            place = Names(experiment.topology.fabric).place(difference.source)
            yield f"RTL and model differ in cycle {difference.cycle}, {place}"


def _add(seconds: Rates, name: str, started: float) -> None:
    """Note the wall time since `started`."""
    seconds.setdefault(name, []).append(time.perf_counter() - started)


def _run(
    experiment: Experiment, engine: str, work_dir: Path, on_delivery: Callable[[Delivery], None] | None = None
) -> int:
    """Stimulus in, every record and, if wanted, every delivered packet out; how many records."""
    with simulation.run(engine, experiment.spec(), work_dir / engine, on_delivery=on_delivery) as run:
        return sum(1 for _record in run)


def _compared(experiment: Experiment, work_dir: Path) -> Difference | None:
    """The same with the golden model beside it, record by record."""
    comparison = perform(experiment, "verilator", work_dir, [_Receiver()])
    return comparison.difference if comparison else None


class _Receiver(Observer):
    """Has every packet delivered, and looks at none."""

    def deliver(self, delivery: Delivery) -> None:
        """Take it."""


def _block_hops(experiment: Experiment, work_dir: Path) -> int:
    """64-byte blocks of data packets times the links that they crossed."""

    def blocks(record: Record) -> int:
        return blocks_of_words(RxData.pkt_len.read(record)) if record.kind == Kind.RX_DATA else 0

    with simulation.run("model", experiment.spec(), work_dir / "model") as run:
        return sum(blocks(record) for record in run)
