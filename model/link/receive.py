"""Receiving: framing, and packets taken in one piece (docs/pipeline.md, sections 3.1, 3.2 and 3.5).

An undamaged packet costs two events, its header and its end. As soon as a row differs from what
its sender's plan says, rows go through the framing table one by one (a *walk*), until the receiver
is outside packets and only undamaged ones are ahead.
"""

from enum import Enum, auto
from typing import Final

from wire.codes import PortState
from wire.crc import vcrc
from wire.packet import blocks_of_words
from wire.registers import Counter, Detail
from wire.symbols import Control

from ..content import Content
from ..kernel import DECIDE, NEVER, RECEIVE, UPDATE
from ..packet import CUT, EBP, EGP, DataTransmission, LinkTransmission, Packet, Row, Transmission
from .acceptance import Acceptance
from .flow_control import FlowControl
from .link import Direction, RowReceiver
from .port_status import PortStatus

__all__ = ["Receiver"]

_HEADER_LATENCY: Final = 2
"""Cycles from row 1 until what the header changes is visible."""
_VERDICT_LATENCY: Final = 2
"""Cycles from the end row to the verdict."""
_LINK_LATENCY: Final = 2
"""Cycles from row 1 of a link packet until what it changes is visible."""
_KEY_LATENCY: Final = 2
"""Cycles from the row with the last byte of a P_Key to the one in which the second of two tables is looked into."""
_ERROR_LATENCY: Final = 3
"""Cycles from a row to its errors in the counters."""
_ENABLED_STATES: Final = frozenset({PortState.INITIALIZE, PortState.ARMED, PortState.ACTIVE})
_K_FIRST: Final = 8
_K_LAST: Final = 1


class _RowClass(Enum):
    START_DATA = auto()
    START_LINK = auto()
    CLEAN = auto()
    END = auto()
    VIOLATION = auto()


class _State(Enum):
    IDLE = auto()
    DATA = auto()
    LINK = auto()
    DISCARD = auto()


_IDLE: Final = _State.IDLE


def _classify(data: int, k: int) -> _RowClass:
    if k == 0:
        return _RowClass.CLEAN
    if k == _K_FIRST and data >> 24 == Control.SDP:
        return _RowClass.START_DATA
    if k == _K_FIRST and data >> 24 == Control.SLP:
        return _RowClass.START_LINK
    if k == _K_LAST and data & 0xFF in (Control.EGP, Control.EBP):
        return _RowClass.END
    return _RowClass.VIOLATION


class Receiver(RowReceiver):
    """The receiving side of a port up to the verdict."""

    def __init__(self, status: PortStatus, flow: FlowControl, acceptance: Acceptance) -> None:
        self._enabled = False
        self._status = status
        self._kernel = status.kernel
        self._counters = status.counters
        self._flow = flow
        self._acceptance = acceptance
        self._wire: Direction
        self._flight = 0
        # Bound once, as binding takes longer than the call in the compiled model.
        self._link_packet_event = self._whole_link_packet
        self._header_event = self._whole_header
        self._end_event = self._whole_end
        # Framing, used in a walk.
        self._state = _State.IDLE
        self._row = 0
        self._packet = Packet()
        self._link_word = 0
        # The walk.
        self._walk_at = -1
        self._walking = False
        self._walked_to = 0  # the cycle after the last one walked
        self._rows_from = 0  # packets that arrive from this cycle on are received by rows

    def connect(self, wire: Direction) -> None:
        """Receive from a direction of a link."""
        self._wire = wire
        self._flight = wire.flight

    def check_enabled(self) -> None:
        """The link or the port state changed, visible in the current cycle."""
        enabled = self._status.link_up and self._status.state in _ENABLED_STATES
        if enabled == self._enabled:
            return
        self._enabled = enabled
        now = self._kernel.now
        if enabled:
            self._walk_on(now)
            return
        if not self._walking:
            self._take_over(now)
        if self._state is _State.DATA:
            self._end(self._row, CUT)
        self._state = _State.IDLE
        self._walking = False
        self._walk_at = -1
        self._rows_from = 0
        for sending in self._wire.in_flight:
            if self._wire.last_arrival(sending) >= now:
                sending.whole = False

    # Undamaged packets.

    def expect(self, sending: Transmission) -> None:
        """It is taken in one piece, if it may be."""
        arrives = sending.w0 + self._flight
        if arrives >= self._rows_from:
            return
        if sending.irregular:
            self.disturb(arrives)
            return
        sending.whole = True
        kernel, pitch = self._kernel, sending.pitch
        if isinstance(sending, LinkTransmission):
            kernel.at(arrives + pitch + _LINK_LATENCY, RECEIVE, self._link_packet_event, sending)
        else:
            kernel.at(arrives + pitch + _HEADER_LATENCY, RECEIVE, self._header_event, sending)
            kernel.at(arrives + pitch * sending.end + _VERDICT_LATENCY, UPDATE, self._end_event, sending)

    def expect_end(self, sending: Transmission) -> None:
        """It was taken in one piece so far."""
        self._kernel.at(self._wire.last_arrival(sending) + _VERDICT_LATENCY, UPDATE, self._whole_end, sending)

    def _whole_link_packet(self, sending: LinkTransmission) -> None:
        if not sending.whole or sending.arrived:
            return
        if self._state is not _IDLE:
            self._leave_discard(sending)
        self._wire.arrived(sending)
        self._flow.receive(sending.op, sending.vl, sending.fctbs, sending.fccl)

    def _whole_header(self, sending: DataTransmission) -> None:
        if not sending.whole or sending.reception is not None:
            return
        if self._state is not _IDLE:
            self._leave_discard(sending)
        packet = self._arriving(sending)
        self._acceptance.header(packet)
        if packet.join_row:
            self._plan_late(packet, sending)

    def _arriving(self, sending: DataTransmission) -> Packet:
        sent = sending.packet
        packet = sending.reception = Packet(sending.vl, sent.lrh, sent.n, sent.need)
        packet.source = sending
        return packet

    def _whole_end(self, sending: DataTransmission) -> None:
        if not sending.whole or sending.arrived:
            return
        self._wire.arrived(sending)
        packet, sent = sending.reception, sending.packet
        assert packet is not None
        packet.content = sending.content
        packet.source = None
        packet.k = sending.end
        packet.delimiter = EBP if sent.bad else EGP
        self._acceptance.verdict(packet)

    # Packets that are kept back: their P_Keys, and late joins.

    def _plan_late(self, packet: Packet, sending: DataTransmission) -> None:
        """Plan what rows of a packet that is taken in one piece bring about."""
        arrives, pitch = sending.w0 + self._flight, sending.pitch
        if packet.key_row:
            self._row_came(packet, packet.key_row, arrives + packet.key_row * pitch)
        if packet.join_row != packet.n:
            self._row_came(packet, packet.join_row, arrives + packet.join_row * pitch)

    def _row_came(self, packet: Packet, row: int, arrives: int) -> None:
        """What a clean row brings about, which arrives in this cycle."""
        if row == packet.key_row:
            packet.key_at = arrives + _KEY_LATENCY
            self._kernel.at(packet.key_at, DECIDE, self._look_for_key, packet)
        elif row == packet.join_row:
            packet.join_at = arrives + _VERDICT_LATENCY
            self._kernel.at(packet.join_at, DECIDE, self._join, packet)

    def _look_for_key(self, packet: Packet) -> None:
        """Of a packet that ended before row K nobody asks what was found: its verdict is known by now."""
        if packet.key_at == self._kernel.now:
            self._acceptance.look_for_key(packet)

    def _join(self, packet: Packet) -> None:
        planned = packet.join_at == self._kernel.now and packet.queue is None and not packet.constraint
        if planned and (packet.k == -1 or packet.k > packet.join_row):
            self._acceptance.join(packet)

    @staticmethod
    def _forget_plans(packet: Packet, cycle: int) -> None:
        """Rows that arrive from a cycle on may not be those that were planned."""
        if packet.key_at >= cycle + _KEY_LATENCY:
            packet.key_at = -1
        if packet.join_at >= cycle + _VERDICT_LATENCY:
            packet.join_at = -1

    # Row by row.

    def disturb(self, cycle: int) -> None:
        """Packets that arrive from then on are received by rows."""
        if cycle >= self._rows_from:
            return
        self._rows_from = cycle
        for sending in self._wire.in_flight:
            if sending.w0 + self._wire.flight >= cycle:
                sending.whole = False
        self._plan_walk(cycle)

    def _plan_walk(self, cycle: int) -> None:
        self._rows_from = self._walk_at = cycle
        self._kernel.at(cycle, DECIDE, self._walk)

    def _leave_discard(self, sending: Transmission) -> None:
        """A whole packet leaves the receiver in Idle, unless rows were looked at since."""
        if self._wire.last_arrival(sending) >= self._walked_to:
            self._state = _State.IDLE

    def _take_over(self, cycle: int) -> None:
        """Go on row by row with the whole packet of which rows arrived before a cycle."""
        wire = self._wire
        for sending in wire.in_flight:
            arrives = sending.w0 + wire.flight
            if not sending.whole or arrives >= cycle:
                continue
            self._leave_discard(sending)
            if wire.last_arrival(sending) < cycle:
                continue
            sending.whole = False
            rows = -(-(cycle - arrives) // sending.pitch)
            if isinstance(sending, DataTransmission):
                packet = sending.reception
                packet_rows = [sending.row(row)[0] for row in range(rows)]
                if packet is None:
                    packet = self._arriving(sending)
                    if rows != 1:
                        header_at = arrives + sending.pitch + _HEADER_LATENCY
                        self._kernel.at(header_at, RECEIVE, self._acceptance.header, packet)
                packet.rows = packet_rows
                packet.source = None
                if rows == 1:
                    packet.n = 0
                    packet.lrh &= 0xFFFF_FF00
                else:
                    self._forget_plans(packet, cycle)
                self._state, self._row, self._packet = _State.DATA, rows, packet
            else:
                self._state, self._row = _State.LINK, rows
                self._link_word = sending.row(0)[0]
            return

    def _walk(self, _: None) -> None:
        now = self._kernel.now
        if now != self._walk_at:
            return
        if not self._walking:
            self._walking = True
            self._take_over(now)
        self._walked_to = now + 1
        row = self._wire.leaving()
        if row is not None:
            self._feed(row)
        self._walk_on(now + 1)

    def _walk_on(self, cycle: int) -> None:
        """Plan what is to be received from a cycle on."""
        if self._state in (_State.DATA, _State.LINK):
            self._plan_walk(cycle)
            return
        self._walking = False
        self._walk_at = -1
        self._rows_from = NEVER
        wire = self._wire
        changed = wire.next_changed(cycle)
        rows_from = NEVER if changed is None else changed
        for sending in wire.in_flight:
            arrives, last = sending.w0 + wire.flight, wire.last_arrival(sending)
            if sending.arrived or last < cycle:
                continue
            damaged = sending.irregular or sending.refused != -1 or sending.w0 < wire.up_since
            if arrives < cycle or damaged or last >= rows_from:
                rows_from = min(rows_from, max(cycle, arrives))
                break
            self.expect(sending)
        if rows_from != NEVER:
            self._plan_walk(rows_from)

    def _feed(self, row: Row) -> None:
        """One valid row through the framing table, in an enabled cycle."""
        data, k = row
        kind = _classify(data, k)
        if kind is _RowClass.VIOLATION and self._state is not _State.DISCARD:
            self._symbol_error()
        if self._state is _State.DATA:
            self._feed_data(data, kind)
        elif self._state is _State.LINK:
            self._feed_link(data, kind)
        elif kind is _RowClass.START_DATA:
            self._start_data(data)
        elif kind is _RowClass.START_LINK:
            self._state, self._row, self._link_word = _State.LINK, 1, data
        elif self._state is _State.DISCARD:
            if kind is _RowClass.END:
                self._state = _State.IDLE
        elif kind is not _RowClass.CLEAN:
            if kind is _RowClass.END:
                self._symbol_error()
            if k & _K_FIRST and data >> 24 in (Control.SDP, Control.SLP):
                self._counters.add_after(_ERROR_LATENCY, Counter.RCV_ERRORS, Detail.LOCAL_PHYSICAL_ERRORS)
                self._state = _State.DISCARD

    def _symbol_error(self) -> None:
        self._counters.add_after(_ERROR_LATENCY, Counter.SYMBOL_ERROR)

    def _start_data(self, data: int) -> None:
        self._packet = Packet(data >> 20 & 0xF, (data & 0xF_FFFF) << 8)
        self._packet.rows = [data]
        self._state, self._row = _State.DATA, 1

    def _feed_data(self, data: int, kind: _RowClass) -> None:
        packet, row = self._packet, self._row
        now = self._kernel.now
        assert packet.rows is not None
        if kind is _RowClass.END:
            body = self._body(packet.rows, row) + bytes([data >> 24])
            packet.content = Content(body)
            packet.vcrc_good = vcrc(body) == (data >> 8 & 0xFFFF).to_bytes(2, "big")
            self._end(row, EGP if data & 0xFF == Control.EGP else EBP)
            self._state = _State.IDLE
            return
        n = data >> 8 & 0x7FF if row == 1 else packet.n
        if kind is not _RowClass.CLEAN or row >= n:
            self._end(row, CUT)
            self._state = _State.DISCARD
            return
        if row == 1:
            packet.lrh |= data >> 24
            packet.n = n
            packet.need = blocks_of_words(n)
            self._kernel.at(now + _HEADER_LATENCY, RECEIVE, self._acceptance.header, packet)
        packet.rows.append(data)
        if packet.join_row:
            self._row_came(packet, row, now)
        self._row = row + 1

    @staticmethod
    def _body(rows: list[int], end: int) -> bytes:
        """Bytes of rows 0..end-1, from LRH byte 0 on."""
        return b"".join(word.to_bytes(4, "big") for word in rows[:end])[1:]

    def _end(self, k: int, delimiter: int) -> None:
        """A packet ends, or is cut, in the current cycle c_e."""
        packet = self._packet
        packet.k = k
        packet.delimiter = delimiter
        if delimiter == CUT:
            assert packet.rows is not None
            packet.content = Content(self._body(packet.rows, k) + b"\0")
        self._kernel.at(self._kernel.now + _VERDICT_LATENCY, UPDATE, self._acceptance.verdict, packet)

    def _feed_link(self, data: int, kind: _RowClass) -> None:
        flow = self._flow
        latest = self._kernel.now + _LINK_LATENCY
        if kind is not _RowClass.END or data & 0xFF == Control.EBP:
            self._kernel.at(latest, RECEIVE, flow.receive_malformed)
            self._state = _State.IDLE if kind is _RowClass.END else _State.DISCARD
            return
        self._state = _State.IDLE
        six = ((self._link_word & 0xFFFFFF) << 24 | data >> 8).to_bytes(6, "big")
        self._kernel.at(latest, RECEIVE, flow.receive_bytes, six)
