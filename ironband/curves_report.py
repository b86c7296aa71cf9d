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

_FULL = 0.999
"""Above this each host's own link is as busy as any."""
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
    uniform = load.fabric is None and load.pattern == "uniform"
    limit = head_of_line_limit(load.ports) if uniform else None
    link, full = load.busiest_link
    with drawing_style():
        rows = load.rows if uniform and load.burst == 1 else None
        figure = curve_figure(_title(load), pairs, alone, limit=limit, rows=rows, full=full)
        save_figure(figure, [directory / name for name in _NAMES])
    if json_file is not None:
        drawn = [curve for pair in pairs for curve in pair]
        write_json(json_file, _json(load, sim, drawn, alone) | {"fifo_limit": limit, "full_at": full})
    for pair in pairs:
        _print(console, *pair)
    told = [f"a packet alone takes {alone:,} cycles"]
    told += [] if limit is None else [f"the limit of input FIFOs in theory is {limit:.3f}"]
    told += [f"{link}'s link is full at load {full:.3f}"] if full < _FULL else []
    console.print("; ".join(told))
    for name in _NAMES:
        console.print(f"wrote {directory / name}")
    return 0


def _title(load: Load) -> str:
    """What is measured, for the picture."""
    pattern = "Uniform random" if load.pattern == "uniform" else load.pattern.capitalize().replace("_", " ")
    bursts = f" in bursts of {load.burst:g}" if load.burst > 1 else ""
    where = f"{load.ports} ports" if load.fabric is None else load.fabric.name
    return f"{pattern} traffic{bursts}, {where}, {load.size:,} bytes payload"


def _measure(load: Load, loads: tuple[float, ...], sim: str, console: Console) -> tuple[list[tuple[Curve, ...]], int]:
    """Each queueing measured, and in theory if it is one switch; and the cycles that a packet takes if it is alone."""
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
        pairs = []
        for queueing, ideal in kinds:
            curve = measure_curve(sim, queueing, load, loads, work_dir, progress=measured)
            theory = [] if load.fabric is not None else [ideal_curve(ideal, load, loads, alone)]
            pairs.append((curve, *theory))
    return pairs, alone


def _print(console: Console, *curves: Curve) -> None:
    """A table of one queueing, beside its theory."""
    console.print(f"[bold]{''.join(f'{curve.name:36}' for curve in curves).rstrip()}[/bold]")
    console.print(f"offered{'  delivered    mean     p99' * len(curves)}  (latency in cycles)")
    for points in zip(*(curve.points for curve in curves), strict=True):
        told = (f"{point.delivered:>9.3f}  {point.mean_cycles:>6,.0f}  {point.p99_cycles:>6,.0f}" for point in points)
        console.print(f"{points[0].offered:>7.2f}  {'  '.join(told)}")
    console.print()


def _json(load: Load, sim: str, drawn: list[Curve], alone: int) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    return {
        "command": "curves",
        "sim": sim,
        "ports": load.ports if load.fabric is None else None,
        "topology": load.fabric.name if load.fabric is not None else None,
        "pattern": load.pattern,
        "hot": load.hot,
        "hot_share": load.hot_share if load.pattern == "hotspot" else None,
        "burst_packets": load.burst,
        "size_bytes": load.size,
        "buffer_blocks": load.buffer_blocks,
        "cycles": load.cycles,
        "warm_up_cycles": load.warm_up,
        "seed": load.seed,
        "packet_alone_cycles": alone,
        "curves": [asdict(curve) for curve in drawn],
    }
