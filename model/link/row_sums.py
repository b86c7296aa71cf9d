"""All rows that enter a direction of a link, summed up period by period."""

from itertools import pairwise
from typing import Final

from wire.crc import invert_vcrc
from wire.row_crc import NO_ROW, PERIOD, ROW, ROW_BYTES, VALID, rows_words
from wire.symbols import IDLE_PERIOD, LANES, Control

from ..packet import DataTransmission, Row, Transmission, idle
from .wire_log import AT_ENTRY, WireLog

__all__ = ["RowSums"]

_SLOW: Final = 4
"""Cycles from row to row at 1X."""
_K_FIRST: Final = 8
_K_LAST: Final = 1
_SDP: Final = bytes([Control.SDP])
_EGP: Final = bytes([Control.EGP])
_EBP: Final = bytes([Control.EBP])


def _idle_cycles(pitch: int) -> bytes:
    """What stands for the cycles of a sender that sends nothing, until they repeat, and for a period more."""
    rows = bytearray()
    for cycle in range(pitch * IDLE_PERIOD + PERIOD):
        data, k = idle(cycle)
        rows += NO_ROW if cycle % pitch else ROW.pack(VALID | k, data)
    return bytes(rows)


_IDLE: Final = {pitch: _idle_cycles(pitch) for pitch in (1, _SLOW)}


class RowSums(WireLog):
    """The CRC of all rows of a direction, as they enter the link: errors injected, none while it is down."""

    def __init__(self, pitch: int) -> None:
        super().__init__(pitch, flight=AT_ENTRY)
        self.of_sender = True

    def fall_silent(self, cycle: int) -> None:
        """What is on the wires in the first cycle of a reset enters; then the link is down (section 2.2)."""

    def words(self, until: int) -> tuple[int, int, int]:
        """Words of the record of the cycles below UNTIL, which is the next one, from that of the last call on."""
        rows = self._idle_rows(until)
        for sending in self._sent:
            self._put(rows, sending, self._rows_of(sending, until))
        for cycle, row in self._injected.items():
            self._put_row(rows, cycle, row)
        self._sent = [sending for sending in self._sent if sending.w0 + sending.end * sending.pitch >= until]
        self._from = until
        self._forget_before(until)
        return rows_words(rows)

    def _idle_rows(self, until: int) -> bytearray:
        """What would stand for the cycles, were there no packets."""
        start = self._from
        changes = {cycle for cycle, _pace in self._paces if cycle > start}
        changes.update(epoch for epoch in self._epochs if epoch > start)
        rows = bytearray()
        bounds = [start, *sorted(changes), until]
        for begin, end in pairwise(bounds):
            pace = self._pace_at(begin)
            if pace:
                at = ROW_BYTES * (self.place(begin) % (pace * IDLE_PERIOD))
                rows += _IDLE[pace][at : at + ROW_BYTES * (end - begin)]
            else:
                rows += NO_ROW * (end - begin)
        return rows

    def _put(self, rows: bytearray, sending: Transmission, indices: range) -> None:
        """Put those of a packet's rows in their cycles; in one piece what ends as a whole packet at one pace."""
        if not indices:
            return
        w0, pitch, end = sending.w0, sending.pitch, sending.end
        first, last = indices[0], indices[-1]
        if last == end and isinstance(sending, DataTransmission) and self._is_steady(w0 + first * pitch, pitch):
            content, vl, bad = sending.content, sending.vl, sending.packet.bad
            check = content.vcrc(vl)
            tail = invert_vcrc(check) + _EBP if bad else check + _EGP
            symbols = (_SDP + content.with_vl(vl) + tail)[LANES * first :]
            at, step = ROW_BYTES * (w0 + first * pitch - self._from), ROW_BYTES * pitch
            stop = at + step * (last - first)
            for lane in range(LANES):
                rows[at + 1 + lane : stop + 2 + lane : step] = symbols[lane::LANES]
            if first == 0:
                rows[at] = VALID | _K_FIRST
            rows[stop] = VALID | _K_LAST
            return
        for index in indices:
            cycle = w0 + index * pitch
            if self._has_row(cycle):
                self._put_row(rows, cycle, sending.row(index))

    def _put_row(self, rows: bytearray, cycle: int, row: Row) -> None:
        data, k = row
        ROW.pack_into(rows, ROW_BYTES * (cycle - self._from), VALID | k, data)

    def _is_steady(self, cycle: int, pitch: int) -> bool:
        """The pace has been the packet's from this cycle on."""
        return self._paces[-1][0] <= cycle and self._paces[-1][1] == pitch
