"""What an analyser in a cable sees of one packet, or a host that captures its own."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from wire.trace import Delimiter

__all__ = ["Direction", "Way", "WirePacket"]


class Way(IntEnum):
    """Which way a host that captures a packet has seen it go; the values are pcapng's."""

    IN = 1
    OUT = 2


class Direction(NamedTuple):
    """One direction of a link, or a host that captures both, as it stands in captures.

    Attributes:
        name: both ends, as in `S[1] -> H2[1]`; or the host's port, as in `H2[1] host`.
        bits_per_s: the link's rate, 10 Gbit/s for 4X at SDR; 0 to say nothing.
        is_host: of a host, whose stamps are whole microseconds.
    """

    name: str
    bits_per_s: int = 0
    is_host: bool = False


class WirePacket(NamedTuple):
    """One packet on one direction of a link.

    Attributes:
        direction: which direction of which link, an index into those that the capture's writer was given.
        time_ns: when its SDP or SLP was on the wires, a cycle is 4 ns; or a host's stamp.
        is_link: a link packet (begins with SLP), else a data packet (SDP).
        data: the bytes between the delimiters: LRH to VCRC, or Op to LPCRC; of a cut packet what there was.
        ending: its end delimiter, which says nothing of its CRCs; CUT: something else came in its place, or nothing.
        way: which way a host saw it go; None in a cable.
        lost: how many packets a host has missed since the last that it captured.
    """

    direction: int
    time_ns: int
    is_link: bool
    data: bytes
    ending: Delimiter = Delimiter.EGP
    way: Way | None = None
    lost: int = 0
