"""What an analyser in a cable sees of one direction of a link: its packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wire.crc import invert_vcrc, lpcrc
from wire.framing import FramedPacket, Framer
from wire.headers import LRH
from wire.trace import Delimiter

from ..packet import DataTransmission, LinkTransmission, Row, Transmission, idle
from .wire_log import AT_ENTRY, WireLog

__all__ = ["WireTap"]

_PKT_LEN_MAX: Final = LRH["pkt_len"].max


class WireTap(WireLog):
    """Packets of one direction, as they enter the link: errors injected, and cut where it goes down.

    A packet that nothing has happened to is taken in one piece. Of others the rows are framed, those of idle data too
    where a packet's end is missing, by the rules of `Framer`.
    """

    def __init__(self, pitch: int) -> None:
        super().__init__(pitch, flight=AT_ENTRY)
        self.of_sender = True
        self._framer = Framer()
        self._found: list[FramedPacket] = []
        self._framed = 0  # cycles below are framed

    def packets(self, until: int) -> Sequence[FramedPacket]:
        """Packets that ended in cycles below UNTIL, all of which are over, and that were not given yet, in order."""
        for sending in self._sent:
            if sending.w0 + sending.end * sending.pitch >= until:
                break
            self._frame_until(sending.w0)
            if self._framer.begun is None and self._is_plain(sending):
                self._found.append(_whole(sending))
                self._framed = sending.w0 + sending.end * sending.pitch + 1
            else:
                self._frame_sending(sending)
        self._sent = [sending for sending in self._sent if sending.w0 + sending.end * sending.pitch >= until]
        self._frame_until(min(until, self._sent[0].w0) if self._sent else until)
        self._forget_before(self._framed)
        found, self._found = self._found, []
        return found

    def fall_silent(self, cycle: int) -> None:
        """What is on the wires in the first cycle of a reset enters; then the link is down (section 2.2)."""

    def begins_from(self) -> int:
        """No packet that is yet to be given begins before this cycle."""
        return self._framed if self._framer.begun is None else self._framer.begun

    def _is_plain(self, sending: Transmission) -> bool:
        """Nothing but the packet's own rows was on the wires, at one pace, and no more than its PktLen says."""
        first, last = sending.w0, sending.w0 + sending.end * sending.pitch
        if sending.refused >= 0 or (self._injected and any(first <= cycle <= last for cycle in self._injected)):
            return False
        if any(first < epoch <= last for epoch in self._epochs):
            return False
        since, pace = next(change for change in reversed(self._paces) if change[0] <= last)
        if since > first or pace != sending.pitch:
            return False
        # Of a packet that was cut the whole content may never be known.
        return not isinstance(sending, DataTransmission) or _pkt_len(sending.content.data) >= sending.end

    def _frame_sending(self, sending: Transmission) -> None:
        """Its rows as far as they were on the wires; what came in place of the others is framed with what follows."""
        for index in range(sending.end + 1):
            cycle = sending.w0 + index * sending.pitch
            if 0 <= sending.refused <= index or any(sending.w0 < epoch <= cycle for epoch in self._epochs):
                return
            self._frame_until(cycle)
            if self._has_row(cycle):
                self._take(cycle, self._injected.pop(cycle) if cycle in self._injected else sending.row(index))

    def _frame_until(self, cycle: int) -> None:
        """Rows of idle data, and what was injected among them, in cycles below this one."""
        while self._framer.begun is not None and self._framed < cycle:
            at = self._framed
            if self._has_row(at):
                self._take(at, self._injected.pop(at) if at in self._injected else idle(self.place(at)))
            else:
                self._framed = at + 1
                self._find(self._framer.rest(at + 1))
        for at in sorted(at for at in self._injected if self._framed <= at < cycle):
            if self._has_row(at):
                self._take(at, self._injected.pop(at))
                self._frame_until(cycle)
                return
        self._framed = max(self._framed, cycle)

    def _take(self, cycle: int, row: Row) -> None:
        self._framed = cycle + 1
        self._find(self._framer.take(cycle, *row))

    def _find(self, packet: FramedPacket | None) -> None:
        if packet is not None:
            self._found.append(packet)


def _pkt_len(data: bytes) -> int:
    """What the header says, whatever a host's packet is."""
    return (data[4] << 8 | data[5]) & _PKT_LEN_MAX


def _whole(sending: Transmission) -> FramedPacket:
    if isinstance(sending, DataTransmission):
        content = sending.content
        check, bad = content.vcrc(sending.vl), sending.packet.bad
        body = content.with_vl(sending.vl) + (invert_vcrc(check) if bad else check)
        return FramedPacket(sending.w0, False, body, Delimiter.EBP if bad else Delimiter.EGP)
    assert isinstance(sending, LinkTransmission)
    word = (sending.op << 28 | sending.fctbs << 16 | sending.vl << 12 | sending.fccl).to_bytes(4, "big")
    return FramedPacket(sending.w0, True, word + lpcrc(word), Delimiter.EGP)
