"""What `ironband curves` measures and says: tables, a picture, and the same as JSON."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cosim.analysis.ideal_switch import head_of_line_limit
from cosim.experiments.curves import Curve, CurveError, Ideal, Load, Queueing, ideal_curve, measure_curve, time_alone
from cosim.pictures.curve_picture import curve_figure
from cosim.pictures.drawing import drawing_style, save_figure
from ironband.common import work_directory, write_json
from ironband.progress import Console, cycle_bar, text_console

__all__ = ["report_curves"]

_NAMES = "throughput.svg", "throughput.png"


def report_curves(load: Load, loads: tuple[float, ...], sim: str, directory: Path, json_file: str | None) -> int:
    """Measure, draw and print; the exit status.

    Raises:
        OutputError: a file cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    console = text_console(json_file)
    try:
        pairs, alone = _measure(load, loads, sim, console)
    except CurveError as error:
        print(f"ironband: {error}", file=sys.stderr)
        return 1
    limit = head_of_line_limit(load.ports)
    title = f"Uniform random traffic, {load.ports} ports, {load.size:,} bytes payload"
    with drawing_style():
        save_figure(curve_figure(title, pairs, limit, alone, load.rows), [directory / name for name in _NAMES])
    if json_file is not None:
        write_json(json_file, _json(load, sim, [curve for pair in pairs for curve in pair], limit, alone))
    for pair in pairs:
        _print(console, *pair)
    console.print(f"a packet alone takes {alone:,} cycles; the limit of input FIFOs in theory is {limit:.3f}")
    for name in _NAMES:
        console.print(f"wrote {directory / name}")
    return 0


def _measure(load: Load, loads: tuple[float, ...], sim: str, console: Console) -> tuple[list[tuple[Curve, Curve]], int]:
    """Each queueing measured and in theory, and the cycles that a packet takes if it is alone."""
    kinds: tuple[tuple[Queueing, Ideal], ...] = (("voq", "output queues"), ("fifo", "input FIFO"))
    done = 0
    with (
        work_directory() as work_dir,
        cycle_bar(f"curves on {sim}", len(kinds) * len(loads) * load.cycles, console) as progress,
    ):

        def measured(rate: float) -> None:
            nonlocal done
            done += load.cycles
            progress(done)

        alone = time_alone(sim, "voq", load, work_dir)
        pairs = [
            (
                measure_curve(sim, queueing, load, loads, work_dir, progress=measured),
                ideal_curve(ideal, load, loads, alone),
            )
            for queueing, ideal in kinds
        ]
    return pairs, alone


def _print(console: Console, measured: Curve, theory: Curve) -> None:
    """A table of one queueing, beside its theory."""
    console.print(f"[bold]{measured.name:36}{theory.name}[/bold]")
    console.print("offered  delivered    mean     p99  delivered    mean     p99  (latency in cycles)")
    for one, other in zip(measured.points, theory.points, strict=True):
        ours, ideal = (
            f"{point.delivered:>9.3f}  {point.mean_cycles:>6,.0f}  {point.p99_cycles:>6,.0f}" for point in (one, other)
        )
        console.print(f"{one.offered:>7.2f}  {ours}  {ideal}")
    console.print()


def _json(load: Load, sim: str, drawn: list[Curve], limit: float, alone: int) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    return {
        "command": "curves",
        "sim": sim,
        "ports": load.ports,
        "size_bytes": load.size,
        "buffer_blocks": load.buffer_blocks,
        "cycles": load.cycles,
        "warm_up_cycles": load.warm_up,
        "seed": load.seed,
        "packet_alone_cycles": alone,
        "fifo_limit": limit,
        "curves": [asdict(curve) for curve in drawn],
    }
