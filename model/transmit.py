"""Sending: reads, the transmit stage and what is on the wires (docs/pipeline.md, sections 8.1 to 8.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wire.codes import VL15, PortState
from wire.flow_control import CREDIT_MODULUS
from wire.registers import Counter
from wire.trace import Kind, Record

from .kernel import DECIDE, UPDATE
from .matcher import Output
from .packet import DataTransmission, LinkTransmission, Packet, Transmission, Underrun

if TYPE_CHECKING:
    from .port import LinkPort
    from .queues import Input

__all__ = ["READ_TO_WIRE", "LinkOutput"]

_READ_TO_STAGE = 1
READ_TO_WIRE = 2
_CYCLE_MASK = 0xFFFF_FFFF
_DATA_STATES = frozenset({PortState.ACTIVE})
_MANAGEMENT_STATES = frozenset({PortState.INITIALIZE, PortState.ARMED, PortState.ACTIVE})


class LinkOutput(Output):
    """The sending side of a port on a link.

    Attributes:
        inputs: the inputs that feed it.
        on_wire: the packet of which rows pass the transmit stage or are on the wire.
    """

    def __init__(self, port: LinkPort, index: int) -> None:
        super().__init__(index, port.vls)
        self.inputs: list[Input] = []
        self.on_wire: Transmission | None = None
        self._port = port
        self._kernel = port.kernel
        self._heads = 0
        self._busy_until = -1

    # Matching (section 7).

    def room(self, slot: int) -> int | None:
        """Data needs credits in Active, on operational VLs; elsewhere it will be swallowed."""
        port = self._port
        if port.state != PortState.ACTIVE or slot >= port.operational:
            return None
        flow = port.flow
        return (flow.credit_limit[slot] - flow.tbs[slot]) % CREDIT_MODULUS

    def grant(self, packet: Packet, reader: int) -> None:
        """Plan the reads of a packet granted in the current cycle."""
        kernel = self._kernel
        g = kernel.now
        vl = VL15 if packet.slot == self.vls else packet.slot
        sending = DataTransmission(packet, vl, g, self.pitch, reader)
        packet.sending = sending
        self._heads -= 1
        self._port.counters.xmit_wait.end(g + 1)
        if packet.bad:
            self._busy_until = g + 2
            kernel.at(g + 3, UPDATE, self._scrap, sending)
        else:
            sending.last_read = self._busy_until = g + 1 + sending.pitch * packet.n
            kernel.at(g + 1 + _READ_TO_STAGE, DECIDE, self._launch, sending)
            kernel.at(sending.last_read, UPDATE, self._read_last, sending)

    def grant_flow_control(self) -> None:
        """Plan a flow control packet granted in the current cycle."""
        kernel = self._kernel
        g = kernel.now
        self._port.matcher.available &= ~(1 << self.index)
        sending = self._port.flow.send(self.pitch)
        kernel.at(g + 1 + _READ_TO_STAGE, DECIDE, self._launch, sending)
        kernel.at(g + 1 + sending.pitch, UPDATE, self._port.matcher.output_available, self.index)
        kernel.at(sending.w0 + sending.pitch, UPDATE, self._finish, sending)

    # Reading (section 8.1).

    def _reader_done(self, sending: DataTransmission) -> None:
        self.inputs[sending.packet.input].reader_available(sending.reader)
        self._port.matcher.output_available(self.index)

    def _read_last(self, sending: DataTransmission) -> None:
        """The last row is read; also the cycle in which an early end just before it is over."""
        if sending.last_read != self._kernel.now:
            return
        self._reader_done(sending)
        self.inputs[sending.packet.input].buffer.ask(sending.reader, self._kernel.now + 1)
        self._kernel.at(self._kernel.now + READ_TO_WIRE, UPDATE, self._sent, sending)

    def _sent(self, sending: DataTransmission) -> None:
        sending.packet.sending = None
        if sending.end == sending.packet.n:
            self._finish(sending)
        self.inputs[sending.packet.input].buffer.release(sending.reader, sending.packet)

    def _scrap(self, sending: DataTransmission) -> None:
        packet = sending.packet
        kernel = self._kernel
        kernel.record(Record(kernel.now, self._port.source, Kind.SCRAP, packet.slot | packet.input << 16, packet.n))
        self._reader_done(sending)
        self._rest_from(kernel.now)
        self._release_after(sending)

    def end_early(self, sending: DataTransmission, k: int) -> None:
        """The packet under way turns out to end with row k < n, which is yet to be read.

        Raises:
            Underrun: it has been read.
        """
        kernel = self._kernel
        sending.bad = True
        sending.end = k
        over = sending.w0 + sending.pitch * k  # x_k + 2
        if over <= kernel.now:
            raise Underrun(sending)
        if over <= sending.last_read:
            sending.last_read = -1
            self._busy_until = over - 1
        kernel.at(over, UPDATE, self._ended_early, sending)

    def _ended_early(self, sending: DataTransmission) -> None:
        self._finish(sending)
        sending.packet.sending = None
        if sending.last_read < 0:
            self._reader_done(sending)
            self._rest_from(self._kernel.now)
            self._release_after(sending)

    def _release_after(self, sending: DataTransmission) -> None:
        """Ask for the release in the current cycle."""
        kernel = self._kernel
        buffer = self.inputs[sending.packet.input].buffer
        buffer.ask(sending.reader, kernel.now)
        kernel.at(kernel.now + 1, UPDATE, lambda _: buffer.release(sending.reader, sending.packet))

    # The transmit stage (section 8.2).

    def _allowed(self, sending: Transmission) -> bool:
        port = self._port
        if isinstance(sending, DataTransmission):
            slot = sending.packet.slot
            if slot != port.vls:
                return port.state in _DATA_STATES and slot < port.operational and not sending.packet.oversize
        return port.state in _MANAGEMENT_STATES

    def _launch(self, sending: Transmission) -> None:
        """Row 0 passes the transmit stage, or the packet is swallowed."""
        port = self._port
        self.on_wire = sending
        if not self._allowed(sending):
            sending.refused = 0
            return
        if isinstance(sending, DataTransmission):
            packet = sending.packet
            if packet.slot != port.vls:
                # Visible a cycle early; nothing looks at it before the output is available again.
                tbs = port.flow.tbs
                tbs[packet.slot] = (tbs[packet.slot] + packet.need) % CREDIT_MODULUS
        sending.irregular = sending.irregular or sending.pitch != self.pitch
        if port.wire_out:
            port.wire_out.send(sending)

    def recheck(self, _: None = None) -> None:
        """The state, the operational VLs or the width changed: rows from now on may be refused."""
        sending = self.on_wire
        if sending is None or sending.refused >= 0 or sending.finished or self._allowed(sending):
            return
        first = sending.w0 - 1  # row 0 was in the stage
        row = -(-(self._kernel.now - first) // sending.pitch)
        in_stage = first + row * sending.pitch
        if row > sending.end:
            return
        if in_stage > self._kernel.now:  # on a 1X output; until then it may be allowed again
            self._kernel.at(in_stage, DECIDE, self.recheck)
        else:
            sending.refused = row
            if self._port.wire_out:
                self._port.wire_out.refuse(sending, row)

    def _finish(self, sending: Transmission) -> None:
        """The end row is on the wire in the current cycle, or the idle row in its place."""
        port = self._port
        sending.finished = True
        kernel = self._kernel
        if isinstance(sending, DataTransmission):
            packet = sending.packet
            lengths = packet.n | sending.end << 16
            place = packet.slot | packet.input << 16
            if sending.refused >= 0:
                port.counters.add(Counter.XMIT_DISCARDS)
                kernel.record(Record(kernel.now, port.source, Kind.TX_DISCARD, place, lengths))
            else:
                port.counters.sent(sending.end)
                sending.bad = packet.bad
                content = sending.content
                kernel.record(
                    Record(
                        kernel.now,
                        port.source,
                        Kind.TX_DATA,
                        place | sending.bad << 8,
                        lengths,
                        sending.w0 & _CYCLE_MASK,
                        content.fingerprint(sending.vl, sending.bad),
                        content.head(sending.vl),
                    )
                )
        elif isinstance(sending, LinkTransmission) and sending.refused < 0:
            kernel.record(
                Record(
                    kernel.now,
                    port.source,
                    Kind.TX_FCP,
                    sending.op | sending.vl << 8,
                    sending.fctbs << 16 | sending.fccl,
                )
            )
        if port.wire_out:
            port.wire_out.finished(sending)

    # PortXmitWait (section 8.3).

    def head_shown(self) -> None:
        """A head more: the output may begin to wait."""
        self._heads += 1
        self._rest_from(self._kernel.now)

    def rest(self) -> None:
        """No packet was granted: the output may wait from the next cycle on."""
        self._rest_from(self._kernel.now + 1)

    def _rest_from(self, cycle: int) -> None:
        if self._heads and cycle > self._busy_until and self._port.state == PortState.ACTIVE:
            self._port.counters.xmit_wait.begin(cycle)

    def state_changed(self) -> None:
        """A new port state is visible in the current cycle."""
        now = self._kernel.now
        self.open_slots = 0 if self._port.state == PortState.ACTIVE_DEFER else (1 << self.vls + 1) - 1
        if self._port.state == PortState.ACTIVE:
            self._rest_from(now)
        else:
            self._port.counters.xmit_wait.end(now)
        self.recheck()
        self._port.matcher.wake(1 << self.index)
