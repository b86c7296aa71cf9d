"""A channel adapter: a link port, a host and an agent (docs/pipeline.md, section 9)."""

from collections.abc import Callable, Iterator
from typing import Final

from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, LID_PERMISSIVE, VL15
from wire.crc import fingerprint
from wire.parameters import AdapterParameters, NodeIdentity
from wire.registers import NodeRegister
from wire.stimulus import Delivery, Post
from wire.trace import Kind, Verdict, port_source

from .crossing.buffer import Buffer
from .crossing.matcher import Matcher
from .crossing.output import LocalOutput
from .crossing.queues import VoqInput
from .crossing.send_arbiter import SendArbiter
from .kernel import Kernel
from .link.packet_check import header_rejection
from .link.port import LinkPort
from .link.port_status import PortStatus
from .management.mad_in_packet import is_perf_request, is_smp
from .management.node import Node
from .management.port_zero import PortZero
from .management.register_bus import Bus
from .packet import READ_TO_WIRE, DataTransmission, Packet

__all__ = ["Adapter"]

_LINK: Final = 0
_HOST: Final = 1
_AGENT: Final = 2
"""Inputs and outputs of the crossing."""
_HEADER_LATENCY: Final = 3
"""Cycles from a packet's turn until its length is compared with NeighborMTU."""
_CYCLE_MASK: Final = 0xFFFF_FFFF
_DELIVER: Final = Kind.DELIVER


class HostOutput(LocalOutput):
    """The path to the host, which may stall data VLs."""

    def __init__(self, matcher: Matcher, index: int, vls: int, deliver: Callable[[Packet], None]) -> None:
        """`deliver` is called in the cycle in which a packet's last row is read."""
        super().__init__(index, vls)
        self._matcher = matcher
        self._deliver = deliver
        self._all_slots = self.gate.open_slots
        self._vl15 = 1 << vls

    def stall(self, mask: int) -> None:
        """Heads of these slots, except VL15's, wait from the current cycle on."""
        self.stalls(mask)
        self._matcher.wake(self.bit)

    def stalls(self, mask: int) -> None:
        """It has begun so, when there are no heads yet."""
        self.gate.open_slots = self._all_slots & ~mask | self._vl15

    def grant(self, packet: Packet, reader: int) -> None:
        """Read a packet; it is whole, and good."""
        matcher = self._matcher
        sending = DataTransmission(packet, matcher.kernel.now, packet.slot, self.pitch, reader)
        self.busy_until = sending.last_read
        matcher.reads(sending)

    def last_read(self, sending: DataTransmission) -> None:
        """The packet goes to the host, and its blocks return."""
        self._deliver(sending.packet)
        self._matcher.release(sending, self._matcher.kernel.now + 1)

    def end_early(self, sending: DataTransmission, k: int) -> None:
        """A host gets whole packets only."""
        raise AssertionError(f"packet to a host ends with row {k}: expected row {sending.packet.n}, as it was whole")


class Adapter(Node):
    """A channel adapter; `ports[0]` is its port 1.

    Attributes:
        host: the path to the host.
    """

    is_destination = True
    joins_whole = True

    def __init__(
        self,
        kernel: Kernel,
        parameters: AdapterParameters,
        node: int,
        identity: NodeIdentity,
        on_deliver: Callable[[Delivery], None] | None,
        epoch: int = 0,
    ) -> None:
        """`epoch` is its cycle 0."""
        vls = parameters.vls
        self._kernel = kernel
        self._node = node
        self._source = port_source(node, 1)
        self._vls = vls
        self._lid = 0
        self._lmc = 0
        self._on_deliver = on_deliver
        self._epoch = epoch
        matcher = Matcher(kernel, _AGENT + 1, vls, epoch)
        buffer = Buffer([parameters.receive_blocks] * vls + [parameters.vl15_blocks])
        queues = VoqInput(kernel, _LINK, matcher.size, buffer, 1, vls + 1)
        self.ports = [LinkPort(self, matcher, queues, self._source, vls, parameters.mtu)]
        send_blocks = [parameters.send_blocks] * vls + [parameters.vl15_blocks]
        self._from_host = SendArbiter(matcher, _HOST, send_blocks, self._source, self._route)
        self.host = HostOutput(matcher, _HOST, vls, self._deliver)
        matcher.add(self._from_host.input, self.host)
        self.bus = Bus(kernel, self)
        # The agent knows the link by its port's number, the host as port 0.
        arrivals = identity.port, 0
        self.agent = PortZero(matcher, self.bus, self.ports, arrivals, parameters, node, identity).agent

    # What the port asks (sections 3.3, 3.5 and 5).

    def rejection(self, status: PortStatus, packet: Packet, free: list[int]) -> Verdict:
        """Rows a to e, i and j."""
        rejection = header_rejection(packet, self._is_mine(packet), status.largest, status.operational)
        packet.slot = packet.slot_in
        packet.oversize = False
        if not rejection and packet.need > free[packet.slot_in]:
            return Verdict.VL15_DROPPED if packet.vl == VL15 else Verdict.OVERRUN
        return rejection

    def p_key_rejection(self, packet: Packet) -> Verdict:
        """No P_Key is checked here."""
        return Verdict.GOOD

    def _is_mine(self, packet: Packet) -> bool:
        """Row c: multicast, permissive on VL15, or one of the port's own."""
        dlid = packet.dlid
        if self._is_own(dlid) or LID_MULTICAST_MIN <= dlid <= LID_MULTICAST_MAX:
            return True
        return dlid == LID_PERMISSIVE and packet.vl == VL15

    def _is_own(self, dlid: int) -> bool:
        return self._lid != 0 and dlid >> self._lmc == self._lid >> self._lmc

    def route_whole(self, packet: Packet) -> None:
        """An SMP or a PMA request goes to the agent."""
        packet.output = _AGENT if self._is_for_agent(packet) else _HOST

    def _is_for_agent(self, packet: Packet) -> bool:
        """It is an SMP on VL15, or a PMA request on another VL."""
        assert packet.content is not None
        data = packet.content.data
        return is_smp(data) if packet.slot == self._vls else is_perf_request(data)

    # From the host.

    def post(self, slot: int, posts: Iterator[Post]) -> None:
        """Set where a slot's packets come from. It is asked for one packet at a time.

        Raises:
            ValueError: a slot that does not exist; later, a packet of an impossible length.
        """
        if not 0 <= slot <= self._vls:
            raise ValueError(f"post on slot {slot} of node {self._node}: expected 0..{self._vls}")
        self._from_host.offer(slot, posts)

    def post_left(self, former: "Adapter") -> None:
        """The host has left to send what it had before its adapter was reset, at the end of the current cycle."""
        for slot in range(self._vls + 1):
            self.post(slot, former._from_host.left(slot))

    def _route(self, packet: Packet) -> None:
        """NeighborMTU is larger than what goes to the agent."""
        packet.output = self._output_of(packet)
        packet.oversize = packet.n > self.ports[0].status.largest_out

    def _output_of(self, packet: Packet) -> int:
        """An SMP goes to the agent, as does a PMA request to an own LID."""
        is_here = packet.slot == self._vls or self._is_own(packet.dlid)
        return _AGENT if is_here and self._is_for_agent(packet) else _LINK

    def _own_lids_changed(self) -> None:
        """The DLID of a packet being taken from the host is compared in the cycle of its last row."""
        packet = self._from_host.taken
        if packet and packet.queue is None:
            packet.output = self._output_of(packet)

    def largest_out_changed(self) -> None:
        """The length of a packet being taken from the host is compared in cycle a+3."""
        packet = self._from_host.taken
        if packet and self._kernel.now <= self._from_host.taken_at + _HEADER_LATENCY:
            packet.oversize = packet.n > self.ports[0].status.largest_out

    # To the host.

    def _deliver(self, packet: Packet) -> None:
        """The last word is on the host's wires three cycles later."""
        last = self._kernel.now + READ_TO_WIRE
        assert packet.content is not None
        data = packet.content.with_vl(packet.vl)
        first = last - packet.n + 1 - self._epoch
        self._kernel.record(
            (last, self._source, _DELIVER, packet.slot, packet.n, first & _CYCLE_MASK, fingerprint(data), 0)
        )
        if self._on_deliver:
            self._on_deliver(Delivery(last, self._node, packet.slot, data))

    # Registers (section 10).

    def read_register(self, page: int, offset: int) -> int:
        """LID and LMC."""
        if page == 0 and offset == NodeRegister.LID:
            return self._lid
        return self._lmc if page == 0 and offset == NodeRegister.LMC else 0

    def write_register(self, page: int, offset: int, value: int) -> None:
        """LID and LMC."""
        if page == 0:
            if offset == NodeRegister.LID and value <= 0xFFFF:
                self._lid = value
                self._own_lids_changed()
            elif offset == NodeRegister.LMC and value <= 7:
                self._lmc = value
                self._own_lids_changed()
