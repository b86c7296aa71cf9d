"""The picture of throughput curves: delivered load, mean and 99th percentile of the latency over offered load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from cosim.analysis.ideal_switch import md1_wait
from cosim.experiments.curves import Curve
from cosim.pictures.drawing import COLOURS, GRID, INK, LEGEND, PANEL_TITLE, freeze_layout

__all__ = ["curve_figure"]

_MEASURED: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5.5, "zorder": 3}
_THEORY: dict[str, Any] = {"linewidth": 1.6, "zorder": 2}
_LIMIT: dict[str, Any] = {"color": INK, "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 1}
_FORMULA: dict[str, Any] = {"color": INK, "linewidth": 1, "linestyle": (0, (1, 2)), "zorder": 1}
_HEADROOM = 1.4
_TICKS = [step * 10**power for power in range(1, 7) for step in (1, 2, 5)]


def curve_figure(
    title: str,
    pairs: Sequence[tuple[Curve, ...]],
    alone: int,
    *,
    limit: float | None = None,
    rows: int | None = None,
    full: float = 1.0,
) -> Figure:
    """Draw curves.

    Args:
        title: above all.
        pairs: measured, and in theory where there is one, each pair in one colour.
        alone: cycles that a packet takes if it is alone.
        limit: throughput of a FIFO switch in theory, where there is one.
        rows: of a packet, where M/D/1 says how long it waits.
        full: offered load at which the busiest link is full; drawn below 1.
    """
    figure = Figure(figsize=(11, 8.6), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1))
    delivered = figure.add_subplot(grid[0, :])
    mean, tail = figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1])
    figure.suptitle(title, x=0.01, ha="left", fontsize=15, fontweight="bold")
    _draw_delivered(delivered, pairs, limit, full)
    _draw_latency(mean, pairs, "mean_cycles", "Mean latency", alone)
    _draw_latency(tail, pairs, "p99_cycles", "99th percentile", alone)
    if rows is not None:
        loads = [step / 100 for step in range(1, 100)]
        mean.plot(loads, [alone + rows * md1_wait(load) for load in loads], label="M/D/1", **_FORMULA)
        mean.legend(**LEGEND | {"loc": "upper left", "bbox_to_anchor": (0, 1), "ncols": 1})
    top = max(mean.get_ylim()[1], tail.get_ylim()[1])
    for axes in (mean, tail):
        axes.set_ylim(top=top)
    for axes in (delivered, mean, tail):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlim(0, 1.02)
        axes.set_xlabel("offered load, share of a link's time")
    freeze_layout(figure)
    return figure


def _draw_delivered(axes: Axes, pairs: Sequence[tuple[Curve, ...]], limit: float | None, full: float) -> None:
    for number, pair in enumerate(pairs):
        for curve in pair:
            loads = [point.offered for point in curve.points]
            shares = [point.delivered for point in curve.points]
            axes.plot(
                loads, shares, color=COLOURS[number], label=curve.name, **(_THEORY if curve.theory else _MEASURED)
            )
    if limit is not None:
        axes.axhline(limit, label=f"limit of input FIFOs, {limit:.3f}", **_LIMIT)
    if full < 1:
        axes.axvline(full, label=f"the busiest link is full, {full:.3f}", **_FORMULA)
    axes.set_ylim(0, 1.02)
    axes.set_title("Throughput", **PANEL_TITLE)
    axes.set_ylabel("delivered load, share of the rows\nthat flow control leaves")
    axes.legend(**LEGEND | {"loc": "lower right", "bbox_to_anchor": (1, 0.02), "ncols": 1})


def _draw_latency(axes: Axes, pairs: Sequence[tuple[Curve, ...]], value: str, title: str, alone: int) -> None:
    lowest, highest = float(alone), 10.0 * alone
    for number, pair in enumerate(pairs):
        for curve in pair:
            points = [point for point in curve.points if point.keeps_up]
            cycles = [getattr(point, value) for point in points]
            lowest, highest = min(lowest, *cycles, lowest), max(highest, *cycles, 0)
            axes.plot(
                [point.offered for point in points],
                cycles,
                color=COLOURS[number],
                **(_THEORY if curve.theory else _MEASURED),
            )
    axes.axhline(alone, **_LIMIT)
    axes.annotate(
        f"a packet alone: {alone:,}", (0.02, alone), xytext=(0, -11), textcoords="offset points", color=INK, fontsize=9
    )
    axes.set_yscale("log")
    axes.set_ylim(lowest / _HEADROOM, highest * _HEADROOM)
    axes.yaxis.set_major_locator(FixedLocator(_TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda cycles, _: f"{cycles:,.0f}"))
    axes.set_title(title, **PANEL_TITLE)
    axes.set_ylabel("cycles from offer to delivery")
