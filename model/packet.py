"""A packet in a node, and a packet on a port's wires."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from wire.crc import lpcrc
from wire.packet import WORD_BYTES
from wire.symbols import Control, idle_byte
from wire.trace import Delimiter, Record, Verdict

from .content import Content

__all__ = [
    "CUT",
    "EBP",
    "EGP",
    "READ_TO_WIRE",
    "Copies",
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

CUT: Final[int] = Delimiter.CUT
EGP: Final[int] = Delimiter.EGP
EBP: Final[int] = Delimiter.EBP
"""How a packet ended."""

READ_TO_WIRE: Final = 3
"""Cycles from the read of a row until it is on the wire (section 8.1)."""

_GOOD: Final[int] = Verdict.GOOD
_FECN: Final = 1 << 23
"""In the row with the BTH's byte 4: bit 7 of lane 1's byte."""
_NO_ROW: Final = 1 << 11
"""Behind the last row of any packet."""
_K_FIRST: Final = 8
_K_LAST: Final = 1
_SDP: Final = Control.SDP << 24
_SLP: Final = Control.SLP << 24


def idle(cycle: int) -> Row:
    """The idle row that a transmitter drives in a cycle (section 8.2)."""
    return idle_byte(cycle) * 0x01010101, 0


class Packet:
    """A data packet in a node, from its row 0 until its blocks are released.

    Attributes are set when they become known.

    Attributes:
        vl: on which it came; for a packet from a host or an agent, as they wrote it.
        lrh: bytes 0..3 of its LRH, byte 0 highest, with 0 in place of the VL.
        n: PktLen in words; 0 if the header was not processed.
        need: blocks.
        irregular: its host gave it another length than its PktLen says.
        rejection: of the header.
        not_active: the port was neither Armed nor Active.
        accepted: it took its blocks.
        k: index of the end row, or of the row at which the packet was cut; -1 before.
        delimiter: how it ended (section 3.2).
        vcrc_good: for one that ended.
        input, slot_in, output, slot: its path through the node; `slot` is that of the output.
        oversize: it exceeds the out port's NeighborMTU.
        is_rejected: it is a copy that may not leave, for its partition (section 3.8).
        join_row: index d of the row with which it joins its queue late, n: its end row, if the verdict is GOOD;
            0 if nothing keeps it back.
        checks: by which of `PartitionCheck` its partition is checked; of one that is.
        key_row: index K of the row with the last byte of its P_Key; 0 if that is not looked for.
        key_at: the cycle in which its P_Key is looked for, in the last of the tables, once known; -1 before.
        constraint: its partition's rejection, RCV_CONSTRAINT or XMIT_CONSTRAINT; GOOD if there is none so far.
        join_at: cycle e in which it joins its queue, once known; -1 before.
        visible_from: the cycle from which on it is a visible head, once known.
        ended_from: the first cycle in which a grant may count on its having ended; of one in a queue.
        queue: the queue that it joined.
        stamp: ticks of its node's life time when it ended, once there has been one (section 7.2).
        bad: known not to be GOOD, to a read issued from the next cycle on.
        sending: what is on the wires of it, until its last row is read.
        copies: of a multicast packet, and of each copy of one: what these have in common; None of any other.
        content, rows, source: one of these is where its bytes are. `rows` are the data of the rows so
            far, of a packet received row by row; `source` is the undamaged transmission that is arriving. A copy has
            the content alone, once its packet's verdict is known.
    """

    __slots__ = (
        "accepted",
        "bad",
        "checks",
        "constraint",
        "content",
        "copies",
        "delimiter",
        "ended_from",
        "input",
        "irregular",
        "is_rejected",
        "join_at",
        "join_row",
        "k",
        "key_at",
        "key_row",
        "lrh",
        "n",
        "need",
        "not_active",
        "output",
        "oversize",
        "queue",
        "rejection",
        "rows",
        "sending",
        "slot",
        "slot_in",
        "source",
        "stamp",
        "vcrc_good",
        "visible_from",
        "vl",
    )

    def __init__(self, vl: int = 0, lrh: int = 0, n: int = 0, need: int = 0) -> None:
        self.vl = vl
        self.lrh = lrh
        self.n = n
        self.need = need
        self.irregular = False
        self.rejection: int
        self.not_active: bool
        self.accepted = False
        self.k = -1
        self.delimiter: int
        self.vcrc_good = True
        self.input: int
        self.slot_in: int
        self.output: int
        self.slot: int
        self.oversize: bool
        self.is_rejected = False
        self.join_row = 0
        self.checks: int
        self.key_row = 0
        self.key_at = -1
        self.constraint: int = _GOOD
        self.join_at = -1
        self.visible_from: int
        self.ended_from = 0
        self.queue: deque[Packet] | None = None
        self.stamp = 0
        self.bad = False
        self.sending: DataTransmission | None = None
        self.copies: Copies | None = None
        self.content: Content | None = None
        self.rows: list[int] | None = None
        self.source: DataTransmission | None = None

    def word(self, row: int) -> int:
        """Data of a row, as stored; in row 0 without lane 0 and VL. Not for the end row."""
        if self.rows is not None:
            word = self.rows[row]
        elif self.content is not None:
            at = 4 * row
            word = int.from_bytes(self.content.data[max(at - 1, 0) : at + 3], "big")
        elif self.source is not None:
            return self.source.word(row)
        else:
            assert self.copies is not None
            return self.copies.packet.word(row)
        return word & 0x000F_FFFF if row == 0 else word

    @property
    def dlid(self) -> int:
        """LRH.DLID."""
        return self.lrh & 0xFFFF

    @property
    def sl(self) -> int:
        """LRH.SL."""
        return self.lrh >> 20 & 0xF

    @property
    def slid(self) -> int:
        """LRH.SLID, if row 2 has come."""
        return (self.word(1) & 0xFF) << 8 | self.word(2) >> 24


class Copies:
    """The copies of a multicast packet, each a `Packet` with an output, a slot and a fate of its own (section 3.7).

    Attributes:
        packet: what is stored of all.
        every: all of them.
        left: those that have not been granted.
        are_guarded: they are heads when the packet has been inspected (section 3.8).
    """

    __slots__ = ("_done_at", "_not_done", "_reader", "are_guarded", "every", "left", "packet")

    def __init__(self, packet: Packet) -> None:
        """`packet` is accepted, as far as its header says; the copies are added then."""
        self.packet = packet
        self.every: list[Packet] = []
        self.left: list[Packet] = []
        self.are_guarded = False
        self._not_done = 0
        self._done_at = -1
        self._reader = 0

    def add(self, output: int, slot: int, oversize: bool) -> None:
        """There is a copy for an output."""
        packet = self.packet
        copy = Packet(packet.vl, packet.lrh, packet.n, packet.need)
        copy.input, copy.slot_in = packet.input, packet.slot_in
        copy.output, copy.slot, copy.oversize = output, slot, oversize
        copy.copies = self
        self.every.append(copy)
        self.left.append(copy)
        self._not_done += 1

    def become_heads(self) -> None:
        """The packet is the first in its queue: those that are left know from when on they are visible."""
        packet = self.packet
        for copy in self.left:
            copy.queue = packet.queue
            copy.join_at = packet.join_at
            copy.visible_from = packet.visible_from
            copy.ended_from = packet.ended_from

    def ended(self) -> None:
        """What the packet is in the end is known of it, and so of them."""
        packet = self.packet
        for copy in self.every:
            copy.content = packet.content
            copy.stamp = packet.stamp
            copy.ended_from = packet.ended_from

    def done(self, reader: int, cycle: int) -> int:
        """One of them is done in a cycle, never before one that was done before (section 8.1).

        Returns:
            The reader (its bit) that asks for the release of the packet's blocks; 0 if another one is not done yet.
        """
        if cycle == self._done_at:
            reader = min(reader, self._reader)
        self._done_at, self._reader = cycle, reader
        self._not_done -= 1
        return 0 if self._not_done else reader


class Transmission(ABC):
    """A packet on a port's wires (sections 8.1 and 8.2).

    Attributes:
        output: index of the one that sends it.
        vl: on the wire, or that a link packet is about.
        w0: cycle of row 0 on the wire.
        pitch: cycles from row to row, 1 (4X) or 4 (1X).
        end: index of the end row, as planned or as it came.
        last_read: cycle of the read of the last row; -1 once it is known to end early.
        refused: first row that was refused; -1 if none.
        whole: the receiver takes the packet in one piece, as far as is known now.
        record: the one by which it is in the trace as sent.
        arrived: the receiver has done with it.
        irregular: the receiver has to look at its rows from the first one on.
    """

    __slots__ = (
        "arrived",
        "end",
        "irregular",
        "last_read",
        "output",
        "pitch",
        "record",
        "refused",
        "vl",
        "w0",
        "whole",
    )

    def __init__(self, output: int, vl: int, granted: int, pitch: int, end: int, irregular: bool) -> None:
        self.output = output
        self.vl = vl
        self.w0 = granted + 1 + READ_TO_WIRE
        self.pitch = pitch
        self.end = end
        self.last_read = granted + 1 + pitch * end
        self.refused = -1
        self.whole = False
        self.arrived = False
        self.irregular = irregular
        self.record: Record | None = None

    @abstractmethod
    def row(self, index: int) -> Row:
        """A row as it is on the wire, unless it is refused."""


class DataTransmission(Transmission):
    """A data packet on a port's wires.

    Attributes:
        packet: in the node that sends it.
        reader: bit of the input's reader that reads it.
        reception: the packet in the node that receives it.
        fecn_row: index of the row in which FECN is set, unless it ends there or before (section 7.3); or `_NO_ROW`.
    """

    __slots__ = ("_content", "fecn_row", "packet", "reader", "reception")

    def __init__(self, packet: Packet, granted: int, vl: int, pitch: int, reader: int) -> None:
        super().__init__(packet.output, vl, granted, pitch, packet.n, packet.irregular)
        self.packet = packet
        self.reader = reader
        self.reception: Packet | None = None
        self.fecn_row = _NO_ROW
        self._content: Content | None = None

    @property
    def has_fecn_set(self) -> bool:
        """Known once its end is."""
        return self.fecn_row < self.end

    @property
    def content(self) -> Content:
        """The bytes sent; known when the end row is on the wire.

        Raises:
            Underrun: the output ran dry.
        """
        content = self._content or self.packet.content
        if content is None:
            raise Underrun(self)
        if self.has_fecn_set and self._content is None:
            content = self._content = content.with_fecn(WORD_BYTES * self.fecn_row)
        return content

    def word(self, row: int) -> int:
        """Data of a row, as `Packet.word` has it, with FECN."""
        word = self.packet.word(row)
        return word | _FECN if row == self.fecn_row else word

    def end_early(self, k: int, now: int) -> int:
        """End with row k < n, which is yet to be read: returns the cycle in which it is.

        Raises:
            Underrun: it has been read.
        """
        self.end = k
        on_wire = self.w0 + self.pitch * k
        if on_wire - READ_TO_WIRE <= now:
            raise Underrun(self)
        if on_wire <= self.last_read:
            self.last_read = -1
        return on_wire - READ_TO_WIRE

    def row(self, index: int) -> Row:
        """VL and VCRC are those of this link."""
        if index == 0:
            return _SDP | self.vl << 20 | self.packet.word(0), _K_FIRST
        if index != self.end:
            return self.word(index), 0
        check = int.from_bytes(self.content.vcrc(self.vl), "big")
        last = self.content.data[-1] << 24
        if self.packet.bad:
            return last | (check ^ 0xFFFF) << 8 | Control.EBP, _K_LAST
        return last | check << 8 | Control.EGP, _K_LAST


class Underrun(Exception):
    """An output read rows that had not arrived.

    That happens only where the two ends of a link disagree about WIDTH, or where it was written
    while a packet was in the node: section 3.5 does not say what is sent then.
    """

    def __init__(self, sending: Transmission) -> None:
        super().__init__(
            f"packet of {sending.end} words, on the wire from cycle {sending.w0}, was sent before it "
            f"had arrived: expected the same WIDTH at both ends of a link, written while it is idle"
        )


class LinkTransmission(Transmission):
    """A flow control packet on a port's wires."""

    __slots__ = ("fccl", "fctbs", "op")

    def __init__(self, output: int, granted: int, pitch: int, op: int, vl: int, fctbs: int, fccl: int) -> None:
        super().__init__(output, vl, granted, pitch, 1, False)
        self.op = op
        self.fctbs = fctbs
        self.fccl = fccl

    def row(self, index: int) -> Row:
        """One of two."""
        word = self.op << 28 | self.fctbs << 16 | self.vl << 12 | self.fccl
        if index == 0:
            return _SLP | word >> 8, _K_FIRST
        check = int.from_bytes(lpcrc(word.to_bytes(4, "big")), "big")
        return (word & 0xFF) << 24 | check << 8 | Control.EGP, _K_LAST
