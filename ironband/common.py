"""What the subcommands share: options, JSON results, and errors in one line."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from cosim.engines.simulation import ENGINES, EngineError
from cosim.scenario.scenario_file import ScenarioError
from cosim.simulators.build import BuildFailed
from cosim.simulators.cocotb_results import LOG, SimulationFailed
from cosim.simulators.installed import SimulatorMissing
from cosim.topology.topology_file import TopologyError
from ironband.console import Console
from sm.lids import Guid2LidError, LidError
from sm.programming import TableError
from sm.routing.up_down import RoutingError
from toolchain.atomic_files import OutputError, output_file, write_atomically
from toolchain.build_cache import BuildDirectoryError
from toolchain.process import ProcessTimeout

__all__ = [
    "cycle_counter",
    "input_errors",
    "json_option",
    "progress_bar",
    "sim_option",
    "waves_option",
    "work_directory",
    "write_json",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])

STDOUT = "-"
_COUNTER_STEP = 1_000


def sim_option(command: _Command) -> _Command:
    """`--sim ENGINE`."""
    return click.option(
        "--sim",
        type=click.Choice(ENGINES),
        default=ENGINES[0],
        show_default=True,
        help="What simulates: a Verilog simulator, Amaranth's own, or the golden model alone.",
    )(command)


def json_option(command: _Command) -> _Command:
    """`--json FILE|-`."""
    return click.option(
        "--json",
        "json_file",
        metavar="FILE|-",
        callback=_writable,
        help="Write the results as JSON to FILE, or in place of the text to standard output.",
    )(command)


def _writable(context: click.Context, parameter: click.Parameter, target: str | None) -> str | None:
    """A run may take hours: whether its results can be written is seen before."""
    if target is not None and target != STDOUT:
        with input_errors():
            output_file(Path(target))
    return target


def waves_option(command: _Command) -> _Command:
    """`--waves FILE`."""
    return click.option(
        "--waves",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Record waves to FILE: .fst on verilator and icarus, .vcd on amaranth.",
    )(command)


@contextmanager
def input_errors() -> Iterator[None]:
    """Turn errors of the input and of the machine into one line and status 2."""
    try:
        yield
    except (
        ScenarioError,
        TopologyError,
        Guid2LidError,
        LidError,
        RoutingError,
        TableError,
        OutputError,
        EngineError,
        SimulatorMissing,
        BuildFailed,
        BuildDirectoryError,
        SimulationFailed,
        ProcessTimeout,
    ) as error:
        raise click.ClickException(str(error).partition("\n")[0]) from error


@contextmanager
def work_directory() -> Iterator[Path]:
    """A temporary directory for the runs of the engines. The log of one that failed outlives it.

    Raises:
        SimulationFailed: from the block, in one line that says where the log is.
    """
    try:
        directory = tempfile.TemporaryDirectory(prefix="ironband-", ignore_cleanup_errors=True)
    except OSError as error:
        raise OutputError(f"directory {tempfile.gettempdir()}: cannot be written: {error.strerror}") from None
    with directory as path:
        try:
            yield Path(path)
        except SimulationFailed as failure:
            said = str(failure).partition("\n")[0]
            logs = sorted(Path(path).rglob(LOG))
            raise SimulationFailed(f"{said}; its log is {_kept(logs[0])}" if logs else said) from failure


def _kept(log: Path) -> Path:
    """A copy of a log, in the directory for temporary files."""
    handle, name = tempfile.mkstemp(prefix="ironband-", suffix=".log")
    os.close(handle)
    return Path(shutil.copyfile(log, name))


def write_json(target: str, results: dict[str, Any]) -> None:
    """Write results to a file, or to standard output for `-`."""
    text = json.dumps(results, indent=2, ensure_ascii=False) + "\n"
    if target == STDOUT:
        sys.stdout.write(text)
        return
    write_atomically(Path(target), text)


@contextmanager
def progress_bar(title: str, cycles: int, console: Console) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing in a pipe; gives a function that takes the cycle reached.

    The bar is drawn by the console that prints the text, which keeps the two apart; if that is no terminal but
    standard error is one, there.
    """
    console = _terminal(console)
    if not console.is_terminal:
        yield lambda cycle: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=cycles)
        step = max(1, cycles // 1_000)
        shown = 0

        def advance(cycle: int) -> None:
            nonlocal shown
            if cycle >= shown + step:
                shown = cycle
                progress.update(task, completed=cycle)

        yield advance


@contextmanager
def cycle_counter(title: str, console: Console) -> Iterator[Callable[[int], None]]:
    """The cycle reached, where `progress_bar` would draw a bar if it were known how long the run is."""
    console = _terminal(console)
    if not console.is_terminal:
        yield lambda cycle: None
        return
    with console.status(title) as status:
        shown = 0

        def advance(cycle: int) -> None:
            nonlocal shown
            if cycle >= shown + _COUNTER_STEP:
                shown = cycle
                status.update(f"{title}: cycle {cycle:,}")

        yield advance


def _terminal(console: Console) -> Console:
    """The console that prints the text, or standard error's if that one is no terminal."""
    return Console(stderr=True) if console.quiet or not console.is_terminal else console
