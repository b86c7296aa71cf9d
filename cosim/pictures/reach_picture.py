"""The picture of throughput over cable length, and of the buffer that a length needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from cosim.experiments.reach import Reach, ReachPoint, Width
from cosim.pictures.drawing import COLOURS, GRID, LEGEND, PANEL_TITLE, STALL, freeze_layout
from cosim.scenario.limits import LONGEST_M, NS_PER_METRE, SDR_CYCLE_NS
from wire.flow_control import CREDIT_WINDOW
from wire.packet import BLOCK_BYTES

__all__ = ["reach_figure"]

_STEPS: Final = 400
_SHORTEST_M: Final = 1.0
_BEYOND: Final = 1.2
_LIMIT: Final[dict[str, Any]] = {"color": STALL, "linewidth": 1.2, "linestyle": (0, (4, 3)), "zorder": 1}
_LEFT: Final[dict[str, Any]] = LEGEND | {"loc": "center left", "bbox_to_anchor": (0.01, 0.6), "ncols": 1}


def reach_figure(reach: Reach, points: Sequence[ReachPoint]) -> Figure:
    """Draw what was measured over what theory has, by buffer; below, what each length needs, at both widths."""
    figure = Figure(figsize=(11, 8.6), layout="constrained")
    figure.suptitle(
        f"One flow over a long cable, {reach.size:,} bytes payload", x=0.01, ha="left", fontsize=15, fontweight="bold"
    )
    throughput, buffer = figure.subplots(2, 1, sharex=True)
    lengths = [point.length_m for point in points]
    drawn = np.geomspace(min(_SHORTEST_M, *lengths), _BEYOND * LONGEST_M, _STEPS).tolist()
    _draw_throughput(throughput, reach, points, drawn)
    _draw_buffer(buffer, reach, drawn)
    for axes in (throughput, buffer):
        axes.set_xscale("log")
        axes.set_xlim(drawn[0], drawn[-1])
        axes.xaxis.set_major_formatter(FuncFormatter(_length))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
    buffer.set_xlabel("length of the cable, 5 ns a metre")
    freeze_layout(figure)
    return figure


def _draw_throughput(axes: Axes, reach: Reach, points: Sequence[ReachPoint], drawn: Sequence[float]) -> None:
    """Points are measured, lines theory."""
    by_buffer: defaultdict[int, list[ReachPoint]] = defaultdict(list)
    for point in points:
        by_buffer[point.buffer_blocks].append(point)
    for number, (blocks, measured) in enumerate(by_buffer.items()):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(drawn, [reach.loop(length).share(blocks) for length in drawn], color=colour, linewidth=1.4)
        axes.plot(
            [point.length_m for point in measured],
            [point.measured for point in measured],
            color=colour,
            linestyle="none",
            marker="o",
            markersize=5.5,
            label=f"{_kib(blocks):.4g} KiB",
        )
    axes.set_ylim(0, 1.05)
    axes.set_title(f"Throughput at {reach.width}: measured, and in theory", **PANEL_TITLE)
    axes.set_ylabel("data, share of the rows\nthat flow control leaves")
    axes.legend(**LEGEND | {"loc": "lower left", "bbox_to_anchor": (0.01, 0.02), "ncols": 1, "title": "buffer"})


def _draw_buffer(axes: Axes, reach: Reach, drawn: Sequence[float]) -> None:
    """What full throughput needs, up to the length at which no more credit can be outstanding."""
    for number, width in enumerate(sorted(get_args(Width), reverse=True)):
        one = replace(reach, width=width)
        needed = [(length, needs) for length in drawn if (needs := one.loop(length).needs) is not None]
        lengths, blocks = zip(*needed, strict=True)
        axes.step(lengths, [_kib(some) for some in blocks], where="post", color=COLOURS[number], label=width)
        end = one.loop(1).longest() * SDR_CYCLE_NS / NS_PER_METRE
        axes.plot([end], [_kib(CREDIT_WINDOW)], color=COLOURS[number], marker="o", markersize=6, zorder=3)
        place: dict[str, Any] = {"textcoords": "offset points", "xytext": (0, 7), "ha": "center"}
        axes.annotate(f"{end / 1000:.1f} km", (end, _kib(CREDIT_WINDOW)), color=COLOURS[number], **place)
    axes.axhline(
        _kib(CREDIT_WINDOW), label=f"credit that a VL can have outstanding: {CREDIT_WINDOW:,} blocks", **_LIMIT
    )
    axes.set_yscale("log", base=2)
    axes.set_ylim(top=2 * _kib(CREDIT_WINDOW))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda kib, _: f"{kib:g}"))
    axes.set_title("The buffer that full throughput needs", **PANEL_TITLE)
    axes.set_ylabel("KiB for each VL")
    axes.legend(**_LEFT)


def _length(metres: float, _: object) -> str:
    return f"{metres:g} m" if metres < 1000 else f"{metres / 1000:g} km"


def _kib(blocks: int) -> float:
    return blocks * BLOCK_BYTES / 1024
