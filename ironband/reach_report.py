"""What `ironband reach` measures and says: a table, the same as CSV and JSON, and a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, get_args

from cosim.experiments.reach import Reach, ReachPoint, Width, measure_reach
from cosim.pictures.drawing import drawing_style, save_figure
from cosim.pictures.reach_picture import reach_figure
from cosim.scenario.limits import NS_PER_METRE, SDR_CYCLE_NS
from ironband.common import work_directory, write_json
from ironband.progress import cycle_bar, text_console
from toolchain.atomic_files import write_atomically
from wire.flow_control import CREDIT_WINDOW
from wire.packet import BLOCK_BYTES

__all__ = ["report_reach"]

_STEPS = 1_000
_PER_KIB = 1024 // BLOCK_BYTES


def report_reach(
    reach: Reach, lengths: Sequence[float], buffers: Sequence[int], sim: str, directory: Path, json_file: str | None
) -> int:
    """Measure, print, write and draw; the exit status.

    Raises:
        OutputError: a file cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    console = text_console(json_file)
    with work_directory() as work_dir, cycle_bar(f"reach on {sim}", _STEPS, console) as progress:
        points = measure_reach(reach, lengths, buffers, sim, work_dir, lambda share: progress(round(share * _STEPS)))
    for line in (*_table(reach, points, buffers), "", *_limits(reach)):
        console.print(line)
    faults = sum(point.faults for point in points)
    if faults:
        console.print(f"[bold red]{faults} faults: wrong deliveries, or RTL and golden model differ[/bold red]")
    written = [directory / f"reach.{suffix}" for suffix in ("csv", "svg", "png")]
    write_atomically(written[0], _csv(points))
    if json_file is not None:
        write_json(json_file, _json(reach, sim, lengths, buffers, points))
    with drawing_style():
        save_figure(reach_figure(reach, points), written[1:])
    for path in written:
        console.print(f"wrote {path}")
    return 1 if faults else 0


def _table(reach: Reach, points: Sequence[ReachPoint], buffers: Sequence[int]) -> list[str]:
    """A line for each length: what it needs, and measured and theory for each buffer."""
    lines = [
        f"{'':24}" + "".join(f"  {_kib(blocks) + ' KiB':>14}" for blocks in buffers),
        f"{'m':>8}  {'needs, KiB':>14}" + "  measured theory" * len(buffers),
    ]
    for place in range(0, len(points), len(buffers)):
        row = points[place : place + len(buffers)]
        needs = reach.loop(row[0].length_m).needs
        told = f"{row[0].length_m:>8,g}  {'-' if needs is None else _kib(needs):>14}"
        lines.append(told + "".join(f"  {point.measured:>8.3f} {point.theory:>5.3f}" for point in row))
    full = (_metres(reach.loop(1).longest(blocks)) for blocks in buffers)
    return [*lines, f"{'full throughput up to, m':24}" + "".join(f"  {metres:>14,.0f}" for metres in full)]


def _limits(reach: Reach) -> list[str]:
    """What the credit window comes to."""
    loop, most = reach.loop(1), _kib(CREDIT_WINDOW)
    reaches = (f"{_metres(replace(reach, width=one).loop(1).longest()):,.0f} m at {one}" for one in get_args(Width))
    return [
        f"a packet: {loop.blocks} blocks, {loop.packet_cycles:,} cycles of {SDR_CYCLE_NS:g} ns",
        f"FCCL lets a VL have {CREDIT_WINDOW:,} blocks outstanding, {most} KiB: whatever the "
        f"buffer, full throughput ends at {' and '.join(reaches)}",
    ]


def _metres(flight: int) -> float:
    return flight * SDR_CYCLE_NS / NS_PER_METRE


def _kib(blocks: int) -> str:
    return f"{blocks / _PER_KIB:.4g}"


def _csv(points: Sequence[ReachPoint]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(ReachPoint))
    writer.writerows(asdict(point).values() for point in points)
    return text.getvalue()


def _json(
    reach: Reach, sim: str, lengths: Sequence[float], buffers: Sequence[int], points: Sequence[ReachPoint]
) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    loop = reach.loop(1)
    return {
        "command": "reach",
        "sim": sim,
        "width": reach.width,
        "size_bytes": reach.size,
        "packet_blocks": loop.blocks,
        "packet_cycles": loop.packet_cycles,
        "full_up_to_m": {str(blocks): _metres(loop.longest(blocks)) for blocks in buffers},
        "window_blocks": CREDIT_WINDOW,
        "window_full_up_to_m": _metres(loop.longest()),
        "needs_blocks": {f"{length:g}": reach.loop(length).needs for length in lengths},
        "points": [asdict(point) for point in points],
    }
