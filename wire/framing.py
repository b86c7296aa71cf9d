"""Packets out of the rows of a link, as an analyser in the cable frames them, whatever has become of them."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from .headers import LRH
from .symbols import LANES, Control
from .trace import Delimiter

__all__ = ["FramedPacket", "Framer"]

_K_FIRST: Final = 1 << LANES - 1
_K_LAST: Final = 1
_STARTS: Final = (Control.SDP, Control.SLP)
_ENDS: Final[dict[int, Delimiter]] = {Control.EGP: Delimiter.EGP, Control.EBP: Delimiter.EBP}
_SLOWEST: Final = 4
"""Cycles from row to row at 1X."""
_PKT_LEN: Final = LRH["pkt_len"]
_SECOND_ROW: Final = 1 - LANES
"""Where the LRH begins, from row 1 on: three of its bytes are in row 0."""


class FramedPacket(NamedTuple):
    """A packet as it was on the wires.

    Attributes:
        cycle: of its first row.
        is_link: it began with SLP, else with SDP.
        body: the bytes between the delimiters, up to VCRC or LPCRC if it is whole.
        end: its end delimiter. CUT: there was none where it should have ended, or the wires fell silent, the next
            packet began or there was another control symbol.
    """

    cycle: int
    is_link: bool
    body: bytes
    end: Delimiter


class Framer:
    """Frames the rows of one direction of a link, those of idle data too where a packet has not ended.

    A data packet should end with the row that its PktLen says, a link packet with row 1; nothing of one that does not
    is taken behind that row. One with a control symbol inside is cut before that row: so does the port that gets it.

    Attributes:
        begun: the cycle of the first row of the packet that has not ended; None between packets.
        seen: the cycle of the last row taken.
    """

    def __init__(self) -> None:
        self.begun: int | None = None
        self.seen = 0
        self._is_link = False
        self._words: list[int] = []
        self._last = 0

    def take(self, cycle: int, data: int, k: int) -> FramedPacket | None:
        """Take a row of a later cycle than the one before; the packet that it ends, if any."""
        found = self.rest(cycle)
        self.seen = cycle
        if k == _K_FIRST and data >> 24 in _STARTS:
            found = found or self._end(Delimiter.CUT)
            self.begun = cycle
            self._is_link = data >> 24 == Control.SLP
            self._words = [data]
            self._last = 1
            return found
        if self.begun is None:
            return found
        words = self._words
        ends = k == _K_LAST and data & 0xFF in _ENDS
        if k and not ends:
            return self._end(Delimiter.CUT)
        words.append(data)
        if ends:
            return self._end(_ENDS[data & 0xFF])
        if len(words) == 2 and not self._is_link:
            self._last = _PKT_LEN.read(data.to_bytes(LANES, "big"), _SECOND_ROW)
        return self._end(Delimiter.CUT) if len(words) > self._last else None

    def rest(self, cycle: int) -> FramedPacket | None:
        """Nothing has come since the last row and before this cycle; the packet that has been cut by that, if any."""
        return self._end(Delimiter.CUT) if cycle - self.seen > _SLOWEST else None

    def _end(self, end: Delimiter) -> FramedPacket | None:
        if self.begun is None:
            return None
        rows = struct.pack(f">{len(self._words)}I", *self._words)
        body = rows[1:] if end is Delimiter.CUT else rows[1:-1]
        packet = FramedPacket(self.begun, self._is_link, body, end)
        self.begun = None
        return packet
