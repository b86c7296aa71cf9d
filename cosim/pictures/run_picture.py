"""A picture of a run: packets on the links, credits of the senders, and buffers of the switches, over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
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
_MARK_SHARE, _DIGIT_SHARE = 0.013, 0.0055
"""What a delivery's mark and each digit of its number take: it is numbered if the next one is as far away."""

_WAITING: dict[str, Any] = {"facecolor": "none", "linewidth": 0}
_HATCHES = ("////", "\\\\\\\\")
"""Of even and odd VLs, so that two that wait at the same time are both seen."""

_DELIVERED: dict[str, Any] = {"marker": "^", "markersize": 6, "linestyle": "none", "clip_on": False}
_ERROR: dict[str, Any] = {"color": STALL, "marker": "X", "markersize": 8, "linestyle": "none", "clip_on": False}
_DROPPED: dict[str, Any] = {"color": STALL, "marker": "x", "markersize": 7, "linestyle": "none", "clip_on": False}
_BAD: dict[str, Any] = {"edgecolor": STALL, "linewidth": 1.5, "hatch": "xx", "alpha": 0.45}
_LOST: dict[str, Any] = {"facecolor": "white", "edgecolor": STALL, "linewidth": 1.5, "linestyle": (0, (3, 2))}
_LINES = ("-", (0, (5, 2)), (0, (1, 1)), (0, (5, 2, 1, 2)))
"""Of ports, where colours tell VLs apart."""


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
        self._buffers: defaultdict[tuple[Port, int], _Steps] = defaultdict(_Steps)
        self._bars: defaultdict[Port, list[_Bar]] = defaultdict(list)
        self._waits: defaultdict[tuple[Port, int], list[_Bar]] = defaultdict(list)
        self._deliveries: defaultdict[Port, list[tuple[int, str]]] = defaultdict(list)
        self._arrivals: defaultdict[tuple[Port, str], list[int]] = defaultdict(list)
        self._drops: defaultdict[tuple[Port, str], list[int]] = defaultdict(list)
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
        if event.buffer_vl_blocks is not None and vl is not None and receives and not at_host:
            self._buffers[place, vl].add(event.cycle, event.buffer_vl_blocks, view.start)
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
        elif event.name == "error":
            self._errors[place].append(event.cycle)
        elif event.name == "drop" and event.packet is not None:
            self._drops[place, event.packet].append(event.cycle)
        elif event.name in ("receive", "deliver") and event.packet is not None:
            self._arrivals[place, event.packet].append(event.cycle)
        if event.name == "deliver":
            self._deliveries[place].append((event.cycle, event.packet or ""))

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
        flows = {bar.packet.partition("/")[0] for bars in self._bars.values() for bar in bars} - {""}
        names = self._names(flows)

        def colour(packet: str) -> str:
            flow, _, sequence = packet.partition("/")
            number = names.index(self._name(flow)) if len(flows) > 1 and flow in flows else _number_in(sequence)
            return COLOURS[number % len(COLOURS)]

        handles: list[Artist] = []
        if len(flows) > 1:
            handles += [
                Patch(label=name, facecolor=COLOURS[index % len(COLOURS)])
                for index, name in enumerate(names[:_MAX_NAMES])
            ]
        fates = {
            self._draw_packet(axes, y, lane, bar, colour(bar.packet))
            for y, lane in enumerate(lanes)
            for bar in self._bars[lane]
        }
        if "bad" in fates:
            handles.append(Patch(label="found bad", **_BAD | {"facecolor": "white"}))
        if "lost" in fates:
            handles.append(Patch(label="lost", **_LOST))
        handles += self._draw_waits(axes, lanes)
        handles += self._draw_deliveries(axes, lanes, colour)
        handles += self._draw_marks(axes, lanes)
        axes.set_yticks(range(len(lanes)), [f"{lane} \u2192 {self._topology.far_end(lane)}" for lane in lanes])
        axes.set_ylim(max(1, len(lanes)) - 0.35, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.set_title("Packets on the links, by number", **PANEL_TITLE)
        if handles:
            axes.legend(handles=handles, **LEGEND)

    @property
    def _shown(self) -> int:
        """So many cycles."""
        return self._end - self._view.start

    def _draw_packet(self, axes: Axes, y: int, lane: Port, bar: _Bar, face: str) -> str:
        """A packet in a lane; `bad` or `lost` if it is, else nothing."""
        end = bar.end or self._right
        left, right = max(bar.start, self._view.start), min(end, self._right)
        wide = right - left >= self._shown * _LABEL_SHARE
        fate = self._fate(lane, bar)
        # An edge hides a bar that is not wider.
        look: dict[str, Any] = {"facecolor": face, "edgecolor": "white" if wide else face}
        look |= {"bad": _BAD, "lost": _LOST}.get(fate, {})
        axes.broken_barh([(bar.start, end - bar.start)], (y - 0.3, 0.6), **look)
        sequence = bar.packet.partition("/")[2]
        if wide and sequence:
            ink = INK if fate else "white"
            axes.text((left + right) / 2, y, str(_number_in(sequence)), ha="center", va="center", color=ink)
        return fate

    def _fate(self, lane: Port, bar: _Bar) -> str:
        """What becomes of a packet on a link: its receiver finds it bad, it never arrives, or nothing of that."""
        far = self._topology.far_end(lane)
        if far is None or not bar.packet or bar.end is None:
            return ""
        hit = any(bar.start <= cycle < bar.end for cycle in self._errors[lane])
        if not hit and (far, bar.packet) not in self._drops:
            return ""
        # What is sent again may be called the same.
        again = min(
            (one.start for one in self._bars[lane] if one.start > bar.start and one.packet == bar.packet),
            default=MAX_CYCLES,
        )
        dropped, arrived = (
            any(bar.start < cycle <= again for cycle in seen.get((far, bar.packet), ()))
            for seen in (self._drops, self._arrivals)
        )
        return "bad" if dropped else "lost" if hit and not arrived else ""

    @property
    def _vls(self) -> list[int]:
        """Those that are seen in this run."""
        return sorted({vl for seen in (self._credits, self._buffers, self._waits) for _, vl in seen})

    def _colour_of_vl(self, vl: int) -> str:
        return COLOURS[vl % len(COLOURS)] if len(self._vls) > 1 else STALL

    def _draw_waits(self, axes: Axes, lanes: list[Port]) -> list[Artist]:
        """Where VLs wait for credits, and what the legend says of it."""
        waiting = dict[int, Patch]()
        for (port, vl), waits in sorted(self._waits.items(), key=lambda item: item[0][1]):
            look = _WAITING | {"edgecolor": self._colour_of_vl(vl), "hatch": _HATCHES[vl % len(_HATCHES)]}
            who = f"VL{vl} waits" if len(self._vls) > 1 else "waits"
            if port in lanes:
                spans = [(wait.start, (wait.end or self._right) - wait.start) for wait in waits]
                axes.broken_barh(spans, (lanes.index(port) - 0.3, 0.6), **look)
                waiting[vl] = Patch(label=f"{who} for credits", **look)
        return list(waiting.values())

    def _draw_deliveries(self, axes: Axes, lanes: list[Port], colour: Callable[[str], str]) -> list[Artist]:
        """Deliveries under the lanes that lead to their hosts, by number where there is room."""
        shown = False
        for port, deliveries in self._deliveries.items():
            y = self._lane(lanes, self._topology.far_end(port), port)
            if y is None:
                continue
            found = [one for one in deliveries if one[0] < self._right]
            shown = shown or bool(found)
            for (cycle, packet), (then, _) in pairwise([*found, (MAX_CYCLES, "")]):
                axes.plot(cycle, y + 0.42, color=colour(packet), **_DELIVERED)
                sequence = packet.partition("/")[2]
                number = str(_number_in(sequence))
                if sequence and then - cycle >= self._shown * (_MARK_SHARE + len(number) * _DIGIT_SHARE):
                    at: dict[str, Any] = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
                    axes.annotate(number, (cycle, y + 0.43), fontsize=8, annotation_clip=False, **at)
        return [Line2D([], [], label="handed to its host", color=INK, **_DELIVERED)] if shown else []

    @staticmethod
    def _lane(lanes: list[Port], port: Port | None, other: Port | None) -> int | None:
        """Where what happens at a port is drawn: in its lane, or that of the link's other end if only that is there."""
        return next((lanes.index(one) for one in (port, other) if one in lanes), None)

    def _draw_marks(self, axes: Axes, lanes: list[Port]) -> list[Artist]:
        """Injected errors, and packets that were dropped where they waited, at the lanes of their senders."""
        drops: defaultdict[Port, list[int]] = defaultdict(list)
        for (port, packet), cycles in self._drops.items():
            far = self._topology.far_end(port)
            if far is None or all(bar.packet != packet for bar in self._bars.get(far, ())):
                drops[port] += cycles
        handles: list[Artist] = []
        for events, look, label in ((self._errors, _ERROR, "injected error"), (drops, _DROPPED, "dropped unsent")):
            at = {port: self._lane(lanes, port, self._topology.far_end(port)) for port in events}
            places = [(cycle, y - 0.38) for port, y in at.items() if y is not None for cycle in events[port]]
            if places:
                axes.plot(*zip(*places, strict=True), **look)
                handles.append(Line2D([], [], label=label, **look))
        return handles

    def _name(self, flow: str) -> str:
        """What the legend calls a flow of that number."""
        number = int(flow)
        return self._view.flow_names[number] if number < len(self._view.flow_names) else f"flow {number}"

    def _names(self, flows: set[str]) -> list[str]:
        """The names of these flows, each once, in the order of their numbers."""
        return list(dict.fromkeys(self._name(flow) for flow in sorted(flows, key=int)))

    def _draw_credits(self, axes: Axes) -> None:
        start = self._view.start
        changes = {lane: [cycle for cycle in steps.cycles if cycle > start] for lane, steps in self._credits.items()}
        # Of who sends or waits, in the order in which they begin to.
        shown = sorted((cycles or [start], lane) for lane, cycles in changes.items() if cycles or lane in self._waits)
        self._draw_lines(axes, [(lane, self._credits[lane]) for _, lane in shown[:_MAX_LINES]], "")
        self._finish_lines(axes, "Credits left to the senders")

    def _draw_buffers(self, axes: Axes) -> None:
        shown = list(self._buffers.items())[:_MAX_LINES]
        lines = [(lane, _Steps([self._start, *steps.cycles], [0, *steps.values])) for lane, steps in shown]
        self._draw_lines(axes, lines, " in use")
        rooms = {self._topology.receive_blocks(port) for (port, _), _ in shown}
        if len(rooms) == 1:
            (room,) = rooms
            each = " a VL" if any(self._topology.fabric.nodes[port.node].vls > 1 for (port, _), _ in shown) else ""
            axes.axhline(room, color=INK, linewidth=1, linestyle=(0, (4, 3)), label=f"room for {room}{each}")
        self._finish_lines(axes, "Input buffers of the switches")

    def _draw_lines(self, axes: Axes, lines: Sequence[tuple[tuple[Port, int], _Steps]], what: str) -> None:
        """A line for each port and VL: of several VLs each has a colour, else each port."""
        several = len({vl for (_, vl), _ in lines}) > 1
        ports = list(dict.fromkeys(port for (port, _), _ in lines))
        for (port, vl), steps in lines:
            number = ports.index(port)
            label = f"{port}, VL{vl}{what}" if several else f"{port}{what}"
            style = _LINES[number % len(_LINES)] if several else "-"
            cycles, values = [*steps.cycles, self._right], [*steps.values, steps.values[-1]]
            colour = COLOURS[(vl if several else number) % len(COLOURS)]
            axes.step(cycles, values, where="post", color=colour, linewidth=1.8, linestyle=style, label=label)
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
