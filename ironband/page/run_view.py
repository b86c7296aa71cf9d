"""What a page asks of a run: any part of it, in about as many points as it has pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cosim.analysis.event_table import EVENT_NAMES, EventColumns

__all__ = ["RunView"]

_SEND: Final = EVENT_NAMES.index("send")
_STALL: Final = EVENT_NAMES.index("stall")
_DELIVER: Final = EVENT_NAMES.index("deliver")
_STATE: Final = EVENT_NAMES.index("state")
_MARKED: Final = {EVENT_NAMES.index(name): name for name in ("deliver", "drop", "error")}
_POINTS_PER_PIXEL: Final = 2
_MOST_MARKS: Final = 400
"""Of a lane; of more those that stand apart are shown."""
_CHOSEN: Final = 6
"""Lines of a chart, where the page does not ask for some ports."""
_CHOSEN_LANES: Final = 8
_EVER: Final = 1 << 62

_Cycles = NDArray[np.int64]
_Values = NDArray[np.int32]


@dataclass(frozen=True)
class _Steps:
    """A value that holds from each of these cycles to the next."""

    cycles: _Cycles
    values: _Values

    def at(self, cycles: _Cycles) -> list[int | None]:
        """The value in each cycle; None before the first."""
        places = np.searchsorted(self.cycles, cycles, side="right") - 1
        unknown = int(np.searchsorted(places, 0))
        known: list[int] = self.values[places[unknown:]].tolist()
        return [None] * unknown + known

    def between(self, edges: _Cycles) -> tuple[list[int | None], list[int | None]]:
        """The least and the greatest value from each edge up to the next, the last edge aside."""
        places = np.searchsorted(self.cycles, edges, side="left")
        least = self.at(edges[:-1])
        most = list(least)
        changing = np.flatnonzero(np.diff(places))
        if len(changing):
            # Of those between nothing changes, so that each begins where the one before ends.
            begins, inside = places[changing], self.values[: places[-1]]
            lows, highs = np.minimum.reduceat(inside, begins).tolist(), np.maximum.reduceat(inside, begins).tolist()
            for bucket, low, high in zip(changing.tolist(), lows, highs, strict=True):
                before = least[bucket]
                least[bucket] = low if before is None else min(low, before)
                most[bucket] = high if before is None else max(high, before)
        return least, most

    def inside(self, first: int, last: int) -> _Cycles:
        """The cycles after `first` and before `last` in which it is set."""
        return self.cycles[np.searchsorted(self.cycles, first, side="right") : np.searchsorted(self.cycles, last)]


@dataclass(frozen=True)
class _Bars:
    """Spans that begin one after another: packets on a link, or waits for credits."""

    begin: _Cycles
    end: _Cycles
    packet: _Values

    @cached_property
    def _busy(self) -> _Cycles:
        return np.concatenate(([0], np.cumsum(self.end - self.begin)))

    def busy_until(self, cycles: _Cycles) -> _Cycles:
        """How many cycles before each of these are in a span."""
        after = np.searchsorted(self.begin, cycles, side="right")
        over = (
            np.where(after > 0, np.maximum(self.end[np.maximum(after - 1, 0)] - cycles, 0), 0) if len(self.end) else 0
        )
        return self._busy[after] - over

    def within(self, first: int, last: int) -> slice:
        """Those with a cycle from `first` up to before `last`."""
        low = int(np.searchsorted(self.end, first, side="right"))
        return slice(low, int(np.searchsorted(self.begin, last, side="left")))


class RunView:
    """Answers of a run, each a value that JSON has.

    The events do not change. Of a run that goes on a new view is made when there are more.
    """

    def __init__(self, head: dict[str, Any], events: EventColumns) -> None:
        self.head = head
        self._events = events
        self._flights = [link["flight"] for link in head["links"] for _ in ("a", "b")]
        self._by_port = _groups(events.port, len(events.ports))

    # What there is ---------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """Head and extent, and the names of ports."""
        return self.head | self.extent() | {"port_names": [str(port) for port in self._events.ports]}

    def extent(self) -> dict[str, Any]:
        """The number of events, and their cycles; of a fabric that is served, whether it still is."""
        events = self._events
        start = self.head["start"]
        first = int(np.searchsorted(events.cycle, start)) if len(events) else 0
        live = {"live": self.head["live"]} if "live" in self.head else {}
        return live | {
            "events": len(events),
            "first": int(events.cycle[0]) if len(events) else 0,
            "begin": int(events.cycle[first]) if first < len(events) else start,
            "last": int(max(events.cycle[-1], events.until.max())) + 1 if len(events) else start + 1,
            "packets": len(events.packets),
        }

    def series(self, first: int, last: int, pixels: int, ports: Sequence[int]) -> dict[str, Any]:
        """Credits, buffers and lanes of packets, from cycle `first` up to `last`; of some ports, or the busiest."""
        edges = np.unique(np.linspace(first, last, pixels + 1).astype(np.int64))
        return {
            "credits": _lines(self._chosen(self._credits, ports, self._at_host), edges),
            "buffers": _lines(self._chosen(self._buffers, ports, lambda port: not self._at_host(port)), edges),
            "lanes": [
                self._lane(port, first, last, edges) for port in (ports or self._first_lanes) if port in self._sends
            ],
        }

    def load(self, first: int, last: int) -> dict[str, Any]:
        """Of each end of a link what leaves there: the share of cycles with packets; state and waits at `last`."""
        ends = 2 * len(self.head["links"])
        edges = np.array([first, last])
        load, states, waits = [0.0] * ends, [""] * ends, []
        for port, bars in self._sends.items():
            if port < ends:
                busy = bars.busy_until(edges)
                load[port] = round(float(busy[1] - busy[0]) / max(1, last - first), 4)
        for port, changes in self._states.items():
            place = int(np.searchsorted(self._events.cycle[changes], last, side="right")) - 1
            if port < ends and place >= 0:
                states[port] = self._events.text_of(int(changes[place])).removeprefix("becomes ")
        for port, bars in self._waits.items():
            spans = bars.within(last, last + 1)
            if port < ends and spans.stop > spans.start:
                waits.append(port)
        return {"load": load, "states": states, "waits": waits}

    def list_events(self, first: int, count: int, ports: Sequence[int]) -> list[dict[str, Any]]:
        """The events from a cycle on, of some ports or of all."""
        events = self._events
        if ports:
            wanted = np.sort(np.concatenate([self._by_port[port] for port in ports if port < len(self._by_port)]))
            wanted = wanted[np.searchsorted(events.cycle[wanted], first) :][:count]
        else:
            low = int(np.searchsorted(events.cycle, first))
            wanted = np.arange(low, min(low + count, len(events)))
        return [self._told(int(event)) for event in wanted]

    def packet(self, number: int) -> dict[str, Any] | None:
        """The way of a packet, and what became of each of its cycles; None if there is no such packet."""
        if not 0 <= number < len(self._events.packets):
            return None
        own = self._by_packet[number]
        label = self._events.packets[number]
        flow = label.partition("/")[0]
        beside = [
            next((n for n in numbers if self._events.packets[n].partition("/")[0] == flow), None)
            for numbers in (range(number - 1, -1, -1), range(number + 1, len(self._events.packets)))
        ]
        return {
            "packet": number,
            "name": self._packet_name(label),
            "before": beside[0],
            "after": beside[1],
            "events": [self._told(int(event)) for event in own],
            **self._way(own),
        }

    # One packet ------------------------------------------------------------------------------------------

    def _way(self, own: NDArray[np.int64]) -> dict[str, Any]:
        """The nodes that a packet passes, its hops between them, and its time in spans without gaps."""
        events, nodes = self._events, self.head["nodes"]
        way = _Way()
        stalled: int | None = None
        for event in own:
            name, port, cycle = EVENT_NAMES[events.name[event]], int(events.port[event]), int(events.cycle[event])
            if port >= len(self._flights):
                continue
            here, there = self._ends(port)
            where = str(events.ports[port])
            if name == "stall":
                stalled = cycle
            elif name == "send":
                since, until, flight = int(events.since[event]), int(events.until[event]), self._flights[port]
                in_switch = nodes[here]["kind"] == "switch"
                waits = f"in the {'switch' if in_switch else 'host'}, until its turn comes at {where}"
                if way.now is None:
                    way.now = cycle if since < 0 else since
                    way.columns.append(here)
                elif since >= 0:
                    way.span(since, "header", here, "its header comes in and is looked at")
                if stalled is not None:
                    way.span(stalled, "queue", here, waits)
                    way.span(cycle, "credits", here, f"at {where}, without credits")
                way.span(cycle, "queue", here, waits)
                stalled = None
                way.hops.append(
                    {
                        "from": here,
                        "to": there,
                        "port": where,
                        "first": cycle,
                        "last": until,
                        "first_in": cycle + flight,
                        "last_in": until + flight,
                    }
                )
                way.span(cycle + flight, "flight", there, f"its first row is on the cable from {where}")
                way.columns.append(there)
            elif name == "deliver" and way.hops:
                way.span(way.hops[-1]["last_in"], "rows", here, f"its other rows come in at {where}")
                way.span(cycle, "host", here, f"checked at {where}, and handed to the host")
        return {"columns": way.columns, "hops": way.hops, "spans": way.spans}

    def _ends(self, port: int) -> tuple[int, int]:
        """The nodes at this end of a link and at the other."""
        link = self.head["links"][port // 2]
        here, there = (link["a"], link["b"]) if port % 2 == 0 else (link["b"], link["a"])
        return here[0], there[0]

    def _told(self, event: int) -> dict[str, Any]:
        events = self._events
        packet = int(events.packet[event])
        return {
            "cycle": int(events.cycle[event]),
            "place": str(events.ports[events.port[event]]),
            "event": EVENT_NAMES[events.name[event]],
            "text": events.text_of(event),
            "packet": None if packet < 0 else packet,
            "credits": None if events.credits[event] < 0 else int(events.credits[event]),
        }

    def _packet_name(self, label: str) -> str:
        flow, _, sequence = label.partition("/")
        flows = self.head["flows"]
        name = flows[int(flow)] if len(flows) > 1 and int(flow) < len(flows) else "packet"
        return f"{name} {sequence}"

    # Series ----------------------------------------------------------------------------------------------

    def _lane(self, port: int, first: int, last: int, edges: _Cycles) -> dict[str, Any]:
        """Packets that leave by a port, and waits; each one, or of many the share of each bucket."""
        marks: list[list[Any]] = []
        for kind, name in _MARKED.items():
            cycles = self._marked[port, kind]
            cycles = cycles[np.searchsorted(cycles, first) : np.searchsorted(cycles, last)]
            if len(cycles) > _MOST_MARKS:
                cycles = cycles[:: len(cycles) // _MOST_MARKS + 1]
            marks += [[int(cycle), name] for cycle in cycles]
        return {
            "port": port,
            "packets": _spans(self._sends[port], first, last, edges, self._flow_of),
            "waits": _spans(self._waits[port], first, last, edges, None) if port in self._waits else {"bars": []},
            "marks": marks,
        }

    def _flow_of(self, packet: int) -> list[Any]:
        """The number of a packet, what it is called, and the number of its flow."""
        if packet < 0:
            return [-1, "", 0]
        flow, _, sequence = self._events.packets[packet].partition("/")
        return [packet, sequence, int(flow)]

    def _chosen(
        self, series: dict[tuple[int, int], _Steps], ports: Sequence[int], fits: Callable[[int], bool]
    ) -> list[tuple[int, int, _Steps]]:
        """Of the ports that are asked for all that there is; of none in particular those that begin first to change."""
        start = self.head["start"]
        if ports:
            wanted = [key for key in series if key[0] in ports]
        else:
            changing = [(steps.inside(start, _EVER)[:1].tolist(), key) for key, steps in series.items() if fits(key[0])]
            wanted = [key for cycles, key in sorted(changing) if cycles]
        return [(*key, series[key]) for key in wanted[:_CHOSEN]]

    def _at_host(self, port: int) -> bool:
        return port < len(self._flights) and self.head["nodes"][self._ends(port)[0]]["kind"] == "host"

    @cached_property
    def _credits(self) -> dict[tuple[int, int], _Steps]:
        """By port and VL."""
        events = self._events
        shown = np.flatnonzero((events.credits >= 0) & (events.vl >= 0))
        keys = events.port[shown].astype(np.int64) * 16 + events.vl[shown]
        return {
            (int(key) // 16, int(key) % 16): _Steps(events.cycle[own], events.credits[own])
            for key, own in _keyed(keys, shown)
        }

    @cached_property
    def _buffers(self) -> dict[tuple[int, int], _Steps]:
        """By port, whose VLs are together."""
        events = self._events
        shown = np.flatnonzero(events.buffer >= 0)
        return {
            (int(port), -1): _Steps(events.cycle[own], events.buffer[own])
            for port, own in _keyed(events.port[shown], shown)
        }

    @cached_property
    def _sends(self) -> dict[int, _Bars]:
        events = self._events
        shown = np.flatnonzero((events.name == _SEND) & (events.until >= 0))
        return {
            int(port): _Bars(events.cycle[own], events.until[own] + 1, events.packet[own])
            for port, own in _keyed(events.port[shown], shown)
        }

    @cached_property
    def _waits(self) -> dict[int, _Bars]:
        """Where a port has nothing to send but what lacks credits: from a stall up to the port's next packet."""
        events = self._events
        shown = np.flatnonzero(events.name == _STALL)
        end = self.run()["last"]
        found = {}
        for port, own in _keyed(events.port[shown], shown):
            sends = self._sends.get(int(port))
            begin = events.cycle[own]
            if sends is None:
                ends = np.full(len(begin), end)
            else:
                ends = np.append(sends.begin, end)[np.searchsorted(sends.begin, begin)]
            # Stalls of several VLs may overlap; the time is one.
            ends = np.minimum(ends, np.append(begin[1:], end))
            found[int(port)] = _Bars(begin, ends, events.packet[own])
        return found

    @cached_property
    def _marked(self) -> dict[tuple[int, int], _Cycles]:
        """The cycles of what is marked on lanes, by port and kind."""
        name, cycle = self._events.name, self._events.cycle
        return {
            (port, kind): cycle[own[name[own] == kind]] for port, own in enumerate(self._by_port) for kind in _MARKED
        }

    @cached_property
    def _states(self) -> dict[int, NDArray[np.int64]]:
        shown = np.flatnonzero(self._events.name == _STATE)
        return {int(port): own for port, own in _keyed(self._events.port[shown], shown)}

    @cached_property
    def _by_packet(self) -> list[NDArray[np.int64]]:
        return _groups(self._events.packet, len(self._events.packets))

    @cached_property
    def _first_lanes(self) -> list[int]:
        """The ports that send, in the order of the links."""
        return sorted(self._sends)[:_CHOSEN_LANES]


class _Way:
    """Time that passes on a packet's way, told without gaps."""

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.hops: list[dict[str, Any]] = []
        self.spans: list[dict[str, Any]] = []
        self.now: int | None = None

    def span(self, until: int, kind: str, node: int, text: str) -> None:
        """From where the last ended until a cycle."""
        if self.now is not None and until > self.now:
            self.spans.append({"from": self.now, "to": until, "kind": kind, "node": node, "text": text})
            self.now = until


def _keyed(keys: NDArray[Any], events: NDArray[np.int64]) -> list[tuple[Any, NDArray[np.int64]]]:
    """The events of each key, in their order."""
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable")
    found, begins = np.unique(keys[order], return_index=True)
    return list(zip(found, np.split(events[order], begins[1:]), strict=True))


def _groups(numbers: NDArray[np.int32], count: int) -> list[NDArray[np.int64]]:
    """The events of each number from 0 to `count` - 1."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(count + 1)))[1:-1]


def _lines(series: Sequence[tuple[int, int, _Steps]], edges: _Cycles) -> dict[str, Any]:
    """Lines over the same cycles: at each change, or of many changes the least and the greatest of each bucket."""
    first, last = edges[0], edges[-1]
    inside = [steps.inside(first, last) for _, _, steps in series]
    total = sum(map(len, inside))
    lines: list[dict[str, Any]] = [{"port": port, "vl": vl} for port, vl, _ in series]
    if total <= _POINTS_PER_PIXEL * len(edges):
        x = np.unique(np.concatenate([*inside, [first, last]]))
        for line, (_, _, steps) in zip(lines, series, strict=True):
            line["y"] = steps.at(x)
        return {"x": x.tolist(), "lines": lines}
    middles = (edges[:-1] + edges[1:]) / 2
    x = np.stack([edges[:-1], middles], axis=1).ravel()
    for line, (_, _, steps) in zip(lines, series, strict=True):
        least, most = steps.between(edges)
        line["y"] = [value for pair in zip(least, most, strict=True) for value in pair]
    return {"x": x.tolist(), "lines": lines}


def _spans(
    bars: _Bars, first: int, last: int, edges: _Cycles, name: Callable[[int], list[Any]] | None
) -> dict[str, Any]:
    shown = bars.within(first, last)
    if shown.stop - shown.start <= len(edges) // _POINTS_PER_PIXEL:
        spans = zip(bars.begin[shown].tolist(), bars.end[shown].tolist(), bars.packet[shown].tolist(), strict=True)
        return {"bars": [[begin, end, *(name(packet) if name else [packet])] for begin, end, packet in spans]}
    busy = np.diff(bars.busy_until(edges)) / np.diff(edges)
    return {"edges": edges.tolist(), "busy": np.round(busy, 3).tolist()}
