"""Sending: reads, the transmit stage and what is on the wires (docs/pipeline.md, sections 8.1 to 8.3).

A packet is put on the link when it is granted; a flow control packet goes into the trace then, a
data packet when its last row is read, ahead of the end row's cycle on the wire. A change of the
port that refuses rows in the cycles between takes back what does not happen (`recheck`).
"""

from typing import Final

from wire.codes import VL15, PortState
from wire.flow_control import CREDIT_MODULUS
from wire.registers import Counter, Detail
from wire.trace import Discard, Kind, Record
from wire.trace_layout import Scrap, TxDiscard

from ..crossing.matcher import Matcher
from ..crossing.output import Output
from ..crossing.vl_arbitration import VlArbitration
from ..kernel import DECIDE, NEVER, UPDATE
from ..packet import READ_TO_WIRE, DataTransmission, LinkTransmission, Packet, Transmission
from .congestion import Congestion
from .eligibility import MANAGEMENT_STATES, Eligibility
from .flow_control import FlowControl
from .link import Direction
from .port_status import PortStatus
from .time_limits import NOT_DISCARDED, TimeLimits
from .xmit_wait import VlXmitWait

__all__ = ["LinkOutput"]

# In the compiled model, what is said to be final takes less time than what is imported.
_MODULUS: Final[int] = CREDIT_MODULUS
_STAGE_TO_WIRE: Final = 1
_CYCLE_MASK: Final = 0xFFFF_FFFF
_ACTIVE: Final = PortState.ACTIVE
_TX_DATA: Final = Kind.TX_DATA
_TX_FCP: Final = Kind.TX_FCP
_NEIGHBOR_MTU: Final[int] = Discard.NEIGHBOR_MTU
_CONSTRAINT: Final[int] = Discard.CONSTRAINT
_REFUSED: Final[int] = Discard.INACTIVE
"""Why a packet is discarded of which rows may not pass the transmit stage."""
_DETAILS: Final[dict[int, Detail]] = {
    Discard.INACTIVE: Detail.INACTIVE_DISCARDS,
    Discard.NEIGHBOR_MTU: Detail.NEIGHBOR_MTU_DISCARDS,
    Discard.LIFE_TIME: Detail.LIFE_TIME_DISCARDS,
    Discard.HOQ_LIFE: Detail.HOQ_LIFE_DISCARDS,
}


class LinkOutput(Output):
    """The sending side of a port on a link.

    Attributes:
        wire: where it sends to, if there is a cable.
    """

    def __init__(
        self,
        status: PortStatus,
        matcher: Matcher,
        eligibility: Eligibility,
        flow: FlowControl,
        limits: TimeLimits | None,
        congestion: Congestion | None,
    ) -> None:
        """`limits` and `congestion` are those of a switch's port."""
        super().__init__(status.index, status.vls, eligibility, flow)
        self.wire: Direction | None = None
        self._status = status
        self._kernel = status.kernel
        self._counters = status.counters
        self._vl_wait = VlXmitWait(status.counters.ticks, self.seen_from)
        self._matcher = matcher
        self._eligibility = eligibility
        self._flow = flow
        self._limits = limits
        self.backlog = self._congestion = congestion
        self._vl15_slot = status.vls
        if status.vls != 1:
            self.arbitration = VlArbitration(status.kernel, status.vls)
        self._heads = 0
        # Packets of which rows pass the transmit stage or are on the wire.
        self._sending: Transmission | None = None
        self._before: Transmission | None = None
        self._initialized_at = -1  # when Initialize last set TBS to 0

    # Matching (section 7).

    def grant(self, packet: Packet, reader: int) -> None:
        """Plan the reads of a packet granted in the current cycle."""
        g = self._kernel.now
        is_data = packet.slot != self._vl15_slot
        sending = DataTransmission(packet, g, packet.slot if is_data else VL15, self.pitch, reader)
        self._heads -= 1
        xmit_wait = self._counters.xmit_wait
        if xmit_wait.since is not None:
            xmit_wait.end(g + 1)
        self._vl_wait.offered(packet.slot, g, self.busy_until)
        congestion = self._congestion
        starved = congestion is not None and congestion.granted(packet)
        discard = self._eligibility.discard(packet.slot)
        limits = self._limits
        if limits is not None and limits.is_finite and is_data:
            discard = limits.granted(packet, discard)
        if is_data and packet.oversize:
            discard = _NEIGHBOR_MTU
        if packet.is_rejected:
            discard = _CONSTRAINT
        if packet.bad or discard != NOT_DISCARDED:
            self.busy_until = g + 2
            self._kernel.at(g + 3, UPDATE, self._unsent, (sending, discard))
            return
        packet.sending = sending
        self.busy_until = sending.last_read
        self._matcher.reads(sending)
        if congestion is not None and is_data:
            congestion.consider(sending, starved)
        if is_data and self.arbitration is not None:
            self.arbitration.granted(sending)
        if self._allowed(sending):
            self._send(sending)
        else:  # row 0 may not pass at present: look again when it is in the transmit stage
            self._kernel.at(sending.w0 - _STAGE_TO_WIRE, DECIDE, self._row_0_in_stage, sending)

    def grant_flow_control(self) -> None:
        """Plan a flow control packet granted in the current cycle."""
        sending = self._flow.send(self.pitch)
        self._matcher.reads(sending)
        self._send(sending)
        if not self._allowed(sending):
            self._refuse(sending)

    # Reading (section 8.1).

    def last_read(self, sending: DataTransmission) -> None:
        """The last row is read in the current cycle: its row is on the wire three cycles later."""
        packet = sending.packet
        packet.sending = None
        if sending.end == packet.n:  # otherwise an early end, just about to be over
            now = self._kernel.now
            self._finish(sending, now + READ_TO_WIRE)
            self._matcher.release(sending, now + 1)

    def _unsent(self, of: tuple[DataTransmission, int]) -> None:
        """A packet of which nothing is sent is scrapped in the current cycle, or discarded, as the next one shows.

        Then output and reader are available.
        """
        sending, _ = of
        packet = sending.packet
        kernel = self._kernel
        if packet.bad:
            fields = {"slot": packet.slot, "input": packet.input, "pkt_len": packet.n}
            kernel.record(Scrap.record(kernel.now, self._status.source, **fields))
        else:
            sending.end = 0
            kernel.at(kernel.now + 1, UPDATE, self._discard, of)
        self._read_early(sending)
        kernel.at(kernel.now + 1, UPDATE, self._done_early, sending)

    def end_early(self, sending: DataTransmission, k: int) -> None:
        """The output is busy until after the last read."""
        read = sending.end_early(k, self._kernel.now)
        self.busy_until = read + 1
        self._kernel.at(read + 2, UPDATE, self._read_early, sending)
        self._kernel.at(read + READ_TO_WIRE, UPDATE, self._ended_early, sending)

    def _read_early(self, sending: DataTransmission) -> None:
        """Two cycles after the last read: blocks return and heads wait, though the output may not be available yet."""
        now = self._kernel.now
        self._matcher.release(sending, now)
        self._rest_from(now)
        self._matcher.wake_at(now, self.bit)

    def _ended_early(self, sending: DataTransmission) -> None:
        self._finish(sending, self._kernel.now)
        assert self.wire is not None
        self.wire.ended_early(sending)
        sending.packet.sending = None
        if sending.last_read == -1:
            self._done_early(sending)

    def _done_early(self, sending: DataTransmission) -> None:
        """Output and reader are available from the current cycle on."""
        self._matcher.wake(self._matcher.done(sending))
        self._rest_from(self._kernel.now)

    # The transmit stage (section 8.2).

    def _allowed(self, sending: Transmission) -> bool:
        """Rows may pass, by what is visible in the current cycle."""
        status = self._status
        if isinstance(sending, DataTransmission):
            packet = sending.packet
            if packet.slot != self._vl15_slot:
                return status.state == _ACTIVE and packet.slot < status.operational
        return status.state in MANAGEMENT_STATES

    def _send(self, sending: DataTransmission | LinkTransmission) -> None:
        """Row 0 will pass the transmit stage."""
        self._before, self._sending = self._sending, sending
        if isinstance(sending, DataTransmission):
            packet = sending.packet
            slot = packet.slot
            if slot != self._vl15_slot:
                # Visible early; no announcement looks at it before the output is available again.
                tbs = self._flow.tbs
                tbs[slot] = (tbs[slot] + packet.need) % _MODULUS
                self._eligibility.charge(slot, packet.need)
        else:
            end, credits = sending.last_read + READ_TO_WIRE, sending.fctbs << 16 | sending.fccl
            fields = (end, self._status.source, _TX_FCP, sending.op | sending.vl << 8, credits, 0, 0, 0)
            sending.record = self._kernel.record(fields)
        assert self.wire is not None  # a port without a cable stays in Down, and sends nothing
        self.wire.send(sending)

    def _row_0_in_stage(self, sending: DataTransmission) -> None:
        if not self._allowed(sending):
            sending.refused = 0
            return
        if sending.pitch != self.pitch:
            sending.irregular = True
        self._send(sending)

    def recheck(self, _: None = None) -> None:
        """The state, the operational VLs or the width changed: rows from now on may be refused."""
        for sending in (self._before, self._sending):
            if sending and sending.refused < 0 and not self._allowed(sending):
                self._refuse(sending)

    def _refuse(self, sending: Transmission) -> None:
        now = self._kernel.now
        first = sending.w0 - _STAGE_TO_WIRE
        row = max(0, -(-(now - first) // sending.pitch))
        in_stage = first + row * sending.pitch
        if row > sending.end:
            return
        if in_stage != now:  # until then it may be allowed again
            self._kernel.at(in_stage, DECIDE, self.recheck)
            return
        sending.refused = row
        assert self.wire is not None
        self.wire.refuse(sending, row)
        if not row and isinstance(sending, DataTransmission):
            packet = sending.packet
            slot = packet.slot
            if slot != self._vl15_slot:  # nothing was sent
                self._eligibility.charge(slot, -packet.need)
                if self._initialized_at < sending.w0 - READ_TO_WIRE:  # TBS was not set to 0 since its grant
                    tbs = self._flow.tbs
                    tbs[slot] = (tbs[slot] - packet.need) % _MODULUS
        if sending.record:
            self._take_back(sending, sending.record)

    # The end (section 8.2).

    def _finish(self, sending: DataTransmission, cycle: int) -> None:
        """The end row of a data packet, or an idle row in its place, will be on the wire in a cycle."""
        if sending.refused >= 0:
            self._kernel.at(cycle, UPDATE, self._discard, (sending, _REFUSED))
            return
        packet, vl, end = sending.packet, sending.vl, sending.end
        content, bad = sending.content, packet.bad
        self._counters.sent(cycle, end, packet.dlid)
        sending.record = self._kernel.record(
            (
                cycle,
                self._status.source,
                _TX_DATA,
                packet.slot | bad << 8 | sending.has_fecn_set << 12 | packet.input << 16,
                packet.n | end << 16,
                sending.w0 - self._matcher.epoch & _CYCLE_MASK,
                content.fingerprint(vl, bad) if self._kernel.keeps(_TX_DATA) else 0,
                vl << 28 | packet.lrh,
            )
        )

    def _take_back(self, sending: Transmission, record: Record) -> None:
        """The end row is refused, after the packet was put into the trace."""
        self._kernel.withdraw(record)
        if isinstance(sending, DataTransmission):
            self._counters.not_sent(record.cycle, sending.end, sending.packet.dlid)
            self._kernel.at(record.cycle, UPDATE, self._discard, (sending, _REFUSED))

    def _discard(self, of: tuple[DataTransmission, int]) -> None:
        sending, reason = of
        packet = sending.packet
        self._counters.add(Counter.XMIT_CONSTRAINT_ERRORS if reason == _CONSTRAINT else Counter.XMIT_DISCARDS)
        if reason in _DETAILS:
            self._counters.add(_DETAILS[reason])
        fields = {"slot": packet.slot, "input": packet.input, "pkt_len": packet.n, "end_row": sending.end}
        self._kernel.record(TxDiscard.record(self._kernel.now, self._status.source, reason=reason, **fields))

    # PortXmitWait, and by VL (section 8.3).

    def heads_shown(self, count: int) -> None:
        """Some heads more: the output may begin to wait."""
        self._heads += count
        self._rest_from(self._kernel.now)
        limits = self._limits
        if limits is not None and limits.is_finite:
            limits.heads_shown()

    def rest(self) -> None:
        """No packet was offered: the output may wait from the next cycle on."""
        self._rest_from(self._kernel.now + 1)

    def offer_refused(self, slot: int) -> None:
        """The output does not wait in the next cycle; it may from the one after it on."""
        following = self._kernel.now + 1
        xmit_wait = self._counters.xmit_wait
        if xmit_wait.since is not None:
            xmit_wait.end(following)
        self._vl_wait.offered(slot, self._kernel.now, self.busy_until)
        self.busy_until = following
        self._rest_from(following + 1)

    def _rest_from(self, cycle: int) -> None:
        if self._heads and cycle > self.busy_until and self._status.state == _ACTIVE:
            self._counters.xmit_wait.begin(cycle)

    def _vl_waits(self) -> VlXmitWait:
        """What slots wait, as far as may be known in the current cycle."""
        self._vl_wait.look(self._kernel.now, self.busy_until, self.coming)
        return self._vl_wait

    def read_vl_xmit_wait(self, slot: int) -> int:
        """The value of a slot's counter visible in the current cycle."""
        return self._vl_waits().read(slot, self._kernel.now)

    def write_vl_xmit_wait(self, slot: int, value: int) -> None:
        """A write of a slot's counter, visible in the current cycle."""
        self._vl_waits().write(slot, self._kernel.now, value)

    def set_tick(self, cycles: int) -> None:
        """TICK was written: ticks of this length begin in the current cycle."""
        now, counters = self._kernel.now, self._counters
        counters.xmit_wait.settle(now)
        self._vl_waits().settle(now)
        counters.ticks.begin_anew(now, cycles)

    def state_changed(self) -> None:
        """A new port state is visible in the current cycle."""
        now = self._kernel.now
        if self._status.state == _ACTIVE:
            self._rest_from(now + 1 if self.busy_until == now else now)
            self._vl_wait.active_from = now
        else:
            self._counters.xmit_wait.end(now)
            self._vl_waits().settle(now)
            self._vl_wait.active_from = NEVER
        if self._status.state == PortState.INITIALIZE:
            self._initialized_at = now
        self.recheck()
        self._eligibility.state_changed()

    def operational_changed(self) -> None:
        """The operational VLs changed, visible in the current cycle."""
        self.recheck()
        self._eligibility.operational_changed()

    def set_pitch(self, pitch: int) -> None:
        """The port's width changed, visible in the current cycle: 1 for 4X, 4 for 1X."""
        if pitch == self.pitch:
            return
        self.pitch = pitch
        if self.wire:
            self.wire.set_pitch(pitch)
        self._matcher.wake(self.bit)
