"""A capture of what passes links of a fabric while it is simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from capture.wire_packet import Direction, WirePacket
from capture.writer import capture_writer
from cosim.engines.base import NO_TAPS, Taps
from cosim.topology.topology import port_named
from toolchain.errors import UserError
from wire.codes import LinkWidth
from wire.framing import FramedPacket
from wire.parameters import FabricParameters, port_text
from wire.symbols import LANES

__all__ = ["directions_at", "link_capture"]

_WAYS: Final = ("", "out", "in")
"""Of a link seen from a port: both, what it sends, what it gets."""

_BITS_PER_SYMBOL: Final = 10
_NS: Final = 10**9

_Place = tuple[int, int]
"""(link, direction) by their places in the parameters of a fabric."""


class NoSuchLink(UserError):
    """Where a capture is asked for there is no link."""


def directions_at(fabric: FabricParameters, places: Sequence[str]) -> list[_Place]:
    """The directions of the links at these ports, `NODE[PORT]` or `HOST`; all there are without any.

    `PORT:out` is only what the port sends, `PORT:in` what it gets.

    Raises:
        NoSuchLink: one has none.
    """
    both = (0, 1)
    if not places:
        return [(link, direction) for link in range(len(fabric.links)) for direction in both]
    sent_by: dict[tuple[str, int], _Place] = {}
    for index, link in enumerate(fabric.links):
        sent_by |= {(link.a, link.a_port): (index, 0), (link.b, link.b_port): (index, 1)}
    found: dict[_Place, None] = {}
    for place in places:
        text, sign, way = place.partition(":")
        if way not in _WAYS or (sign and not way):
            raise NoSuchLink(f"{place}: expected PORT, PORT:out or PORT:in")
        try:
            port = port_named(fabric, text)
        except ValueError as error:
            raise NoSuchLink(str(error)) from None
        if port not in sent_by:
            raise NoSuchLink(f"{text}: has no link")
        index, sends = sent_by[port]
        chosen = {"": both, "out": (sends,), "in": (1 - sends,)}[way]
        found |= {(index, direction): None for direction in chosen}
    return list(found)


def _described(fabric: FabricParameters, widths: Sequence[int], cycle_ns: float, place: _Place) -> Direction:
    link = fabric.links[place[0]]
    ends = port_text(link.a, link.a_port), port_text(link.b, link.b_port)
    sender, receiver = ends if place[1] == 0 else reversed(ends)
    lanes = LANES if widths[place[0]] == LinkWidth.X4 else 1
    return Direction(f"{sender} -> {receiver}", round(lanes * _BITS_PER_SYMBOL * _NS / cycle_ns))


@contextmanager
def link_capture(
    fabric: FabricParameters,
    widths: Sequence[int],
    file: str | None,
    places: Sequence[str] = (),
    cycle_ns: float = 4,
) -> Iterator[Taps]:
    """Taps that write a capture, for the runs of the block; none without a file. PLACES: see `directions_at`.

    The capture says what rates links of these widths have; what changes them meanwhile it cannot.

    Raises:
        NoSuchLink: at one of the places is none.
        UserError: as `capture.writer.capture_writer` does.
    """
    if file is None:
        if places:
            raise UserError(f"--capture-at {places[0]}: nothing is captured without --capture")
        yield NO_TAPS
        return
    directions = directions_at(fabric, places)
    with capture_writer(file, [_described(fabric, widths, cycle_ns, one) for one in directions]) as writer:
        write = writer.write

        def take(place: int, packet: FramedPacket) -> None:
            cycle, is_link, body, end = packet
            write(WirePacket(place, round(cycle * cycle_ns), is_link, body, end))

        yield Taps(tuple(directions), take, writer.flush)
