"""The picture of a sweep: throughput and mean latency over the values of its first key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cosim.experiments.sweep import Outcome
from cosim.pictures.drawing import COLOURS, GRID, LEGEND, PANEL_TITLE, freeze_layout

__all__ = ["sweep_figure"]

_MANY_TIMES = 20
"""Values this much apart stand on a logarithmic axis."""


def sweep_figure(
    title: str, keys: Sequence[str], values: Sequence[Sequence[Any]], outcomes: Sequence[Outcome]
) -> Figure:
    """Draw a sweep.

    Args:
        title: above all.
        keys: what has other values; the first is the axis, those of the others make curves.
        values: of the keys, by run.
        outcomes: by run.
    """
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=15, fontweight="bold")
    throughput, latency = figure.subplots(1, 2)
    curves: defaultdict[str, list[tuple[Any, Outcome]]] = defaultdict(list)
    for (first, *others), outcome in zip(values, outcomes, strict=True):
        curves[", ".join(f"{key} {value}" for key, value in zip(keys[1:], others, strict=True))].append(
            (first, outcome)
        )
    axis = [first for first, *_ in values]
    numbers = all(type(one) in (int, float) for one in axis)
    for axes, name, what, unit in (
        (throughput, "gbit_per_s", "Throughput", "payload delivered, Gbit/s"),
        (latency, "mean_cycles", "Mean latency", "cycles from offer to delivery"),
    ):
        for number, (label, points) in enumerate(curves.items()):
            axes.plot(
                [first if numbers else str(first) for first, _ in points],
                [getattr(outcome, name) for _, outcome in points],
                marker="o",
                color=COLOURS[number % len(COLOURS)],
                linestyle=("-", "--", ":", "-.")[number // len(COLOURS) % 4],
                label=label,
            )
        _label(axes, what, unit, keys[0])
        if numbers and min(axis) > 0 and max(axis) >= _MANY_TIMES * min(axis):
            axes.set_xscale("log")
            axes.set_xticks(sorted(set(axis)), [f"{value:,}" for value in sorted(set(axis))])
            axes.minorticks_off()
    if len(keys) > 1:
        throughput.legend(**LEGEND | {"loc": "best", "ncols": 1, "bbox_to_anchor": None})
    freeze_layout(figure)
    return figure


def _label(axes: Axes, title: str, unit: str, key: str) -> None:
    axes.set_title(title, **PANEL_TITLE)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(key)
    axes.set_ylabel(unit)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
