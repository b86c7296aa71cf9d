"""A picture of a run: packets on the links, credits of the senders, and buffers of the switches, over time."""

from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from cosim.event import Event
from cosim.output import whole_file
from cosim.topology import Port, Topology
from wire.parameters import AdapterParameters

__all__ = ["Picture"]

_MAX_EVENTS = 6_000
_MAX_LANES = 12
_MAX_LINES = 6
_LABEL_SHARE = 0.012
"""A bar is labelled if it is at least this wide, as a share of the picture."""

_COLOURS = ("#2f6fb5", "#e08214", "#35978f", "#b2443c", "#7b5ea7", "#8c6d31", "#d076a8", "#5f6b73")
_INK = "#22313f"
_GRID = "#d9dee3"
_STALL = "#c8102e"
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "text.parse_math": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "ironband",
    "svg.fonttype": "none",
}


_WIDTH_INCHES = 11
_DPI = 144
_MAX_TICKS = 8
_MARGIN = 40
_WAITING: dict[str, Any] = {"facecolor": "none", "edgecolor": _STALL, "hatch": "////", "linewidth": 0}
_DELIVERED: dict[str, Any] = {"color": _INK, "marker": "^", "markersize": 6, "linestyle": "none", "clip_on": False}
_PANEL_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 11, "fontweight": "bold"}
_LEGEND: dict[str, Any] = {
    "loc": "lower right",
    "bbox_to_anchor": (1, 1),
    "ncols": 4,
    "frameon": False,
    "borderaxespad": 0,
}


@dataclass
class _Steps:
    """A value that changes at some cycles."""

    cycles: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def add(self, cycle: int, value: int) -> None:
        self.cycles.append(cycle)
        self.values.append(value)


@dataclass(slots=True)
class _Bar:
    """A packet on a link, or a wait for credits, from its first cycle to the one after its last."""

    start: int
    end: int | None
    packet: str = ""


class Picture:
    """Collects the events of a story, and draws them.

    Of a long run it shows the beginning: as many cycles as 6,000 events take.
    """

    def __init__(self, topology: Topology, title: str, symbol_time_ns: float, start: int) -> None:
        self._topology = topology
        self._title = title
        self._symbol_time_ns = symbol_time_ns
        self._start = start
        self._end = start + 1
        self._events = 0
        self._packet_sizes: set[int] = set()
        self._credits: defaultdict[tuple[Port, int], _Steps] = defaultdict(_Steps)
        self._buffers: defaultdict[Port, _Steps] = defaultdict(_Steps)
        self._bars: defaultdict[Port, list[_Bar]] = defaultdict(list)
        self._waits: defaultdict[tuple[Port, int], list[_Bar]] = defaultdict(list)
        self._deliveries: defaultdict[Port, list[int]] = defaultdict(list)

    @property
    def cut_off(self) -> bool:
        """True if the run goes on after what is shown."""
        return self._events >= _MAX_EVENTS

    def add(self, event: Event) -> None:
        """Take one event, in the order of cycles."""
        if self.cut_off:
            return
        self._events += 1
        self._end = max(self._end, event.cycle, event.until or 0)
        place, vl = event.place, event.vl
        at_host = isinstance(self._topology.fabric.nodes[place.node], AdapterParameters)
        if event.credit_blocks is not None and vl is not None and at_host:
            self._credits[place, vl].add(event.cycle, event.credit_blocks)
        if event.buffer_blocks is not None and not at_host:
            self._buffers[place].add(event.cycle, event.buffer_blocks)
        if event.blocks is not None:
            self._packet_sizes.add(event.blocks)
        if event.name == "send" and event.until is not None:
            self._bars[place].append(_Bar(event.cycle, event.until + 1, event.packet or ""))
            waits = self._waits.get((place, vl)) if vl is not None else None
            if waits and waits[-1].end is None:
                waits[-1].end = event.cycle
        elif event.name == "stall" and vl is not None:
            self._waits[place, vl].append(_Bar(event.cycle, None))
        elif event.name == "deliver":
            self._deliveries[place].append(event.cycle)

    @property
    def _right(self) -> int:
        """Where the picture ends: past the last event, so that its value is a line and not a point."""
        return self._end + max(1, (self._end - self._start) // _MARGIN)

    def save(self, *paths: Path) -> None:
        """Draw into files, by their suffix (.svg, .png).

        Raises:
            OutputError: one cannot be written.
        """
        with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
            # A title may be in any script; the font draws what it lacks as boxes.
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            figure = self._draw()
            for path in paths:
                # Without a date the same run gives the same file.
                metadata = {"Date": None} if path.suffix == ".svg" else {}
                with whole_file(path) as temporary:
                    figure.savefig(temporary, dpi=_DPI, metadata=metadata, facecolor="white")

    def _draw(self) -> Figure:
        lanes = [port for port in self._topology.linked_ports() if port in self._bars][:_MAX_LANES]
        heights = [0.5 + 0.5 * max(1, len(lanes)), 2.2, 2.2]
        figure = Figure(figsize=(_WIDTH_INCHES, sum(heights) + 2.2), layout="constrained")
        FigureCanvasAgg(figure)
        packets, credit, buffers = figure.subplots(3, 1, sharex=True, height_ratios=heights)
        beginning = ", the beginning" if self.cut_off else ""
        figure.suptitle(f"{self._title}{beginning}", x=0.01, ha="left", fontsize=15, fontweight="bold")
        self._draw_packets(packets, lanes)
        self._draw_credits(credit)
        self._draw_buffers(buffers)
        for axes in (packets, credit, buffers):
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="x", color=_GRID, linewidth=0.6)
            axes.set_axisbelow(True)
        self._draw_time(buffers)
        _freeze_layout(figure)
        return figure

    def _draw_packets(self, axes: Axes, lanes: list[Port]) -> None:
        labelled = (self._end - self._start) * _LABEL_SHARE
        one_flow = len({bar.packet.partition("/")[0] for bars in self._bars.values() for bar in bars}) == 1
        for y, lane in enumerate(lanes):
            for bar in self._bars[lane]:
                flow, _, sequence = bar.packet.partition("/")
                width = (bar.end or self._right) - bar.start
                colour = _COLOURS[int((sequence if one_flow else flow) or 0) % len(_COLOURS)]
                axes.broken_barh([(bar.start, width)], (y - 0.3, 0.6), facecolor=colour, edgecolor="white")
                if width >= labelled and sequence:
                    axes.text(bar.start + width / 2, y, sequence, ha="center", va="center", color="white")
        for (port, _), waits in self._waits.items():
            if port in lanes:
                spans = [(wait.start, (wait.end or self._right) - wait.start) for wait in waits]
                axes.broken_barh(spans, (lanes.index(port) - 0.3, 0.6), **_WAITING)
        handles: list[Artist] = []
        if self._waits:
            handles.append(Patch(label="waits for credits", **_WAITING))
        for host, cycles in self._deliveries.items():
            far = self._topology.far_end(host)
            if far in lanes:
                axes.plot(cycles, [lanes.index(far) + 0.42] * len(cycles), **_DELIVERED)
        if self._deliveries:
            handles.append(Line2D([], [], label="handed to its host", **_DELIVERED))
        axes.set_yticks(range(len(lanes)), [f"{lane} \u2192 {self._topology.far_end(lane)}" for lane in lanes])
        axes.set_ylim(max(1, len(lanes)) - 0.35, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.set_title("Packets on the links, by number", **_PANEL_TITLE)
        if handles:
            axes.legend(handles=handles, **_LEGEND)

    def _draw_credits(self, axes: Axes) -> None:
        several = len({vl for _, vl in self._credits}) > 1
        for number, ((port, vl), steps) in enumerate(list(self._credits.items())[:_MAX_LINES]):
            self._steps(axes, steps, number, f"{port}, VL{vl}" if several else str(port))
        self._finish_lines(axes, "Credits left to the senders")

    def _draw_buffers(self, axes: Axes) -> None:
        shown = list(self._buffers.items())[:_MAX_LINES]
        for number, (port, steps) in enumerate(shown):
            capacity = self._capacity(port)
            self._steps(axes, _Steps([self._start, *steps.cycles], [0, *steps.values]), number, f"{port} in use")
            if len({self._capacity(other) for other, _ in shown}) == 1 and number == 0:
                axes.axhline(capacity, color=_INK, linewidth=1, linestyle=(0, (4, 3)), label=f"room for {capacity}")
        self._finish_lines(axes, "Input buffers of the switches")

    def _capacity(self, port: Port) -> int:
        return self._topology.receive_blocks(port) * self._topology.fabric.nodes[port.node].vls

    def _steps(self, axes: Axes, steps: _Steps, number: int, label: str) -> None:
        cycles, values = [*steps.cycles, self._right], [*steps.values, steps.values[-1]]
        colour = _COLOURS[number % len(_COLOURS)]
        axes.step(cycles, values, where="post", color=colour, linewidth=1.8, label=label)
        axes.fill_between(cycles, values, step="post", color=colour, alpha=0.12, linewidth=0)

    def _finish_lines(self, axes: Axes, title: str) -> None:
        axes.set_title(title, **_PANEL_TITLE)
        axes.set_ylim(bottom=0)
        axes.margins(y=0.15)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_ylabel("blocks of 64 bytes")
        if len(self._packet_sizes) == 1:
            (size,) = self._packet_sizes
            axes.set_ylabel(f"blocks of 64 bytes\n({size} a packet)")
            if axes.get_ylim()[1] <= _MAX_TICKS * size:
                axes.yaxis.set_major_locator(MultipleLocator(size))
        if axes.get_legend_handles_labels()[0]:
            axes.legend(**_LEGEND)

    def _draw_time(self, axes: Axes) -> None:
        """Microseconds since traffic may start below, cycles of the trace under them."""
        axes.set_xlim(self._start, self._right)
        per_us = 1_000 / self._symbol_time_ns

        def microseconds(cycles: Any) -> Any:
            return (cycles - self._start) / per_us

        def cycles(microseconds: Any) -> Any:
            return microseconds * per_us + self._start

        micro = axes.secondary_xaxis(-0.28, functions=(microseconds, cycles))
        micro.set_xlabel(f"µs since traffic may start (a cycle is {self._symbol_time_ns:g} ns)")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda cycle, _: f"{cycle:,.0f}"))
        axes.set_xlabel("cycle")


def _freeze_layout(figure: Figure) -> None:
    """Lay the figure out now, to four digits: the solver's last ones are not the same from run to run."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position().bounds
        axes.set_position((round(left, 4), round(bottom, 4), round(width, 4), round(height, 4)))
