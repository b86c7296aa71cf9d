"""Where commands print, and how they show what is being done: on a terminal, and in a pipe of builds only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from rich import console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ironband.common import STDOUT
from toolchain.building import BuildStage, told_of_builds

__all__ = ["Console", "build_lines", "cycle_bar", "cycle_counter", "live", "stages", "text_console"]

_COUNTER_STEP = 1_000
_SILENT_SECONDS = 8.0
"""How long a build is silent in a pipe."""
_TEXT = "{task.description}"


class Console(console.Console):
    """A reader that goes away is an error as in any other output: rich would end the process with status 1."""

    def print_line(self, text: str = "", style: str = "") -> None:
        """Print a line as it is."""
        self.print(Text(text, style=style))

    def on_broken_pipe(self) -> None:
        """Called while the error is handled."""
        raise


def text_console(*files: str | None) -> Console:
    """Standard output for lines of any length; nothing goes there if one of these files does."""
    return Console(highlight=False, quiet=STDOUT in files, soft_wrap=True)


@contextmanager
def cycle_bar(title: str, cycles: int, console: Console) -> Iterator[Callable[[int], None]]:
    """A bar; gives a function that takes the cycle reached. What is built before is told, too."""
    with live(console, TextColumn(_TEXT), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(title, total=cycles)
        with _builds(title, progress, lambda text: progress.update(task, description=text)):
            yield _every(max(1, cycles // 1_000), lambda cycle: progress.update(task, completed=cycle))


@contextmanager
def cycle_counter(title: str, console: Console) -> Iterator[Callable[[int], None]]:
    """The cycle reached, where `cycle_bar` would draw a bar if it were known how long the run is."""
    with live(console, SpinnerColumn(), TextColumn(_TEXT), TimeElapsedColumn()) as progress:
        task = progress.add_task(title, total=None)

        def show(text: str) -> None:
            progress.update(task, description=text)

        with _builds(title, progress, show):
            yield _every(_COUNTER_STEP, lambda cycle: show(f"{title}: cycle {cycle:,}"))


@contextmanager
def stages(title: str, console: Console) -> Iterator[Callable[[str], None]]:
    """The current stage, and the time since the first; gives a function that takes it."""
    with live(console, SpinnerColumn(), TextColumn(_TEXT), TimeElapsedColumn()) as progress:
        task = progress.add_task(title, total=None)
        yield lambda stage: progress.update(task, description=f"{title}: {stage}")


@contextmanager
def live(console: Console, *columns: ProgressColumn) -> Iterator[Progress]:
    """Drawn by the console that prints the text, which keeps the two apart; if it is no terminal, on standard error."""
    if console.quiet or not console.is_terminal:
        console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress


@contextmanager
def _builds(title: str, progress: Progress, show: Callable[[str], None]) -> Iterator[None]:
    """Tell of builds in this block: in the live display, or in lines."""
    if progress.disable:
        with build_lines(title):
            yield
        return
    with told_of_builds(lambda stage: show(title if stage is None else f"{title}: {stage}")):
        yield


@contextmanager
def build_lines(title: str) -> Iterator[None]:
    """Tell of builds in this block on standard error: a line when one begins, and one every few seconds."""
    lines = _BuildLines(title)
    try:
        with told_of_builds(lines.tell):
            yield
    finally:
        lines.tell(None)


class _BuildLines:
    """Lines about a build, while it goes on."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._stage: BuildStage | None = None
        self._ended = Event()
        self._teller: Thread | None = None

    def tell(self, stage: BuildStage | None) -> None:
        """How far it is; the first stage begins it, None ends it."""
        self._stage = stage
        if stage is None:
            self._ended.set()
            if self._teller is not None:
                self._teller.join()
                self._teller = None
        elif self._teller is None:
            self._say(stage, "")
            self._ended.clear()
            self._teller = Thread(target=self._repeat, daemon=True)
            self._teller.start()

    def _repeat(self) -> None:
        begun = time.monotonic()
        while not self._ended.wait(_SILENT_SECONDS):
            if (stage := self._stage) is not None:
                self._say(stage, f", {time.monotonic() - begun:.0f} s so far")

    def _say(self, stage: BuildStage, so_far: str) -> None:
        # Who has closed standard error wants to hear nothing, and has the build all the same.
        with suppress(OSError):
            print(f"{self._title}: {stage}{so_far}", file=sys.stderr, flush=True)


def _every(step: int, show: Callable[[int], None]) -> Callable[[int], None]:
    """A function that shows a growing cycle only now and then."""
    due = step

    def advance(cycle: int) -> None:
        nonlocal due
        if cycle >= due:
            due = cycle + step
            show(cycle)

    return advance
