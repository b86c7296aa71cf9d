"""Which engines there are, and what each takes and gives: a stimulus in, a stream of trace records out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from cosim.stimulus.run_spec import RunSpec
from toolchain.errors import UserError
from wire.framing import FramedPacket
from wire.stimulus import Delivery
from wire.trace import Record

__all__ = [
    "ENGINES",
    "MODEL",
    "NO_TAPS",
    "PART_ENGINES",
    "WAVES",
    "Engine",
    "EngineError",
    "Run",
    "RunOptions",
    "Taps",
    "UnknownEngine",
    "Waves",
    "WavesUnsupported",
    "check_waves",
    "waves_around",
]

PART_ENGINES: Final = ("verilator", "icarus")
"""Those that can simulate some nodes of a fabric and leave the others to the golden model."""

MODEL: Final = "model"
"""The golden model alone."""

ENGINES: Final = (*PART_ENGINES, "amaranth", MODEL)

WAVES: Final = {"verilator": ".fst", "icarus": ".fst", "amaranth": ".vcd"}
"""By engine how the names of its files end; others record none."""


class EngineError(UserError):
    """An engine cannot do what is asked; the text is one line for the user."""


class UnknownEngine(EngineError):
    """There is no engine of this name."""


class WavesUnsupported(EngineError):
    """The engine records no waves, or not into such a file."""


def check_waves(engine: str, waves: Path | None) -> None:
    """Raise WavesUnsupported unless an engine can record waves into a file, if there is one."""
    if waves is None:
        return
    if engine not in WAVES:
        raise WavesUnsupported(f"waves {waves}: the {engine} has no wires to record")
    if waves.suffix != WAVES[engine]:
        raise WavesUnsupported(f"waves {waves}: {engine} writes {WAVES[engine]} files")


_CYCLES_BEFORE: Final = 200
_CYCLES_BEHIND: Final = 20
"""Of a difference, those that are looked at."""


def waves_around(engine: str, cycle: int) -> str:
    """Options by which a command records waves about a difference; none if the engine records no waves."""
    if engine not in WAVES:
        return ""
    first, last = max(0, cycle - _CYCLES_BEFORE), cycle + _CYCLES_BEHIND
    return f" --waves difference{WAVES[engine]} --waves-cycles {first}:{last}"


@dataclass(frozen=True)
class Waves:
    """Waves that are recorded.

    Attributes:
        file: .fst on verilator and icarus, .vcd on amaranth; there is none if the run ends before its first cycle.
        cycles: those recorded, without gaps; all without it.
    """

    file: Path
    cycles: range | None = None


@dataclass(frozen=True)
class Taps:
    """Where links are looked at, and who looks.

    Attributes:
        directions: (link, direction) by their places in the fabric's parameters.
        take: called with the place of a direction among these and each packet that enters the link there, in order of
            (cycle, place), some time after it has ended.
        pause: called when it may be long until the next is taken.
    """

    directions: tuple[tuple[int, int], ...] = ()
    take: Callable[[int, FramedPacket], None] = lambda place, packet: None
    pause: Callable[[], None] = lambda: None


NO_TAPS: Final = Taps()


@dataclass(frozen=True)
class RunOptions:
    """What is asked of an engine besides the trace.

    Attributes:
        work_dir: made if absent, one run at a time; verilator and icarus leave sim.log there if the simulator failed.
        waves: record these.
        on_delivery: called with each delivered packet, in order of (cycle, node), before its DELIVER record is yielded.
        taps: where links are looked at.
        rows: have ROWS records, each of so many cycles, a power of two up to `wire.row_crc.PERIOD`; 0: none.
        kinds: of records that somebody reads, all without it; an engine may leave out the others.
        progress: called now and then with the cycles simulated so far.
        plusargs: what else a Verilog simulator is told, such as `+mutant=7`.
    """

    work_dir: Path
    waves: Waves | None = None
    on_delivery: Callable[[Delivery], None] | None = None
    taps: Taps = NO_TAPS
    rows: int = 0
    kinds: Collection[int] | None = None
    progress: Callable[[int], None] = lambda cycles: None
    plusargs: tuple[str, ...] = ()

    def deliver(self, deliveries: Iterable[Delivery]) -> None:
        """Call `on_delivery`, if there is one, with each of them."""
        if self.on_delivery is not None:
            for delivery in deliveries:
                self.on_delivery(delivery)


Engine = Callable[[RunSpec, RunOptions], Generator[Record, None, None]]
"""Runs a specification: the records, in the order of docs/pipeline.md, section 11.

The generator's end, or its closing, ends all that the engine started.
"""


class Run:
    """A run of an engine: iterate over its records inside a `with` block, whose end ends the run.

    Of its options, `progress` is the run's own.

    Attributes:
        cycles_done: cycles simulated so far.
    """

    def __init__(self, engine: Engine, spec: RunSpec, options: RunOptions) -> None:
        self.cycles_done = 0
        self._records = engine(spec, replace(options, progress=self._advance))

    def _advance(self, cycles: int) -> None:
        self.cycles_done = cycles

    def __iter__(self) -> Iterator[Record]:
        return self._records

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """End the run. One that was not exhausted, since it differs from another say, leaves its waves up to there."""
        self._records.close()
