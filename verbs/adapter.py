"""A channel adapter's transport: what it owns, and the one interface to whatever carries its packets.

It does no input or output. A back end hands in what arrives (`receive`), asks for what is to be sent, one packet at a
time and only as it has room for it (`poll`), and when it wants to be asked again (`wake`). Time is an integer count of
cycles, and only the back end says what it is. What it does follows from these calls alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from verbs.arrival import check_path, leads_to_bth, takes
from verbs.arrived import Arrived, read_packet
from verbs.congestion import CongestionNotices
from verbs.congestion_control.gmp import answer_packet, request_in
from verbs.congestion_control.port_control import PortCongestionControl
from verbs.congestion_control.traps import Trap
from verbs.frame import Outgoing
from verbs.incidents import Incident
from verbs.limits import AdapterLimits
from verbs.multicast import MULTICAST_QP
from verbs.packet_queue import PacketQueue
from verbs.port import Port, p_keys_match
from verbs.queue_pair import QueuePair
from verbs.resources import FIRST_QP, Resources
from verbs.states import QpType
from wire.codes import QP_GSI, is_multicast_lid
from wire.opcodes import Operation, Service

__all__ = ["CYCLE_NS", "Adapter"]

CYCLE_NS: Final = 4
"""Nanoseconds of a cycle, unless the back end says otherwise: SDR."""

_RD: Final = int(Service.RD)
_CNP: Final = int(Service.CNP)
_UNANSWERED: Final = (QpType.UC, QpType.UD)
_READ_RESPONSES: Final = (
    Operation.RDMA_READ_RESPONSE_FIRST,
    Operation.RDMA_READ_RESPONSE_MIDDLE,
    Operation.RDMA_READ_RESPONSE_LAST,
    Operation.RDMA_READ_RESPONSE_ONLY,
)


class Adapter(Resources):
    """One adapter: consumers make what they need (see `Resources`), a back end carries its packets.

    Attributes:
        congestion_control: of each port.
        congestion_notices: packets that came to tell that what was sent met congestion.
        dropped: packets that were for nobody, or not as they should be.
        on_trap: sends a trap of a port, by its number; who carries the host's MADs may do that in place of the adapter.
    """

    def __init__(
        self,
        ports: Sequence[Port],
        *,
        cycle_ns: int = CYCLE_NS,
        limits: AdapterLimits | None = None,
        first_qp: int = FIRST_QP,
    ) -> None:
        super().__init__(ports, cycle_ns, AdapterLimits() if limits is None else limits, first_qp)
        self.now = 0
        self.congestion_control = tuple(PortCongestionControl(cycle_ns) for _ in self.ports)
        self.congestion_notices = 0
        self.dropped = 0
        self.on_trap: Callable[[int, Trap], None] = self._send_trap
        self._trap_due: int | None = None
        """The cycle from which the first trap is to be sent."""
        self._notices = tuple(CongestionNotices(port) for port in self.ports)
        self._leaving = tuple(PacketQueue() for _ in self.ports)
        """Datagrams of queue pairs that have ended, answers to management, and traps."""
        self._apart = (*self._notices, *self._leaving)

    def receive(self, data: bytes, now: int, port: int = 1) -> None:
        """Takes a packet, LRH to ICRC, that the link layer found good."""
        self._pass_time(now)
        self._take_in(data, port)

    def poll(self, now: int, port: int = 1, *, blocked: Collection[int] = ()) -> Outgoing | None:
        """Lets time pass to cycle `now`, and gives a packet to be sent by a port; None if there is none.

        There is none either if all that there is has an SL in `blocked`, for which the port has no room.
        """
        self._pass_time(now)
        apart = self._notices[port - 1].take(blocked) or self._leaving[port - 1].take(blocked)
        return apart or self._turns.next_packet(port, blocked, self._packet_of)

    def answer(self, mad: bytes, now: int, port: int, slid: int, sgid: int = 0) -> bytes | None:
        """What is answered to a request about a port's congestion control, from a LID and a GID or 0, if anything."""
        answer = self.congestion_control[port - 1].agent.answer(mad, now, slid, sgid)
        self._send_traps(now)
        return answer

    def _packet_of(self, queue_pair: QueuePair) -> Outgoing | None:
        """The next packet of a queue pair, if it has one for others."""
        control = self.congestion_control[queue_pair.pair.attributes.port - 1]
        if control.is_on:
            control.hold(queue_pair, self.now)
        outgoing = queue_pair.next_packet(self.now)
        if outgoing is None:
            return None
        self._turns.add(queue_pair)
        packet = self._for_others(outgoing, queue_pair)
        if packet is not None and control.is_on:
            control.sent(queue_pair.number, packet, self.now)
        return packet

    def _end_sending(self, queue_pair: QueuePair) -> None:
        """What UD has been given leaves: hardware has sent it before its program comes to end the queue pair."""
        self.congestion_control[queue_pair.pair.attributes.port - 1].forget(queue_pair.number)
        if queue_pair.pair.kind is not QpType.UD:
            return
        while (outgoing := queue_pair.next_packet(self.now)) is not None:
            if (packet := self._for_others(outgoing, queue_pair)) is not None:
                self._leaving[queue_pair.pair.attributes.port - 1].put(packet)

    def _for_others(self, outgoing: Outgoing, queue_pair: QueuePair) -> Outgoing | None:
        """A packet that leaves by the link; what is for this port comes in by it at once."""
        port = queue_pair.pair.attributes.port
        if is_multicast_lid(outgoing.dlid):
            self._loop_back(outgoing, port, queue_pair)
        elif self.ports[port - 1].has_lid(outgoing.dlid):
            # No switch sends a packet back to where it came from.
            self._take_in(outgoing.data, port)
            return None
        return outgoing

    @property
    def wake(self) -> int | None:
        """The cycle in which `poll` is due if nothing arrives before; None if there is nothing to wait for."""
        if self._turns.are_due or self._has_apart:
            return self.now
        return min((when for when in (self._turns.wake, self._trap_due) if when is not None), default=None)

    @property
    def may_delay(self) -> bool:
        """Whether congestion control may hold packets up, for times as short as it likes."""
        return any(control.is_on for control in self.congestion_control)

    def is_due(self, now: int) -> bool:
        """True if that cycle has come."""
        return self._turns.are_due or self._has_apart or self.has_expired(now) or self._has_trap(now)

    def has_expired(self, now: int) -> bool:
        """True if the cycle in which the first timer ends has come."""
        return self._turns.have_expired(now)

    @property
    def _has_apart(self) -> bool:
        return any(len(waiting) > 0 for waiting in self._apart)

    @property
    def timer(self) -> int | None:
        """The cycle in which the first queue pair's timer ends, whatever else is due before; None if none runs."""
        return self._turns.wake

    @property
    def waiting(self) -> QueuePair | None:
        """The queue pair whose timer ends first; None if there is none."""
        return self._turns.waiting

    def _take_in(self, data: bytes, port: int) -> None:
        packet = read_packet(data)
        if packet is None or not self._deliver(packet, port):
            self.dropped += 1

    def _loop_back(self, outgoing: Outgoing, port: int, sender: QueuePair) -> None:
        """Others in the group at the same port get what is sent to it; no switch sends it back (IBTA vol 1, 10.5.2)."""
        packet = read_packet(outgoing.data)
        if packet is not None:
            self._deliver_to_group(packet, port, sender)

    def _deliver(self, packet: Arrived, number: int) -> bool:
        """Hands a packet to its queue pair, if its headers are as they should be (IBTA vol 1, 9.6.1)."""
        if packet.t_ver:
            return False
        if is_multicast_lid(packet.dlid) or packet.dest_qp == MULTICAST_QP:
            return self._deliver_to_group(packet, number, None)
        queue_pair = self._pairs.get(packet.eec if packet.service == _RD else packet.dest_qp)
        if queue_pair is None:
            return packet.dest_qp == QP_GSI and self._manage(packet, number)
        if not self._is_for(queue_pair, packet, number):
            return False
        if not check_path(queue_pair.pair, self.ports[number - 1], packet):
            return False
        if packet.becn:
            self.congestion_notices += 1
            self.congestion_control[number - 1].notified(queue_pair.pair, packet, self.now)
            queue_pair.pair.on_incident(Incident.BECN, packet.psn)
        if packet.service == _CNP:
            return True
        if packet.fecn and (queue_pair.pair.kind in _UNANSWERED or self._is_read_response(packet)):
            self._notices[number - 1].add(queue_pair.pair, packet)
        queue_pair.receive(packet, self.now)
        return True

    @staticmethod
    def _is_read_response(packet: Arrived) -> bool:
        """One to RC, which answers no more; RD could not say by a notice which of its contexts is meant."""
        return packet.service != _RD and packet.operation in _READ_RESPONSES

    def _manage(self, packet: Arrived, number: int) -> bool:
        """Does what a request about the port's congestion control asks for; false if it is none."""
        found = request_in(packet.data)
        if found is None:
            return False
        request, mad = found
        sgid = 0 if request.grh is None else request.grh.sgid
        answer = self.answer(mad, self.now, number, request.lrh.slid, sgid)
        if answer is not None:
            self._leaving[number - 1].put(answer_packet(request, answer))
        return True

    def _has_trap(self, now: int) -> bool:
        return self._trap_due is not None and self._trap_due <= now

    def _send_traps(self, now: int) -> None:
        """Sends the traps of all ports that are due."""
        first: int | None = None
        for number, control in enumerate(self.congestion_control, 1):
            traps = control.agent.traps
            trap = traps.take(self.ports[number - 1], now)
            if trap is not None:
                self.on_trap(number, trap)
            due = traps.due
            if due is not None and (first is None or due < first):
                first = due
        self._trap_due = first

    def _send_trap(self, number: int, trap: Trap) -> None:
        port = self.ports[number - 1]
        data = trap.packet(port.lid).data
        if port.has_lid(trap.dlid):
            # No switch sends a packet back to where it came from.
            self._take_in(data, number)
        else:
            self._leaving[number - 1].put(Outgoing(data, trap.sl, trap.dlid))

    def _deliver_to_group(self, packet: Arrived, number: int, sender: QueuePair | None) -> bool:
        """Gives a copy to each member at the port but the sender; true if there is one."""
        if packet.grh is None or not leads_to_bth(packet.grh) or packet.dest_qp != MULTICAST_QP:
            return False
        members = [
            member
            for member in self.groups.members(packet.grh.dgid, packet.dlid)
            if member is not sender and self._is_for(member, packet, number)
        ]
        for member in members:
            member.receive(packet, self.now)
        return bool(members)

    def _is_for(self, queue_pair: QueuePair, packet: Arrived, number: int) -> bool:
        """True if the queue pair takes such packets, at this port and of this partition."""
        pair, port = queue_pair.pair, self.ports[number - 1]
        if pair.attributes.port != number or not takes(pair, packet):
            return False
        if not p_keys_match(packet.p_key, port.p_key(pair.attributes.p_key_index)):
            port.count_p_key_violation(packet)
            return False
        return True

    def _pass_time(self, now: int) -> None:
        self.now = now
        self._turns.expire(now)
        if self._has_trap(now):
            self._send_traps(now)
