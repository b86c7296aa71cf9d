"""A packet in a node, and a packet on a port's wires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from wire.crc import lpcrc
from wire.packet import blocks_of_words
from wire.symbols import Control, idle_byte

from .content import Content

__all__ = [
    "CUT",
    "EBP",
    "EGP",
    "DataTransmission",
    "LinkTransmission",
    "Packet",
    "Row",
    "Transmission",
    "Underrun",
    "idle",
]

Row = tuple[int, int]
"""(data, k): 32 and 4 bits, lane 0 highest."""

CUT: Final = 0
EGP: Final = 1
EBP: Final = 2
"""How a packet ended, as in RX_DATA."""

_K_FIRST: Final = 8
_K_LAST: Final = 1
_SDP: Final = Control.SDP << 24
_SLP: Final = Control.SLP << 24


def idle(cycle: int) -> Row:
    """The idle row that a transmitter drives in a cycle (section 8.2)."""
    return idle_byte(cycle) * 0x01010101, 0


class Packet:
    """A data packet in a node, from its row 0 until its blocks are released.

    Attributes set when they become known; what stands here are their values until then.
    """

    # Header (section 3.3).
    vl: int = 0
    lver: int = 0
    sl: int = 0
    lnh: int = 0
    dlid: int = 0
    n: int = 0
    """PktLen in words; 0 if the header was not processed."""
    need: int = 0
    """Blocks."""
    irregular: bool = False
    """Its host gave it another length than its PktLen says."""
    # Reception (section 3.2).
    rejection: int = 0
    not_active: bool = False
    accepted: bool = False
    k: int = -1
    """Index of the end row, or of the row at which the packet was cut; -1 before."""
    delimiter: int = CUT
    vcrc_good: bool = True
    # Way through the node (sections 3.5 and 4).
    input: int = 0
    slot_in: int = 0
    output: int = 0
    slot: int = 0
    """Output slot."""
    oversize: bool = False
    late: bool = False
    """It joins late, when a row of it has arrived that makes sure that the output does not run dry."""
    join_at: int = -1
    """Cycle e of a packet that joins late, once known."""
    joined: bool = False
    bad: bool = False
    """Known, to a read issued from the next cycle on, not to be GOOD."""
    sending: DataTransmission | None = None
    # Bytes: one of these three is where they are.
    content: Content | None = None
    rows: list[int] | None = None
    """Data of the rows so far, of a packet received row by row."""
    source: DataTransmission | None = None
    """The undamaged transmission that is arriving."""

    def word(self, row: int) -> int:
        """Data of a row, as stored; in row 0 without lane 0 and VL. Not for the end row."""
        if self.rows is not None:
            word = self.rows[row]
        elif self.content is not None:
            at = 4 * row
            word = int.from_bytes(self.content.data[max(at - 1, 0) : at + 3], "big")
        else:
            assert self.source is not None
            return self.source.packet.word(row)
        return word & 0x000F_FFFF if row == 0 else word

    def set_length(self, n: int) -> None:
        """Take over a PktLen."""
        self.n = n
        self.need = blocks_of_words(n)


class Transmission(ABC):
    """A packet on a port's wires (sections 8.1 and 8.2).

    Attributes:
        w0: cycle of row 0 on the wire.
        pitch: cycles from row to row, 1 (4X) or 4 (1X).
        end: index of the end row, as planned or as it came.
        refused: first row that was refused; -1 if none.
        whole: the receiver takes the packet in one piece, for all that is known now.
        finished: its last row has been on the wire.
        arrived: the receiver has done with it.
        irregular: the receiver has to look at its rows from the first one on.
    """

    refused: int = -1
    whole: bool = False
    finished: bool = False
    arrived: bool = False
    is_link: bool = False
    irregular: bool = False

    w0: int
    pitch: int
    end: int

    def row(self, index: int) -> Row:
        """A row as it is on the wire."""
        if 0 <= self.refused <= index:
            return idle(self.w0 + index * self.pitch)
        return self._sent_row(index)

    @abstractmethod
    def _sent_row(self, index: int) -> Row:
        """A row that was not refused."""


class DataTransmission(Transmission):
    """A data packet on a port's wires."""

    bad: bool = False
    last_read: int = 0
    """Cycle of the read of row n; -1 once an early end is known."""
    reception: Packet | None = None
    """The packet at the receiver."""

    def __init__(self, packet: Packet, vl: int, granted: int, pitch: int, reader: int) -> None:
        self.packet = packet
        self.vl = vl
        self.w0 = granted + 3
        self.pitch = pitch
        self.reader = reader
        if packet.irregular:
            self.irregular = True
        self.end = packet.n

    @property
    def content(self) -> Content:
        """The bytes sent; known when the end row is on the wire.

        Raises:
            Underrun: the output ran dry.
        """
        content = self.packet.content
        if content is None:
            raise Underrun(self)
        return content

    def _sent_row(self, index: int) -> Row:
        if index == 0:
            return _SDP | self.vl << 20 | self.packet.word(0), _K_FIRST
        if index < self.end:
            return self.packet.word(index), 0
        check = int.from_bytes(self.content.vcrc(self.vl), "big")
        last = self.content.data[-1] << 24
        if self.bad:
            return last | (check ^ 0xFFFF) << 8 | Control.EBP, _K_LAST
        return last | check << 8 | Control.EGP, _K_LAST


class Underrun(RuntimeError):
    """An output read rows that had not arrived.

    That happens only where the two ends of a link disagree about WIDTH, or where it was written
    while a packet was in the node: section 3.5 does not say what is sent then.
    """

    def __init__(self, sending: DataTransmission) -> None:
        super().__init__(
            f"packet of {sending.packet.n} words, on the wire from cycle {sending.w0}, was sent before it "
            f"had arrived: expected the same WIDTH at both ends of a link, written while it is idle"
        )


class LinkTransmission(Transmission):
    """A flow control packet on a port's wires."""

    is_link = True

    def __init__(self, op: int, vl: int, fctbs: int, fccl: int, granted: int, pitch: int) -> None:
        self.op = op
        self.vl = vl
        self.fctbs = fctbs
        self.fccl = fccl
        self.w0 = granted + 3
        self.pitch = pitch
        self.end = 1

    def _sent_row(self, index: int) -> Row:
        word = self.op << 28 | self.fctbs << 16 | self.vl << 12 | self.fccl
        if index == 0:
            return _SLP | word >> 8, _K_FIRST
        check = int.from_bytes(lpcrc(word.to_bytes(4, "big")), "big")
        return (word & 0xFF) << 24 | check << 8 | Control.EGP, _K_LAST
