"""A picture of a run: packets on the links, credits of the senders, and buffers of the switches, over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from cosim.analysis.event import Event
from cosim.pictures.drawing import (
    COLOURS,
    GRID,
    INK,
    LEGEND,
    PANEL_TITLE,
    STALL,
    drawing_style,
    freeze_layout,
    save_figure,
)
from cosim.scenario.limits import MAX_CYCLES
from cosim.scenario.tables import PanelName
from cosim.topology.topology import Port, Topology
from wire.parameters import AdapterParameters

__all__ = ["Picture", "View"]

_MAX_EVENTS = 6_000
_MAX_LANES = 12
_MAX_LINES = 6
_MAX_NAMES = 10
_LABEL_SHARE = 0.012
"""A bar is labelled if it is at least this wide, as a share of the picture."""

_WIDTH_INCHES = 11
_MAX_TICKS = 8
_TIME_BELOW = 0.616
"""Of the axis of µs below the one of cycles, in inches before the layout."""
_MARGIN = 40
_WAITING: dict[str, Any] = {"facecolor": "none", "edgecolor": STALL, "hatch": "////", "linewidth": 0}
_DELIVERED: dict[str, Any] = {"color": INK, "marker": "^", "markersize": 6, "linestyle": "none", "clip_on": False}
_ERROR: dict[str, Any] = {"color": STALL, "marker": "X", "markersize": 8, "linestyle": "none", "clip_on": False}


@dataclass
class _Steps:
    """A value that changes at some cycles."""

    cycles: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def add(self, cycle: int, value: int, start: int) -> None:
        """A new value; of those up to `start` the last holds there."""
        if cycle <= start:
            self.cycles.clear()
            self.values.clear()
        self.cycles.append(max(cycle, start))
        self.values.append(value)


@dataclass(slots=True)
class _Bar:
    """A packet on a link, or a wait for credits, from its first cycle to the one after its last."""

    start: int
    end: int | None
    packet: str = ""


@dataclass(frozen=True)
class View:
    """What of a run is drawn.

    Attributes:
        start: the first cycle.
        end: the cycle after the last; None for all that there is.
        panels: parts of the picture, from top to bottom.
        ports: whose packets are drawn, in this order, and the buffers that they go to; None for the first ports
            that send and all buffers.
        credits: whose credits are drawn; None for those of the hosts.
        flow_names: by number, for the legend; flows of one name have one colour.
    """

    start: int
    end: int | None = None
    panels: tuple[PanelName, ...] = get_args(PanelName)
    ports: tuple[Port, ...] | None = None
    credits: tuple[Port, ...] | None = None
    flow_names: Sequence[str] = ()


class Picture:
    """Collects the events of a story, and draws them.

    Of a long run it shows the beginning: as many cycles as 6,000 events take.
    """

    def __init__(self, topology: Topology, title: str, symbol_time_ns: float, start: int, view: View) -> None:
        self._topology = topology
        self._title = title
        self._symbol_time_ns = symbol_time_ns
        self._start = start
        self._view = view
        self._receivers = None if view.ports is None else {topology.far_end(port) for port in view.ports}
        self._end = view.start + 1
        self._events = 0
        self._packet_sizes: set[int] = set()
        self._credits: defaultdict[tuple[Port, int], _Steps] = defaultdict(_Steps)
        self._buffers: defaultdict[Port, _Steps] = defaultdict(_Steps)
        self._bars: defaultdict[Port, list[_Bar]] = defaultdict(list)
        self._waits: defaultdict[tuple[Port, int], list[_Bar]] = defaultdict(list)
        self._deliveries: defaultdict[Port, list[int]] = defaultdict(list)
        self._errors: defaultdict[Port, list[int]] = defaultdict(list)

    @property
    def cut_off(self) -> bool:
        """True if the run goes on after what is shown."""
        return self._events >= _MAX_EVENTS

    def add(self, event: Event) -> None:
        """Take one event, in the order of cycles."""
        view = self._view
        if self.cut_off or (view.end is not None and event.cycle >= view.end):
            return
        place, vl = event.place, event.vl
        at_host = isinstance(self._topology.fabric.nodes[place.node], AdapterParameters)
        ours = at_host if view.credits is None else place in view.credits
        receives = self._receivers is None or place in self._receivers
        if event.credit_blocks is not None and vl is not None and ours:
            self._credits[place, vl].add(event.cycle, event.credit_blocks, view.start)
        if event.buffer_blocks is not None and receives and not at_host:
            self._buffers[place].add(event.cycle, event.buffer_blocks, view.start)
        if (event.until or event.cycle) < view.start:
            return
        if not (view.ports is None or place in view.ports or receives):
            return
        self._events += 1
        self._end = min(max(self._end, event.cycle, event.until or 0), view.end or MAX_CYCLES)
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
        elif event.name == "error":
            self._errors[place].append(event.cycle)

    @property
    def _right(self) -> int:
        """Where the picture ends: past the last event, so that its value is a line and not a point."""
        return self._view.end or self._end + max(1, (self._end - self._view.start) // _MARGIN)

    def save(self, *paths: Path) -> None:
        """Draw into files, by their suffix (.svg, .png).

        Raises:
            OutputError: one cannot be written.
        """
        with drawing_style():
            save_figure(self._draw(), paths)

    def _draw(self) -> Figure:
        sending = [port for port in self._topology.linked_ports() if port in self._bars]
        lanes = list(sending[:_MAX_LANES] if self._view.ports is None else self._view.ports)
        heights = [0.5 + 0.5 * max(1, len(lanes)) if panel == "packets" else 2.2 for panel in self._view.panels]
        figure = Figure(figsize=(_WIDTH_INCHES, sum(heights) + 2.2), layout="constrained")
        below = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
        beginning = ", the beginning" if self.cut_off else ""
        figure.suptitle(f"{self._title}{beginning}", x=0.01, ha="left", fontsize=15, fontweight="bold")
        for panel, axes in zip(self._view.panels, below, strict=True):
            match panel:
                case "packets":
                    self._draw_packets(axes, lanes)
                case "credits":
                    self._draw_credits(axes)
                case "buffers":
                    self._draw_buffers(axes)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="x", color=GRID, linewidth=0.6)
            axes.set_axisbelow(True)
        self._draw_time(below[-1], heights[-1])
        freeze_layout(figure)
        return figure

    def _draw_packets(self, axes: Axes, lanes: list[Port]) -> None:
        labelled = (self._end - self._view.start) * _LABEL_SHARE
        flows = {bar.packet.partition("/")[0] for bars in self._bars.values() for bar in bars} - {""}
        names = self._names(flows)
        for y, lane in enumerate(lanes):
            for bar in self._bars[lane]:
                flow, _, sequence = bar.packet.partition("/")
                width = (bar.end or self._right) - bar.start
                number = _number_in(sequence)
                colour = names.index(self._name(flow)) if len(flows) > 1 and flow else number
                face = COLOURS[colour % len(COLOURS)]
                axes.broken_barh([(bar.start, width)], (y - 0.3, 0.6), facecolor=face, edgecolor="white")
                left, right = max(bar.start, self._view.start), min(bar.start + width, self._right)
                if right - left >= labelled and sequence:
                    axes.text((left + right) / 2, y, str(number), ha="center", va="center", color="white")
        for (port, _), waits in self._waits.items():
            if port in lanes:
                spans = [(wait.start, (wait.end or self._right) - wait.start) for wait in waits]
                axes.broken_barh(spans, (lanes.index(port) - 0.3, 0.6), **_WAITING)
        handles: list[Artist] = []
        if len(flows) > 1:
            handles += [
                Patch(label=name, facecolor=COLOURS[index % len(COLOURS)])
                for index, name in enumerate(names[:_MAX_NAMES])
            ]
        if self._waits:
            handles.append(Patch(label="waits for credits", **_WAITING))
        if self._mark(axes, lanes, self._deliveries, _DELIVERED, 0.42):
            handles.append(Line2D([], [], label="handed to its host", **_DELIVERED))
        if self._mark(axes, lanes, self._errors, _ERROR, -0.38):
            handles.append(Line2D([], [], label="injected error", **_ERROR))
        axes.set_yticks(range(len(lanes)), [f"{lane} \u2192 {self._topology.far_end(lane)}" for lane in lanes])
        axes.set_ylim(max(1, len(lanes)) - 0.35, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.set_title("Packets on the links, by number", **PANEL_TITLE)
        if handles:
            axes.legend(handles=handles, **LEGEND)

    def _name(self, flow: str) -> str:
        """What the legend calls a flow of that number."""
        number = int(flow)
        return self._view.flow_names[number] if number < len(self._view.flow_names) else f"flow {number}"

    def _names(self, flows: set[str]) -> list[str]:
        """The names of these flows, each once, in the order of their numbers."""
        return list(dict.fromkeys(self._name(flow) for flow in sorted(flows, key=int)))

    def _mark(
        self, axes: Axes, lanes: list[Port], events: Mapping[Port, list[int]], style: dict[str, Any], above: float
    ) -> bool:
        """Marks at the lanes that a port of these events sends or receives by; whether there were any."""
        for port, cycles in events.items():
            shown = [cycle for cycle in cycles if self._view.start <= cycle < self._right]
            for lane in lanes:
                if port in (lane, self._topology.far_end(lane)):
                    axes.plot(shown, [lanes.index(lane) + above] * len(shown), **style)
        return bool(events)

    def _draw_credits(self, axes: Axes) -> None:
        start = self._view.start
        changes = {lane: [cycle for cycle in steps.cycles if cycle > start] for lane, steps in self._credits.items()}
        # Of who sends or waits, in the order in which they begin to.
        shown = sorted((cycles or [start], lane) for lane, cycles in changes.items() if cycles or lane in self._waits)
        several = len({vl for _, (_, vl) in shown}) > 1
        for number, (_, (port, vl)) in enumerate(shown[:_MAX_LINES]):
            self._steps(axes, self._credits[port, vl], number, f"{port}, VL{vl}" if several else str(port))
        self._finish_lines(axes, "Credits left to the senders")

    def _draw_buffers(self, axes: Axes) -> None:
        shown = list(self._buffers.items())[:_MAX_LINES]
        for number, (port, steps) in enumerate(shown):
            capacity = self._capacity(port)
            self._steps(axes, _Steps([self._start, *steps.cycles], [0, *steps.values]), number, f"{port} in use")
            if len({self._capacity(other) for other, _ in shown}) == 1 and number == 0:
                axes.axhline(capacity, color=INK, linewidth=1, linestyle=(0, (4, 3)), label=f"room for {capacity}")
        self._finish_lines(axes, "Input buffers of the switches")

    def _capacity(self, port: Port) -> int:
        return self._topology.receive_blocks(port) * self._topology.fabric.nodes[port.node].vls

    def _steps(self, axes: Axes, steps: _Steps, number: int, label: str) -> None:
        cycles, values = [*steps.cycles, self._right], [*steps.values, steps.values[-1]]
        colour = COLOURS[number % len(COLOURS)]
        axes.step(cycles, values, where="post", color=colour, linewidth=1.8, label=label)
        axes.fill_between(cycles, values, step="post", color=colour, alpha=0.12, linewidth=0)

    def _finish_lines(self, axes: Axes, title: str) -> None:
        axes.set_title(title, **PANEL_TITLE)
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
            axes.legend(**LEGEND)

    def _draw_time(self, axes: Axes, height: float) -> None:
        """Microseconds since traffic may start below, cycles of the trace under them."""
        axes.set_xlim(self._view.start, self._right)
        per_us = 1_000 / self._symbol_time_ns

        def microseconds(cycles: Any) -> Any:
            return (cycles - self._start) / per_us

        def cycles(microseconds: Any) -> Any:
            return microseconds * per_us + self._start

        micro = axes.secondary_xaxis(-_TIME_BELOW / height, functions=(microseconds, cycles))
        micro.set_xlabel(f"µs since traffic may start (a cycle is {self._symbol_time_ns:g} ns)")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda cycle, _: f"{cycle:,.0f}"))
        axes.set_xlabel("cycle")


def _number_in(sequence: str) -> int:
    """The number in what a packet is called, such as `3`, `ACK PSN 3` or `PSN 3 again`; 0 if there is none."""
    return next((int(word) for word in sequence.split() if word.isdecimal()), 0)
