"""What becomes of a packet that arrives: header, blocks, verdict (docs/pipeline.md, sections 3.2 to 3.5)."""

from abc import ABC, abstractmethod
from typing import Final

from wire.codes import VL15, PortState
from wire.flow_control import CREDIT_WINDOW
from wire.registers import Counter, Detail
from wire.trace import Kind, Verdict

from ..crossing.buffer import Buffer
from ..crossing.matcher import Matcher
from ..kernel import NEVER, RECEIVE
from ..packet import Packet
from .flow_control import FlowControl
from .life_time import LifeTime
from .packet_check import VERDICT_COUNTERS, VERDICT_DETAILS, verdict_of
from .port_state import PortStateMachine
from .port_status import PortStatus

__all__ = ["Acceptance", "PortOwner"]

# In the compiled model, what is said to be final takes less time than what is imported.
_WINDOW: Final[int] = CREDIT_WINDOW
_RX_DATA: Final = Kind.RX_DATA
_GOOD: Final = Verdict.GOOD
_DLID: Final = 0xFFFF
_SL_SHIFT: Final = 20
_SL: Final = 0xF
_ARMED: Final = PortState.ARMED
_RECEIVING_STATES: Final = frozenset({PortState.ARMED, PortState.ACTIVE})
_UNREADABLE: Final = frozenset({Verdict.LVER, Verdict.LENGTH})
_CONSTRAINTS: Final = frozenset({Verdict.RCV_CONSTRAINT, Verdict.XMIT_CONSTRAINT})


class PortOwner(ABC):
    """What a port asks of its node, and reports to it.

    Attributes:
        is_destination: all packets end here, as in a channel adapter, where their ICRC counts.
        joins_whole: packets join if their verdict is GOOD; otherwise with their header, unless they are kept back.
    """

    is_destination: bool
    joins_whole: bool

    @abstractmethod
    def rejection(self, status: PortStatus, packet: Packet, free: list[int]) -> Verdict:
        """The table of section 3.3, with the free blocks by slot as visible in the cycle before.

        For GOOD, the packet's route is set (output, slot, oversize; or copies), and what keeps it back (join_row;
        section 3.6).
        """

    @abstractmethod
    def p_key_rejection(self, packet: Packet) -> Verdict:
        """What becomes of a packet by its P_Key, which is looked for up to the current cycle (section 3.6)."""

    @abstractmethod
    def rejected_by_partition(self, packet: Packet, verdict: Verdict) -> None:
        """A packet is RCV_CONSTRAINT, or XMIT_CONSTRAINT at its output, which is in the trace in the current cycle."""

    @abstractmethod
    def route_whole(self, packet: Packet) -> None:
        """Where a GOOD packet goes that did not join at its header (output)."""

    @abstractmethod
    def largest_out_changed(self) -> None:
        """NEIGHBOR_MTU was written, visible in the current cycle."""

    @abstractmethod
    def port_state_changed(self, old: PortState, new: PortState, by_write: bool) -> None:
        """A new port state is visible in the current cycle; `by_write`: it is Down, by a register write."""


class Acceptance:
    """Between a port's receiver and its input of the crossing."""

    def __init__(
        self,
        status: PortStatus,
        owner: PortOwner,
        matcher: Matcher,
        buffer: Buffer,
        flow: FlowControl,
        state_machine: PortStateMachine,
        life: LifeTime | None,
    ) -> None:
        """`buffer` is that of the port's input, `life` is a switch's."""
        self._status = status
        self._kernel = status.kernel
        self._counters = status.counters
        self._owner = owner
        self._is_destination = owner.is_destination
        self._joins_whole = owner.joins_whole
        self._matcher = matcher
        self._buffer = buffer
        self._flow = flow
        self._state_machine = state_machine
        self._life = life

    def header(self, packet: Packet) -> None:
        """A header is processed; what it changes is visible in the current cycle (section 3.3)."""
        now, vl = self._kernel.now, packet.vl
        status, buffer = self._status, self._buffer
        if buffer.next_return < now:
            buffer.settle(now - 1)
        packet.input = status.index
        packet.slot_in = status.vls if vl == VL15 else vl
        packet.rejection = self._owner.rejection(status, packet, buffer.free)
        packet.not_active = vl != VL15 and status.state not in _RECEIVING_STATES
        if packet.rejection or packet.not_active:
            packet.join_row = 0
            if self._is_on_credit(packet):
                self._kernel.at(now + 1, RECEIVE, self._flow.spend, packet)
            return
        packet.accepted = True
        if buffer.sizes[packet.slot_in] > _WINDOW:
            self._kernel.at(now + 1, RECEIVE, self._take_blocks, packet)
        else:  # a cycle early: nobody looks before, and ABR + free, which is announced, stays as it was
            self._take_blocks(packet)
        if not self._joins_whole:
            packet.ended_from = NEVER
            if not packet.join_row:
                self._matcher.join(packet, now)

    def _is_on_credit(self, packet: Packet) -> bool:
        """Whether the sender of a packet that is not accepted has spent credits for it (section 3.3, ABR)."""
        if packet.vl >= self._status.operational or packet.rejection in _UNREADABLE:
            return False
        return packet.not_active or packet.rejection != Verdict.OVERRUN

    def _take_blocks(self, packet: Packet) -> None:
        """An accepted packet takes its blocks, visible in the current cycle."""
        now = self._kernel.now
        buffer = self._buffer
        if buffer.next_return < now:
            buffer.settle(now - 1)
        if packet.vl != VL15:
            self._flow.accept(packet.vl, packet.need)
        buffer.free[packet.slot_in] -= packet.need

    def look_for_key(self, packet: Packet) -> None:
        """The P_Key of a packet is looked for, in the last of the tables in the current cycle (section 3.6)."""
        packet.constraint = self._owner.p_key_rejection(packet)

    def join(self, packet: Packet) -> None:
        """A packet joins its queue in the current cycle (section 3.5)."""
        self._matcher.join(packet, self._kernel.now)

    def verdict(self, packet: Packet) -> None:
        """A packet's verdict is in the trace in the current cycle (section 3.2)."""
        now = self._kernel.now
        packet.rows = None
        lrh = packet.lrh
        verdict = verdict_of(packet, self._is_destination)
        accepted, n, k = packet.accepted, packet.n, packet.k
        self._kernel.record(
            (
                now,
                self._status.source,
                _RX_DATA,
                verdict | packet.vl << 8 | packet.delimiter << 16,
                n | k << 16,
                (lrh & _DLID) << 16 | lrh >> _SL_SHIFT & _SL if n else 0,
                packet.need if accepted else 0,
                0,
            )
        )
        self._counters.received(now + 1, k, lrh & _DLID if n else 0)
        if verdict:
            self._count(verdict)
            if verdict in _CONSTRAINTS:
                self._owner.rejected_by_partition(packet, verdict)
        elif self._status.state == _ARMED and packet.vl != VL15:
            self._state_machine.good_packet()
        life = self._life
        if life is not None and life.is_counted:
            packet.stamp = life.stamp(now)
        if packet.queue is not None:
            self._matcher.ended(packet)
        if packet.copies is not None:
            packet.copies.ended()
        if accepted and (verdict or packet.queue is None):
            self._settle(packet, verdict)

    def _count(self, verdict: Verdict) -> None:
        if verdict == Verdict.DLID and not self._is_destination:
            self._counters.add_after(1, Counter.RCV_SWITCH_RELAY_ERRORS, Detail.DLID_MAPPING_ERRORS)
        elif verdict in VERDICT_COUNTERS:
            self._counters.add_after(1, VERDICT_COUNTERS[verdict])
            if verdict in VERDICT_DETAILS:
                self._counters.add_after(1, VERDICT_DETAILS[verdict])
        if verdict == Verdict.PHYSICAL:
            self._counters.physical_error()
        if verdict == Verdict.OVERRUN:
            self._flow.overrun()

    def _settle(self, packet: Packet, verdict: Verdict) -> None:
        """What becomes of an accepted packet once its verdict is known (sections 3.4, 3.5 and 8.1)."""
        if packet.queue is None:
            if verdict == _GOOD:
                packet.ended_from = self._kernel.now + 1
                self._owner.route_whole(packet)
                self.join(packet)
            else:
                self._buffer.give_back(packet, self._kernel.now + 1)
        else:
            for one in (packet,) if packet.copies is None else packet.copies.every:
                one.bad = True
                if one.sending and packet.k != packet.n:
                    self._matcher.outputs[one.output].end_early(one.sending, packet.k)
