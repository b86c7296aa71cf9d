"""Where commands print, and how they show what is being done: on a terminal, and in a pipe not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

__all__ = ["Console", "cycle_bar", "cycle_counter", "live", "stages", "text_console"]

_COUNTER_STEP = 1_000
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
    """A bar; gives a function that takes the cycle reached."""
    with live(console, TextColumn(_TEXT), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(title, total=cycles)
        yield _every(max(1, cycles // 1_000), lambda cycle: progress.update(task, completed=cycle))


@contextmanager
def cycle_counter(title: str, console: Console) -> Iterator[Callable[[int], None]]:
    """The cycle reached, where `cycle_bar` would draw a bar if it were known how long the run is."""
    with stages(title, console) as show:
        yield _every(_COUNTER_STEP, lambda cycle: show(f"cycle {cycle:,}"))


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


def _every(step: int, show: Callable[[int], None]) -> Callable[[int], None]:
    """A function that shows a growing cycle only now and then."""
    due = step

    def advance(cycle: int) -> None:
        nonlocal due
        if cycle >= due:
            due = cycle + step
            show(cycle)

    return advance
