"""The pictures of the laboratory's measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cosim.pictures.drawing import COLOURS, GRID, INK, LEGEND, PANEL_TITLE, STALL, freeze_layout
from laboratory.buffer_size import BufferSize
from laboratory.congestion import Congestion
from laboratory.credit_trace import Lane
from laboratory.wait_tick import TickFit, WaitTick

__all__ = [
    "IntervalPanel",
    "buffer_figure",
    "congestion_figure",
    "credit_figure",
    "interval_figure",
    "tick_figure",
]

_Flow = TypeVar("_Flow")

_US: Final = 1000
_LEFT: Final[dict[str, Any]] = LEGEND | {"loc": "upper left", "bbox_to_anchor": (0, 1), "ncols": 1}
_RIGHT: Final[dict[str, Any]] = LEGEND | {"loc": "lower right", "bbox_to_anchor": (1, 0.02), "ncols": 1}
_ZOOM_STEPS: Final = 24
_MOST_FLOWS: Final = 12
_SENT: Final[tuple[dict[str, Any], ...]] = (
    {"linestyle": "none", "marker": "o", "markersize": 5, "markerfacecolor": "none"},
    {"linestyle": "none", "marker": ".", "markersize": 4},
)
"""Of the earlier sender and the later one, which may send in step."""


def _largest(flows: Sequence[_Flow], size: Callable[[_Flow], int]) -> list[_Flow]:
    """As many as a picture has room for, in their order."""
    places = sorted(range(len(flows)), key=lambda place: -size(flows[place]))
    return [flows[place] for place in sorted(places[:_MOST_FLOWS])]


def _figure(title: str, panels: int, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(11, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=15, fontweight="bold")
    axes = [figure.add_subplot(panels, 1, number + 1) for number in range(panels)]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(color=GRID, linewidth=0.6)
        one.set_axisbelow(True)
    return figure, axes


def credit_figure(place: str, sender: Lane, receiver: Lane | None) -> Figure:
    """What a sender has sent, and how far its receiver lets it; all of it, and as the receiver's buffer drains."""
    figure, (whole, zoom) = _figure(f"Credits of {place}", 2, 8.6)
    for axes in (whole, zoom):
        times, blocks = sender.sent.points()
        axes.step(times / _US, blocks, where="post", color=COLOURS[0], label="blocks sent")
        if receiver is not None:
            times, limit = receiver.allowed.points()
            axes.step(times / _US, limit, where="post", color=COLOURS[1], label="FCCL, counted on")
        axes.set_ylabel("blocks of 64 bytes")
        axes.set_xlabel("µs")
    whole.set_title("The whole capture", **PANEL_TITLE)
    whole.legend(**_LEFT)
    zoom.set_title("The buffer drains", **PANEL_TITLE)
    if receiver is not None:
        times, limit = receiver.allowed.points()
        middle = max(0, len(times) - len(times) // 3 - _ZOOM_STEPS)
        shown = slice(middle, middle + _ZOOM_STEPS)
        if len(times[shown]) > 1:
            zoom.set_xlim(times[shown][0] / _US, times[shown][-1] / _US)
            zoom.set_ylim(limit[shown][0] - 2, limit[shown][-1] + 1)
    freeze_layout(figure)
    return figure


class IntervalPanel(NamedTuple):
    """Intervals of one flow at one place.

    Attributes:
        title: what they are.
        counts: how many there are of 0 µs, 1 µs and so on; the last are all longer ones.
        published: the same of a laboratory, if there are any.
    """

    title: str
    counts: Sequence[int]
    published: Sequence[int] | None


def interval_figure(panels: Sequence[IntervalPanel]) -> Figure:
    """Bars of intervals by microseconds, ours beside published ones; of many flows those with the most."""
    panels = _largest(panels, lambda panel: sum(panel.counts))
    rows = (len(panels) + 1) // 2
    figure = Figure(figsize=(11, 1.2 + 3.4 * rows), layout="constrained")
    figure.suptitle("Times between the packets of a flow", x=0.01, ha="left", fontsize=15, fontweight="bold")
    for number, panel in enumerate(panels):
        axes = figure.add_subplot(rows, min(2, len(panels)), number + 1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=GRID, linewidth=0.6, axis="y")
        axes.set_axisbelow(True)
        classes = np.arange(len(panel.counts))
        series = [("here", panel.counts, COLOURS[0])]
        if panel.published is not None:
            series.append(("published", panel.published, COLOURS[1]))
        width = 0.8 / len(series)
        for place, (label, counts, colour) in enumerate(series):
            share = np.array(counts) / max(sum(counts), 1)
            axes.bar(classes + (place - (len(series) - 1) / 2) * width, share, width, color=colour, label=label)
        axes.set_xticks(classes, [*map(str, classes[:-1]), "more"])
        axes.set_xlabel("µs from packet to packet")
        axes.set_ylabel("share")
        axes.set_title(panel.title, **PANEL_TITLE)
        axes.legend(**_LEFT | {"loc": "upper right", "bbox_to_anchor": (1, 1)})
    freeze_layout(figure)
    return figure


def buffer_figure(size: BufferSize, directions: Sequence[str]) -> Figure:
    """Packets that two hosts have sent, since the later began, and what of them has left."""
    vls = [vl for vl in sorted(size.senders) if size.packets_held(vl)]
    figure, panels = _figure("What a switch holds, from what goes in", len(vls), 1.6 + 3.4 * len(vls))
    for axes, vl in zip(panels, vls, strict=True):
        met = size.senders[vl][-1].first_ns
        for number, sender in enumerate(size.senders[vl]):
            held = size.packets_held(vl)[sender.direction]
            times, sent = sender.sent.points()
            since = (times - met) / _US
            axes.plot(
                since,
                sent - sender.before,
                **_SENT[number],
                color=COLOURS[number],
                label=f"{directions[sender.direction]}: sent, {held:.2f} packets more than left",
            )
        pace = (size.senders[vl][-1].shared_pace_ns or 0) / _US
        end = since[-1]
        axes.plot([0.0, end], [0.0, end / pace], color=INK, linewidth=1, label="left, at the shared pace")
        at = end / 2
        arrow = {"arrowstyle": "<->", "color": STALL, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (at, at / pace + held), (at, at / pace), arrowprops=arrow)
        axes.annotate(f"  {held:.1f} packets", (at, at / pace), color=STALL, ha="left", va="top")
        axes.set_xlim(left=-20)
        axes.set_ylim(bottom=-2)
        axes.set_title(f"VL {vl}", **PANEL_TITLE)
        axes.set_xlabel("µs since the later host began")
        axes.set_ylabel("packets")
        axes.legend(**_RIGHT)
    freeze_layout(figure)
    return figure


def tick_figure(waits: WaitTick, count: int, best: Sequence[TickFit]) -> Figure:
    """What the counter would say with each tick, and what it says."""
    figure, (axes,) = _figure("The tick of PortXmitWait", 1, 5.4)
    fits = waits.fits()
    ticks = [fit.cycles for fit in fits]
    axes.fill_between(
        ticks,
        [max(fit.least, 1) for fit in fits],
        [max(fit.most, 1) for fit in fits],
        color=COLOURS[0],
        alpha=0.6,
        step="mid",
        label="what it would count, whenever ticks begin",
    )
    axes.axhline(count, color=STALL, linewidth=1.2, label=f"what it counted: {count:,}")
    axes.plot([fit.cycles for fit in best], [count] * len(best), "o", color=INK, label=f"tick: {best[0].cycles} cycles")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([1 << power for power in range(9)], [str(1 << power) for power in range(9)])
    axes.set_xlabel("tick, cycles")
    axes.set_ylabel("PortXmitWait")
    axes.legend(**_LEFT | {"loc": "upper right", "bbox_to_anchor": (1, 1)})
    freeze_layout(figure)
    return figure


def congestion_figure(marks: Congestion, directions: Sequence[str]) -> Figure:
    """Rates of flows over time; of many those with the most packets."""
    figure, (axes,) = _figure("Rates of flows", 1, 5.4)
    for number, (key, flow) in enumerate(_largest(list(marks.flows.items()), lambda item: item[1].packets)):
        times, rates = marks.gbps(key)
        share = f", FECN on {flow.fecn / flow.packets:.0%}" if flow.fecn else ""
        axes.step(
            np.array(times) / _US,
            rates,
            where="post",
            color=COLOURS[number % len(COLOURS)],
            label=f"{directions[key.direction]}, LID {key.slid} to {key.dlid}{share}",
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("µs")
    axes.set_ylabel(f"Gbit/s of packets,\nin windows of {marks.window_ns / _US:,.0f} µs")
    axes.legend(**_RIGHT)
    freeze_layout(figure)
    return figure
