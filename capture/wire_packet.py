"""What an analyser in a cable sees of one packet."""

from __future__ import annotations

from typing import NamedTuple

from wire.trace import Delimiter

__all__ = ["Direction", "WirePacket"]


class Direction(NamedTuple):
    """One direction of a link, as it stands in captures.

    Attributes:
        name: both ends, as in `S[1] -> H2[1]`.
        bits_per_s: the link's rate, 10 Gbit/s for 4X at SDR; 0 to say nothing.
    """

    name: str
    bits_per_s: int = 0


class WirePacket(NamedTuple):
    """One packet on one direction of a link.

    Attributes:
        direction: which direction of which link, an index into those that the capture's writer was given.
        time_ns: when its SDP or SLP was on the wires; a cycle is 4 ns.
        is_link: a link packet (begins with SLP), else a data packet (SDP).
        data: the bytes between the delimiters: LRH to VCRC, or Op to LPCRC; of a cut packet what there was.
        ending: its end delimiter, which says nothing of its CRCs; CUT: something else came in its place, or nothing.
    """

    direction: int
    time_ns: int
    is_link: bool
    data: bytes
    ending: Delimiter = Delimiter.EGP
