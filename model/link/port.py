"""A port: the link side of one input and one output (docs/pipeline.md, sections 3 to 6, 8 and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from wire.codes import VL15, PortPhysicalState, PortState, max_pkt_len, mtu_code
from wire.flow_control import CREDIT_WINDOW
from wire.packet import BLOCK_BYTES
from wire.registers import PORT_RESET_VALUES, Counter, PortRegister
from wire.trace import Kind, Verdict

from ..crossing.buffer import Buffer
from ..crossing.matcher import Matcher
from ..kernel import RECEIVE, Kernel
from ..management.agent_output import AgentOutput
from ..packet import Packet
from .counters import Counters
from .flow_control import FlowControl
from .packet_check import VERDICT_COUNTERS, verdict_of
from .port_state import PortStateMachine
from .receive import Receiver
from .transmit import LinkOutput

if TYPE_CHECKING:
    from ..crossing.queues import Input
    from .link import Cable, Direction

__all__ = ["LinkPort", "PortOwner"]

_RX_DATA: Final = Kind.RX_DATA
_DLID, _SL_SHIFT, _SL = 0xFFFF, 20, 0xF
_ARMED: Final = PortState.ARMED
_RECEIVING_STATES = frozenset({PortState.ARMED, PortState.ACTIVE})


class PortOwner(Protocol):
    """What a port asks the node that it is in."""

    checks_icrc: bool
    """Final destination of packets: a channel adapter."""
    joins_at_header: bool
    """An accepted packet joins with its header, unless it is late; else if its verdict is GOOD."""
    dlid_counter: Counter
    """The counter of DLID rejections."""

    def rejection(self, port: LinkPort, packet: Packet) -> Verdict:
        """The table of section 3.3, `free` as visible in the cycle before.

        For GOOD, the packet's route is set (output, slot, oversize, late).
        """

    def route_whole(self, packet: Packet) -> None:
        """Where a GOOD packet goes that did not join at its header (output)."""

    def largest_out_changed(self) -> None:
        """NEIGHBOR_MTU was written, visible in the current cycle."""

    def port_state_changed(self, port: LinkPort, old: PortState, by_write: bool) -> None:
        """A new port state is visible in the current cycle; `by_write`: it is Down, by a register write."""


class LinkPort:
    """One port. Created by its node, which adds inputs and matching.

    Attributes:
        state: PortState as visible in the current cycle.
        physical_state: as written: Sleep, Polling or Disabled.
        operational: number of operational data VLs.
        largest: largest PktLen for MTUCap.
        largest_out: largest PktLen for NeighborMTU.
        mtu_code, neighbor_mtu: MTUCap and NeighborMTU.
        local_phy_errors: LOCAL_PHY_ERRORS.
        owner: the node.
        source: of this port's records.
    """

    def __init__(
        self, kernel: Kernel, owner: PortOwner, source: int, index: int, vls: int, mtu: int, matcher: Matcher
    ) -> None:
        self.kernel = kernel
        self.source = source
        self.index = index
        self.vls = vls
        self.matcher = matcher
        self.state = PortState.DOWN
        self.physical_state = PortPhysicalState.POLLING
        self.operational = vls
        self.mtu_code: int = mtu_code(mtu)
        self.neighbor_mtu: int = self.mtu_code
        self.largest = self.largest_out = max_pkt_len(self.mtu_code)
        self.local_phy_errors = PORT_RESET_VALUES[PortRegister.LOCAL_PHY_ERRORS]
        self.cable: Cable | None = None
        self.wire_out: Direction | None = None
        self.counters = Counters(kernel, PORT_RESET_VALUES[PortRegister.TICK] + 1)
        self.output = LinkOutput(self, index)
        self.flow = FlowControl(self, mtu // BLOCK_BYTES)
        self.output.compute_flags = self.flow.compute_flags
        self.state_machine = PortStateMachine(self)
        self.receiver = Receiver(self)
        self.input: Input
        self.buffer: Buffer
        self.owner = owner
        self._checks_icrc = owner.checks_icrc
        self._joins_at_header = owner.joins_at_header
        self._physical_errors = 0

    def connect(self, cable: Cable, out: Direction, into: Direction) -> None:
        """Plug in a cable."""
        self.cable = cable
        self.wire_out = out
        self.receiver.connect(into)

    def set_pitch(self, pitch: int) -> None:
        """WIDTH was written, visible in the current cycle: 1 for 4X, 4 for 1X."""
        if pitch == self.output.pitch:
            return
        self.output.pitch = pitch
        if self.wire_out:
            self.wire_out.set_pitch(pitch)
        self.matcher.wake(1 << self.index)

    def set_neighbor_mtu(self, code: int) -> None:
        """NEIGHBOR_MTU was written, visible in the current cycle."""
        self.neighbor_mtu = code
        self.largest_out = max_pkt_len(code)
        self.owner.largest_out_changed()

    def set_operational(self, vls: int) -> None:
        """OPERATIONAL_VLS was written, visible in the current cycle."""
        self.flow.announcement_changes()
        self.operational = vls
        self.flow.operational_changed()
        self.output.recheck()
        self.output.eligibility.operational_changes()

    @property
    def polls(self) -> bool:
        """It lets its link be up: neither asleep nor disabled."""
        return self.physical_state == PortPhysicalState.POLLING

    def set_physical_state(self, state: PortPhysicalState) -> None:
        """PHYSICAL_STATE was written, visible in the current cycle: Sleep, Polling or Disabled."""
        polled = self.polls
        self.physical_state = state
        if self.cable and self.wire_out and self.polls != polled:
            self.cable.polling_changed()
            self.wire_out.polling_changed(self.polls)

    def header(self, packet: Packet) -> None:
        """A header is processed; what it changes is visible in the current cycle (section 3.3)."""
        now, vl = self.kernel.now, packet.vl
        buffer = self.buffer
        if buffer.next_return < now:
            buffer.settle(now - 1)
        packet.input = self.index
        packet.slot_in = self.vls if vl == VL15 else vl
        packet.rejection = self.owner.rejection(self, packet)
        packet.not_active = vl != VL15 and self.state not in _RECEIVING_STATES
        if packet.rejection or packet.not_active:
            packet.late = False
            return
        packet.accepted = True
        if buffer.sizes[packet.slot_in] > CREDIT_WINDOW:
            self.kernel.at(now + 1, RECEIVE, self._take_blocks, packet)
        else:  # a cycle early: nobody looks before, and ABR + free, which is announced, stays as it was
            self._take_blocks(packet)
        if self._joins_at_header and not packet.late:
            self.input.join(packet, now)

    def _take_blocks(self, packet: Packet) -> None:
        """An accepted packet takes its blocks, visible in the current cycle."""
        now = self.kernel.now
        buffer = self.buffer
        if buffer.next_return < now:
            buffer.settle(now - 1)
        if packet.vl != VL15:
            self.flow.accept(packet.vl, packet.need)
        buffer.free[packet.slot_in] -= packet.need

    def join(self, packet: Packet) -> None:
        """A packet joins its queue in the current cycle (section 3.5)."""
        self.input.join(packet, self.kernel.now)

    def verdict(self, packet: Packet) -> None:
        """A packet's verdict is in the trace in the current cycle (section 3.2)."""
        now = self.kernel.now
        packet.rows = None
        lrh = packet.lrh
        verdict = verdict_of(packet, self._checks_icrc)
        accepted, n, k = packet.accepted, packet.n, packet.k
        self.kernel.record(
            (
                now,
                self.source,
                _RX_DATA,
                verdict | packet.vl << 8 | packet.delimiter << 16,
                n | k << 16,
                (lrh & _DLID) << 16 | lrh >> _SL_SHIFT & _SL if n else 0,
                packet.need if accepted else 0,
                0,
            )
        )
        self.counters.received(now + 1, k)
        if verdict:
            self._count(verdict)
        elif self.state == _ARMED and packet.vl != VL15:
            self.state_machine.good_packet()
        if accepted and (verdict or packet.queue is None):
            self._settle(packet, verdict)

    def _count(self, verdict: Verdict) -> None:
        if verdict == Verdict.DLID:
            self.counters.add_after(1, self.owner.dlid_counter)
        elif verdict in VERDICT_COUNTERS:
            self.counters.add_after(1, VERDICT_COUNTERS[verdict])
        if verdict == Verdict.PHYSICAL:
            self.physical_error()
        if verdict == Verdict.OVERRUN:
            self.flow.overrun()

    def _settle(self, packet: Packet, verdict: Verdict) -> None:
        """What becomes of an accepted packet once its verdict is known (sections 3.4, 3.5 and 8.1)."""
        if packet.queue is None:
            if verdict == Verdict.GOOD and not self._joins_at_header:
                self.owner.route_whole(packet)
                self.join(packet)
            else:
                self.buffer.give_back(packet, self.kernel.now + 1)
        elif verdict != Verdict.GOOD:
            packet.bad = True
            if packet.sending and packet.k < packet.n:
                output = self.matcher.outputs[packet.output]
                assert isinstance(output, LinkOutput | AgentOutput)  # to a host go only packets that are GOOD
                output.end_early(packet.sending, packet.k)

    def physical_error(self) -> None:
        """Count towards LocalLinkIntegrityErrors (section 10)."""
        self._physical_errors += 1
        if self._physical_errors > self.local_phy_errors:
            self._physical_errors = 0
            self.counters.add_after(1, Counter.LOCAL_LINK_INTEGRITY_ERRORS)
