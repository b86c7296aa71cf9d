"""Hands in the laboratory while a fabric is served: links cut and restored, errors, traffic, counters, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Final, get_args

from cosim.scenario.limits import MAX_CYCLES
from cosim.scenario.tables import ErrorKind
from cosim.stimulus.row_errors import link_error
from cosim.topology.topology import Port, no_such_node, port_named
from doors.door import NS_PER_CYCLE, STEP_CYCLES, Door
from doors.flows import LabFlow
from doors.mads.host_port import HostPort
from wire.parameters import FabricParameters, adapter_port, node_text, port_text, reset_cycles
from wire.registers import Counter, place_of_address, port_address
from wire.stimulus import Operation, injection_target
from wire.trace import Kind, Record, port_of_source
from wire.trace_layout import BusRead

__all__ = ["LINES", "Lab", "LabError"]

_ROW_KINDS: Final = tuple(kind for kind in get_args(ErrorKind) if not kind.startswith("link_"))
LINES: Final = (
    "cut PORT | restore PORT | reset NODE | stall HOST | release HOST | errors PORT KIND CYCLES | "
    "flow HOST HOST [RATE [BYTES [SL]]] | stop HOST HOST | alter HOST [BYTE] | counters PORT | "
    "run MILLISECONDS | time | quit"
)
_RATE, _BYTES, _SL = 0.5, 256, 0
_NEVER: Final = 0
_MOST_BYTES: Final = 4096
_MANY: Final = 12
_MOST_MS: Final = 100_000
_MS_CYCLES: Final = 1_000_000 // NS_PER_CYCLE


class LabError(Exception):
    """A line that says nothing that can be done; the text says what would."""


class Lab:
    """Does what lines say, in the fabric behind a door, and answers each with a line."""

    def __init__(self, fabric: FabricParameters, door: Door, seed: int) -> None:
        """SEED draws traffic and errors."""
        self._fabric = fabric
        self._door = door
        self._random = Random(f"{seed}/lab")
        self._nodes = list(fabric.nodes)
        self._links: dict[tuple[str, int], tuple[int, int]] = {}
        for index, link in enumerate(fabric.links):
            self._links[link.a, link.a_port] = index, 0
            self._links[link.b, link.b_port] = index, 1
        self._errors: dict[tuple[int, ErrorKind], int] = {}
        self._cut: set[int] = set()
        self._returns: dict[str, int] = {}  # nodes being reset, and a cycle in which that is over
        self._readings: list[_Reading] = []
        door.before_step = self._before_step

    def do(self, line: str, answer: Callable[[str], None]) -> None:
        """Do what a line says; `answer` takes a line, at once or when it is known.

        Raises:
            LabError: it says nothing that can be done.
        """
        words = line.split()
        match words:
            case ["cut" | "restore" as verb, port]:
                answer(self._connect(port, up=verb == "restore"))
            case ["reset", node]:
                answer(self._reset(node))
            case ["stall" | "release" as verb, host]:
                answer(self._stall(host, taking=verb == "release"))
            case ["errors", port, kind, cycles]:
                answer(self._set_errors(port, kind, cycles))
            case ["flow", source, destination, *rest] if len(rest) <= 3:
                answer(self._start_flow(source, destination, rest))
            case ["stop", source, destination]:
                answer(self._stop_flow(source, destination))
            case ["alter", host, *rest] if len(rest) <= 1:
                answer(self._alter(host, rest))
            case ["counters", port]:
                self._read_counters(port, answer)
            case ["run", milliseconds]:
                length = int(_number("MILLISECONDS", milliseconds, 0.001, _MOST_MS) * _MS_CYCLES)
                self._door.settle(length)
                answer(f"goes on to cycle {self._door.now.cycle + length:,}")
            case ["time"]:
                answer(f"cycle {self._door.now.cycle:,}, {self._door.now.cycle * NS_PER_CYCLE:,} ns at SDR")
            case ["quit"]:
                answer("ends")
                self._door.end()
            case _:
                raise LabError(f"{line.strip()!r}: expected {LINES}")

    def observe(self, record: Record) -> None:
        """Looks for what was asked, in the trace."""
        if record.kind == Kind.BUS_READ and self._readings:
            page, offset = place_of_address(BusRead.address.read(record))
            self._readings[0].take((port_of_source(record.source)[0], page), offset, BusRead.value.read(record))
            if self._readings[0].complete:
                self._readings.pop(0)

    # Links.

    def _connect(self, text: str, *, up: bool) -> str:
        link, _direction = self._link(text)
        ends = self._fabric.links[link]
        place = f"{port_text(ends.a, ends.a_port)}-{port_text(ends.b, ends.b_port)}"
        self._check_whole(ends.a, ends.b)
        if up is (link not in self._cut):
            raise LabError(f"{place}: is {'not cut' if up else 'cut already'}")
        self._cut ^= {link}
        self._door.control(Operation.LINK_UP if up else Operation.LINK_DOWN, link)
        return f"{place}: {'restored' if up else 'cut'}"

    def _reset(self, text: str) -> str:
        """Reset a node: its cables train again when its registers, of which no MAD knows, are as at the start.

        Of an adapter with several ports TEXT names one, or all.
        """
        names = [name for name in self._nodes if text in (node_text(name), adapter_port(name)[0])]
        if not names:
            raise LabError(no_such_node(self._fabric, text))
        self._check_whole(*names)
        indices = [self._nodes.index(name) for name in names]
        if any(reading.node in indices for reading in self._readings):
            raise LabError(f"{text}: its counters are being read")
        links = {link for name in names for link in self._links_of(name)}
        for link in sorted(links):
            self._door.control(Operation.LINK_DOWN, link)
        for index in indices:
            self._door.reset(index)
        cycles = max(reset_cycles(self._fabric.nodes[name]) for name in names)
        over = cycles + len(links) + len(names)
        self._returns |= dict.fromkeys(names, self._door.now.cycle + over + STEP_CYCLES)
        self._door.settle(over + 4 * STEP_CYCLES)
        return f"{text}: reset, which takes {cycles:,} cycles"

    def _return(self, name: str) -> None:
        """The node's reset is over."""
        del self._returns[name]
        index = self._nodes.index(name)
        for control in self._door.first_controls:
            if control.operation == Operation.BUS_WRITE and control.target == index:
                self._door.control(Operation.BUS_WRITE, index, control.args)
        waiting = self._cut.union(*map(self._links_of, self._returns))
        for link in self._links_of(name):
            if link not in waiting:
                self._door.control(Operation.LINK_UP, link)

    def _links_of(self, name: str) -> list[int]:
        return [link for (node, _port), (link, _direction) in self._links.items() if node == name]

    def _check_whole(self, *names: str) -> None:
        for name in names:
            if name in self._returns:
                raise LabError(f"{name}: is being reset")

    def _set_errors(self, text: str, kind: str, cycles: str) -> str:
        link, direction = self._link(text)
        known = next((one for one in _ROW_KINDS if one == kind), None)
        if known is None:
            raise LabError(f"errors of kind {kind!r}: expected {', '.join(_ROW_KINDS)}")
        every = int(cycles) if cycles.isdecimal() else None
        if every is None or not (every == _NEVER or STEP_CYCLES <= every <= MAX_CYCLES):
            raise LabError(f"CYCLES {cycles}: expected 0, or {STEP_CYCLES}..{MAX_CYCLES}")
        target = injection_target(link, direction)
        if every == _NEVER:
            self._errors.pop((target, known), None)
            return f"{text}: sends without {known}"
        self._errors[target, known] = every
        return f"{text}: a {known} in what it sends, once in {every:,} cycles on the average"

    def _before_step(self, first: int, last: int) -> None:
        """Nodes that come back, and errors of a step: one of a kind at the most."""
        for name in [name for name, over in self._returns.items() if over < first]:
            self._return(name)
        for (target, kind), every in self._errors.items():
            if self._random.random() < min(1.0, (last - first) / every):
                args = link_error(kind, row=self._random.randint(1, 8), bit=self._random.randrange(32)).args()
                self._door.control(Operation.INJECT, target, args)

    # Traffic.

    def _stall(self, text: str, *, taking: bool) -> str:
        """A host takes nothing from the data VLs of its port, or takes all again."""
        port = self._host(text)
        name = self._nodes[port.node]
        self._check_whole(name)
        slots = (1 << self._fabric.nodes[name].vls) - 1
        self._door.control(Operation.RECV_STALL, port.node, (0 if taking else slots, 0, 0, 0))
        return f"{port}: takes {'all again' if taking else 'nothing but VL15'}"

    def _start_flow(self, source: str, destination: str, rest: list[str]) -> str:
        start, end = (self._host(name) for name in (source, destination))
        if start == end:
            raise LabError(f"flow {source} {destination}: expected two hosts")
        rate = _number("RATE", rest[0], 0.0001, 1) if rest else _RATE
        size = _whole("BYTES", rest[1], 8, _MOST_BYTES) if len(rest) > 1 else _BYTES
        sl = _whole("SL", rest[2], 0, 15) if len(rest) > 2 else _SL
        limit = min(node.mtu for node in self._fabric.nodes.values())
        if size > limit:
            raise LabError(f"BYTES {size}: expected at most the smallest MTU, {limit}")
        self._door.flows[source, destination] = LabFlow(
            start, end, rate, size, sl, Random(self._random.getrandbits(64))
        )
        return f"{source} to {destination}: {size} bytes, {rate:g} of the link, SL {sl}"

    def _stop_flow(self, source: str, destination: str) -> str:
        flow = self._door.flows.pop((source, destination), None)
        if flow is None:
            there = ", ".join(f"{a} {b}" for a, b in self._door.flows) or "none"
            raise LabError(f"stop {source} {destination}: no such flow; there are: {there}")
        return f"{source} to {destination}: stopped after {flow.posted:,} packets"

    def _alter(self, host: str, rest: list[str]) -> str:
        port = self._host(host)
        byte = _whole("BYTE", rest[0], 0, _MOST_BYTES - 1) if rest else 0
        self._door.transports.alter(port, byte)
        return f"{port}: the next payload that a queue pair sends there and that has a byte {byte} has another one"

    # Counters.

    def _read_counters(self, text: str, answer: Callable[[str], None]) -> None:
        node, number = self._port(text)
        self._check_whole(node)
        index = self._nodes.index(node)
        self._readings.append(_Reading(port_text(node, number), (index, number), answer))
        for counter in Counter:
            self._door.control(Operation.BUS_READ, index, (port_address(number, counter), 0, 0, 0))
        self._door.settle(4 * STEP_CYCLES)

    # Names.

    def _link(self, text: str) -> tuple[int, int]:
        place = self._port(text)
        found = self._links.get(place)
        if found is None:
            raise LabError(f"{text}: has no link")
        return found

    def _port(self, text: str) -> Port:
        try:
            return port_named(self._fabric, text)
        except ValueError as error:
            raise LabError(str(error)) from None

    def _host(self, text: str) -> HostPort:
        port = next((one for ports in self._door.ports.values() for one in ports if text in (one.host, str(one))), None)
        if port is None:
            raise LabError(f"{text}: no such host; there are {_some(self._door.ports)}")
        return port


class _Reading:
    """Counters being read."""

    def __init__(self, name: str, place: tuple[int, int], answer: Callable[[str], None]) -> None:
        self._name = name
        self._place = place
        self._answer = answer
        self._values: dict[Counter, int] = {}

    @property
    def node(self) -> int:
        return self._place[0]

    @property
    def complete(self) -> bool:
        return len(self._values) == len(Counter)

    def take(self, place: tuple[int, int], offset: int, value: int) -> None:
        """Takes a value that was read."""
        if place != self._place:
            return
        self._values[Counter(offset)] = value
        if self.complete:
            counted = [f"{counter.name.lower()} {value:,}" for counter, value in self._values.items() if value]
            self._answer(f"{self._name}: {', '.join(counted) or 'all 0'}")


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise LabError(f"{name} {text}: expected {low:g}..{high:g}")
    return value


def _whole(name: str, text: str, low: int, high: int) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        raise LabError(f"{name} {text}: expected a whole number {low}..{high}")
    return int(text)


def _some(names: Iterable[str]) -> str:
    """The first of many names."""
    listed = list(names)
    return ", ".join(listed[:_MANY]) + (", ..." if len(listed) > _MANY else "")
