"""What every engine takes and gives: a stimulus in, a stream of trace records out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from cosim.stimulus.run_spec import RunSpec
from wire.stimulus import Delivery
from wire.trace import Record

__all__ = ["Engine", "EngineError", "Run", "UnknownEngine", "WavesUnsupported"]

OnDelivery = Callable[[Delivery], None]
Progress = Callable[[int], None]


class EngineError(Exception):
    """An engine cannot do what is asked; the text is one line for the user."""


class UnknownEngine(EngineError):
    """There is no engine of this name."""


class WavesUnsupported(EngineError):
    """The engine records no waves, or not into such a file."""


class Engine(Protocol):
    """Runs a specification; the generator's end, or its closing, ends all that it started.

    PROGRESS is called now and then with the cycles simulated so far.
    """

    def __call__(
        self,
        spec: RunSpec,
        work_dir: Path,
        waves: Path | None,
        on_delivery: OnDelivery | None,
        progress: Progress,
    ) -> Generator[Record, None, None]:
        """The records, in the order of docs/pipeline.md, section 11."""
        ...


class Run:
    """A run of an engine: iterate over its records inside a `with` block, whose end ends the run.

    Attributes:
        cycles_done: cycles simulated so far.
    """

    def __init__(
        self, engine: Engine, spec: RunSpec, work_dir: Path, waves: Path | None, on_delivery: OnDelivery | None
    ) -> None:
        self.cycles_done = 0
        self._records = engine(spec, work_dir, waves, on_delivery, self._advance)

    def _advance(self, cycles: int) -> None:
        self.cycles_done = cycles

    def __iter__(self) -> Iterator[Record]:
        return self._records

    def close(self) -> None:
        """End the run; outputs of one that was not exhausted are removed."""
        self._records.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
