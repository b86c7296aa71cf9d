"""A capture of what passes links of a fabric while it is simulated, as seen in their cables or by hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from capture.directions import ARROW, HOST
from capture.erf_record import WHOLE
from capture.host_clock import TICK_NS
from capture.host_view import HostView
from capture.time_order import TimeOrder
from capture.wire_packet import Direction, Way, WirePacket
from capture.writer import CaptureWriter, capture_writer
from cosim.engines.base import NO_TAPS, Taps
from cosim.topology.topology import Port, port_named
from toolchain.errors import UserError
from wire.codes import LinkWidth
from wire.framing import FramedPacket
from wire.parameters import AdapterParameters, FabricParameters, port_text
from wire.symbols import BITS_PER_SYMBOL, DELIMITERS, LANES

__all__ = ["directions_at", "hosts_at", "link_capture"]

_OF_HOST: Final = "host"
_WAYS: Final = ("", "out", "in", _OF_HOST)
"""Of a link seen from a port: both, what it sends, what it gets; or what its host captures."""

_NS: Final = 10**9

_Place = tuple[int, int]
"""(link, direction) by their places in the parameters of a fabric."""


class NoSuchLink(UserError):
    """Where a capture is asked for there is no link."""


class _Asked(NamedTuple):
    """Where a capture is asked for: a port, its link, and which direction of that the port sends."""

    port: Port
    way: str
    link: int
    sends: int


def _asked(fabric: FabricParameters, places: Sequence[str]) -> Iterator[_Asked]:
    sent_by: dict[tuple[str, int], _Place] = {}
    for index, link in enumerate(fabric.links):
        sent_by |= {(link.a, link.a_port): (index, 0), (link.b, link.b_port): (index, 1)}
    for place in places:
        text, sign, way = place.partition(":")
        if way not in _WAYS or (sign and not way):
            raise NoSuchLink(f"{place}: expected PORT, PORT:out, PORT:in or PORT:host")
        try:
            port = port_named(fabric, text)
        except ValueError as error:
            raise NoSuchLink(str(error)) from None
        if port not in sent_by:
            raise NoSuchLink(f"{text}: has no link")
        if way == _OF_HOST and not isinstance(fabric.nodes[port.node], AdapterParameters):
            raise NoSuchLink(f"{place}: {text} is a switch's port, expected an adapter's")
        yield _Asked(port, way, *sent_by[port])


def directions_at(fabric: FabricParameters, places: Sequence[str]) -> list[_Place]:
    """The directions of the links at these ports, `NODE[PORT]` or `HOST`; all there are without any.

    `PORT:out` is only what the port sends, `PORT:in` what it gets; of `PORT:host` none is looked at in the cable.

    Raises:
        NoSuchLink: one has none.
    """
    both = (0, 1)
    if not places:
        return [(link, direction) for link in range(len(fabric.links)) for direction in both]
    found: dict[_Place, None] = {}
    for _port, way, index, sends in _asked(fabric, places):
        chosen = {"": both, "out": (sends,), "in": (1 - sends,), _OF_HOST: ()}[way]
        found |= {(index, direction): None for direction in chosen}
    return list(found)


def hosts_at(fabric: FabricParameters, places: Sequence[str]) -> dict[Port, _Place]:
    """The adapters' ports of which what their host captures is asked for, `PORT:host`; and what each sends.

    Raises:
        NoSuchLink: one has no link, or is no adapter's.
    """
    return {port: (link, sends) for port, way, link, sends in _asked(fabric, places) if way == _OF_HOST}


def _symbol_ns(width: int, cycle_ns: float) -> float:
    return cycle_ns / LANES if width == LinkWidth.X4 else cycle_ns


def _rate(width: int, cycle_ns: float) -> int:
    return round(BITS_PER_SYMBOL * _NS / _symbol_ns(width, cycle_ns))


def _cable(fabric: FabricParameters, widths: Sequence[int], cycle_ns: float, place: _Place) -> Direction:
    link = fabric.links[place[0]]
    ends = port_text(link.a, link.a_port), port_text(link.b, link.b_port)
    sender, receiver = ends if place[1] == 0 else reversed(ends)
    return Direction(f"{sender}{ARROW}{receiver}", _rate(widths[place[0]], cycle_ns))


class _Tap(NamedTuple):
    """A direction of a link that is looked at.

    Attributes:
        number: its own in the capture, if it is seen in the cable.
        symbol_ns: how long a symbol takes.
        hosts: those who see its packets, and which way they go.
    """

    number: int | None
    symbol_ns: float
    hosts: list[tuple[HostView, Way]]


@contextmanager
def link_capture(
    fabric: FabricParameters,
    widths: Sequence[int],
    file: str | None,
    places: Sequence[str] = (),
    cycle_ns: float = 4,
    keep_bytes: int = WHOLE,
) -> Iterator[Taps]:
    """Taps that write a capture, for the runs of the block; none without a file. PLACES: see `directions_at`.

    Of data packets KEEP_BYTES are kept. The capture says what rates links of these widths have; what changes them
    meanwhile it cannot.

    Raises:
        NoSuchLink: at one of the places is none.
        UserError: as `capture.writer.capture_writer` does.
    """
    if file is None:
        if places:
            raise UserError(f"--capture-at {places[0]}: nothing is captured without --capture")
        yield NO_TAPS
        return
    links, hosts = directions_at(fabric, places), hosts_at(fabric, places)
    directions = [_cable(fabric, widths, cycle_ns, one) for one in links]
    directions += [
        Direction(f"{port_text(*port)}{HOST}", _rate(widths[link], cycle_ns), is_host=True)
        for port, (link, _sends) in hosts.items()
    ]
    views = [HostView(number, port_text(*port)) for number, port in enumerate(hosts, len(links))]
    taps = {place: _Tap(number, _symbol_ns(widths[place[0]], cycle_ns), []) for number, place in enumerate(links)}
    for view, (link, sends) in zip(views, hosts.values(), strict=True):
        for way, direction in ((Way.OUT, sends), (Way.IN, 1 - sends)):
            tap = taps.setdefault((link, direction), _Tap(None, _symbol_ns(widths[link], cycle_ns), []))
            tap.hosts.append((view, way))
    with capture_writer(file, directions, keep_bytes) as writer:
        if not hosts:
            yield Taps(tuple(taps), _in_cables(writer, cycle_ns), writer.flush)
            return
        order = TimeOrder(writer.write)
        try:
            yield Taps(tuple(taps), _with_hosts(list(taps.values()), order, cycle_ns), writer.flush)
        finally:
            order.end()
            for view in views:
                writer.end_host(view.direction, view.last_ns, view.clock.captured, view.clock.lost)


_Take = Callable[[int, FramedPacket], None]


def _in_cables(writer: CaptureWriter, cycle_ns: float) -> _Take:
    write = writer.write

    def take(place: int, packet: FramedPacket) -> None:
        cycle, is_link, body, end = packet
        write(WirePacket(place, round(cycle * cycle_ns), is_link, body, end))

    return take


def _with_hosts(taps: Sequence[_Tap], order: TimeOrder, cycle_ns: float) -> _Take:
    """Stamps of hosts are later than the packets, or as they are rounded down less than a tick earlier."""

    def take(place: int, packet: FramedPacket) -> None:
        cycle, is_link, body, end = packet
        number, symbol_ns, hosts = taps[place]
        time_ns = cycle * cycle_ns
        order.until(round(time_ns) - TICK_NS)
        if number is not None:
            order.add(WirePacket(number, round(time_ns), is_link, body, end))
        if not is_link:
            passed_ns = time_ns + (len(body) + DELIMITERS) * symbol_ns
            for host, way in hosts:
                seen = host.see(way, passed_ns, body, end)
                if seen is not None:
                    order.add(seen)

    return take
