"""What `ironband bench` says: its tables, and the same as JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.calibration import Calibration, loops
from bench.figures import FIGURES, Figure, Reading
from bench.growth import Growth, growth
from bench.host import host
from bench.settings import NOT_QUICK, WIDTHS, Settings
from bench.suite import NOT_JUDGED_QUICK, Benchmark, BenchmarkInterrupted, Progress, benchmark
from ironband.common import STDOUT, work_directory, write_json
from ironband.progress import Console, live

__all__ = ["report_benchmark", "report_growth"]

_PIPE_WIDTH = 150
_WHAT_WIDTH = 135
"""Columns that a terminal needs for the table to say what each figure is."""


def report_benchmark(settings: Settings, asked: Collection[str], json_file: str | None) -> int:
    """Measure the figures asked for and print them, also those that there are if it is interrupted; the exit status.

    Raises:
        BenchmarkInterrupted: it was.
        What the engines raise (cosim.engines.simulation.run), and OutputError.
    """
    console = _console(json_file)
    try:
        with work_directory() as work_dir, _progress(console) as progress:
            result = benchmark(settings, asked, work_dir, progress, Calibration(loops()))
    except BenchmarkInterrupted as interrupted:
        if interrupted.result.readings:
            _report(console, interrupted.result, json_file)
        raise
    _report(console, result, json_file)
    return 0 if result.held else 1


def _report(console: Console, result: Benchmark, json_file: str | None) -> None:
    if json_file is not None:
        write_json(json_file, _json(result))
    _print(console, result)


def _console(json_file: str | None) -> Console:
    console = Console(highlight=False, quiet=json_file == STDOUT)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def report_growth(seed: int, json_file: str | None) -> int:
    """Measure switches of several widths and print a table of them; the exit status.

    Raises:
        What the engines raise (cosim.engines.simulation.run), and OutputError.
    """
    console = _console(json_file)
    measured: list[Growth] = []
    with work_directory() as work_dir, _progress(console) as progress:
        for place, ports in enumerate(WIDTHS):
            progress(f"{ports} ports", place, len(WIDTHS))
            measured.append(growth(ports, work_dir, seed))
    if json_file is not None:
        widths = [asdict(one) for one in measured]
        write_json(json_file, {"command": "bench --growth", "widths": widths, "seed": seed, "host": host()})
    table = Table(box=None, pad_edge=False)
    for title in ("ports", "Verilog MB", "export s", "build s", "build CPU s", "cycles/s"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in measured:
        size, times = one.verilog_bytes / 1e6, (one.export_s, one.build_s, one.build_cpu_s)
        table.add_row(f"{one.ports}", f"{size:.1f}", *(f"{value:.1f}" for value in times), f"{one.cycles_per_s:,.0f}")
    console.print(table)
    return 0


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    """What is being measured and what has been found: a bar and lines on a terminal, else lines on standard error."""
    with live(console, TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()) as bar:
        task = bar.add_task("", total=None)

        def show(text: str, done: int, of: int) -> None:
            bar.update(task, description=text, completed=done, total=of)
            if text.partition(" ")[0] in FIGURES:
                bar.console.print(text, markup=False)

        if not bar.disable:
            yield show
            return
        started = time.monotonic()
        yield lambda text, done, of: print(f"{time.monotonic() - started:6.0f} s  {text}", file=sys.stderr, flush=True)


def _json(result: Benchmark) -> dict[str, Any]:
    """Machine-readable: every figure by its name, None if not measured; then how it was measured."""
    settings = result.settings
    return {
        "command": "bench",
        "held": result.held,
        **{name: _value(result.readings.get(name)) for name in FIGURES},
        "ports": settings.ports,
        "seed": settings.seed,
        "quick": settings.quick,
        "repetitions": settings.repetitions,
        "missed": result.missed,
        "calibration": {
            kind: {
                "factor": speed.calibration.value,
                "factor_spread": [speed.calibration.least, speed.calibration.most],
                "loop_s": speed.loop_s,
                "reference_s": speed.reference_s,
            }
            for kind, speed in result.speeds.items()
        },
        "targets": {name: str(figure.target) for name, figure in FIGURES.items() if figure.target},
        "targets_here": {name: str(target) for name, figure in FIGURES.items() if (target := result.target(figure))},
        "spread": {name: [reading.least, reading.most] for name, reading in result.readings.items()},
        "faults": result.faults,
        "host": host(),
    }


def _value(reading: Reading | None) -> float | None:
    return None if reading is None else reading.value


def _print(console: Console, result: Benchmark) -> None:
    settings = result.settings
    table = Table(box=None, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    for title in ("", "from .. to", "target", "here", ""):
        table.add_column(title, no_wrap=True)
    if console.width >= _WHAT_WIDTH:
        table.add_column("what", overflow="fold")
    for name, figure in FIGURES.items():
        if name in result.readings:
            table.add_row(*_row(result, figure)[: len(table.columns)])
    console.print(table)
    for fault in result.faults:
        console.print(f"wrong: {fault}", style="bold red", markup=False)
    machine = host()
    console.print(f"{settings.ports} ports, seed {settings.seed}; {machine['cores']} cores of {machine['cpu']}")
    for kind, speed in result.speeds.items():
        one = speed.calibration
        console.print(
            f"calibration, {kind}: {one.value:.2f} ({one.least:.2f} .. {one.most:.2f}):"
            f" its loop takes {speed.loop_s:.3f} s, {speed.reference_s:.3f} s on a machine of 1.0"
        )
    if settings.quick:
        console.print(f"quick: shorter runs, {settings.repetitions} repetitions")
        console.print(f"not measured: {', '.join(NOT_QUICK)}; measured too shortly to judge: {NOT_JUDGED_QUICK[0]}")


def _row(result: Benchmark, figure: Figure) -> tuple[str, ...]:
    """Cells of a figure's line."""
    reading = result.readings[figure.name]
    held = result.figure_held(figure)
    here = result.target(figure)
    return (
        figure.name,
        figure.shown(reading.value),
        figure.unit,
        "" if reading.least == reading.most else f"{figure.shown(reading.least)} .. {figure.shown(reading.most)}",
        "" if here is None else str(figure.target),
        "" if here is None or figure.scaled_by is None else str(here),
        "" if held is None else "[green]held[/]" if held else "[bold red]short[/]",
        figure.text,
    )
