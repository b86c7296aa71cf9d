"""Packets put on a link by somebody else than its sender: what a capture has of them, as rows."""

from typing import Final

from wire.crc import LPCRC_BYTES, VCRC_BYTES, invert_vcrc, lpcrc_good
from wire.flow_control import FLOW_CONTROL
from wire.framing import FramedPacket
from wire.headers import LRH
from wire.packet import WORD_BYTES, blocks_of_words
from wire.symbols import LANES, LINK_PACKET_BYTES, Control
from wire.trace import Delimiter

from ..content import Content
from ..packet import READ_TO_WIRE, DataTransmission, LinkTransmission, Packet, Row, Transmission

__all__ = ["PlayedRows", "played", "rest_of"]

_BEFORE_WIRE: Final = 1 + READ_TO_WIRE
"""Cycles from the grant of a packet that is sent until its row 0 is on the wires."""
_SHORTEST: Final = 5
"""Words of a packet of which header, end and CRC come in different rows."""
_ONE_ROW: Final = 2 * LANES - 2
"""Bytes of a packet whose end is in row 1."""
_PKT_LEN: Final = LRH["pkt_len"]
_K_FIRST: Final = 8
_K_LAST: Final = 1
_VIOLATION: Final[Row] = (Control.PAD << 16, 4)
"""A row that is in no packet."""
_ENDS: Final = {Delimiter.EGP: Control.EGP, Delimiter.EBP: Control.EBP}


class PlayedRows(Transmission):
    """A packet that no port sends so: it is received by rows.

    Attributes:
        breaks: its last row is none of its own, but there so that it is cut; not if another packet begins in its place.
    """

    __slots__ = ("_rows", "breaks")

    def __init__(self, granted: int, pitch: int, rows: list[Row], breaks: bool) -> None:
        super().__init__(0, 0, granted, pitch, len(rows) - 1, True)
        self._rows = rows
        self.breaks = breaks

    def row(self, index: int) -> Row:
        """As it was captured."""
        return self._rows[index]


def rest_of(sending: Transmission, row: int, cycle: int, pitch: int) -> PlayedRows:
    """What is left of a captured packet from a row on, which is on the wires in a cycle: at another pace."""
    rows = [sending.row(index) for index in range(row, sending.end + 1)]
    return PlayedRows(cycle - _BEFORE_WIRE, pitch, rows, isinstance(sending, PlayedRows) and sending.breaks)


def played(packet: FramedPacket, pitch: int) -> Transmission:
    """A captured packet, on the wires in its cycle, at a pace."""
    granted = packet.cycle - _BEFORE_WIRE
    if packet.is_link:
        if packet.end is Delimiter.EGP and len(packet.body) == LINK_PACKET_BYTES and lpcrc_good(packet.body):
            fields = FLOW_CONTROL.unpack(packet.body[:-LPCRC_BYTES])
            return LinkTransmission(0, granted, pitch, fields.op, fields.vl, fields.fctbs, fields.fccl)
    elif packet.end is not Delimiter.CUT:
        sending = _sound(packet, granted, pitch)
        if sending is not None:
            return sending
    rows, breaks = _rows(packet)
    return PlayedRows(granted, pitch, rows, breaks)


def _sound(packet: FramedPacket, granted: int, pitch: int) -> DataTransmission | None:
    """A data packet as ports send them, good or marked bad; None if it is no such one."""
    body = packet.body
    words, rest = divmod(len(body) - VCRC_BYTES, WORD_BYTES)
    if rest or words < _SHORTEST or _PKT_LEN.read(body) != words:
        return None
    content, vl = Content(body[:-VCRC_BYTES]), body[0] >> 4
    check = content.vcrc(vl)
    bad = packet.end is Delimiter.EBP
    if body[-VCRC_BYTES:] != (invert_vcrc(check) if bad else check):
        return None
    sent = Packet(vl, int.from_bytes(content.data[:4], "big"), words, blocks_of_words(words))
    sent.content = content
    sent.bad = bad
    sent.output = sent.input = 0
    sent.slot = vl
    return DataTransmission(sent, granted, vl, pitch, 0)


def _rows(packet: FramedPacket) -> tuple[list[Row], bool]:
    """All rows, and whether the last one is there to cut it. Of a row that is not there whole, the rest is zeros."""
    body = packet.body
    if packet.end is Delimiter.CUT:
        data = body + bytes(-(len(body) + 1) % LANES)
    else:
        data = body + bytes(max(-(len(body) + 2) % LANES, _ONE_ROW - len(body))) + bytes([_ENDS[packet.end]])
    data = bytes([Control.SLP if packet.is_link else Control.SDP]) + data
    rows: list[Row] = [(int.from_bytes(data[at : at + LANES], "big"), 0) for at in range(0, len(data), LANES)]
    rows[0] = rows[0][0], _K_FIRST
    if packet.end is not Delimiter.CUT:
        rows[-1] = rows[-1][0], _K_LAST
        return rows, False
    last = 1 if packet.is_link or len(rows) < 2 else max(1, _PKT_LEN.read(body))
    if len(rows) > last:
        return rows, False
    return [*rows, _VIOLATION], True
