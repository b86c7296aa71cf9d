"""Port 0 of a node: between its agent, the crossing and the register bus (docs/management.md, sections 1, 2 and 8)."""

from collections.abc import Callable, Sequence
from typing import Final

from wire.codes import PortState
from wire.crc import fingerprint
from wire.parameters import NodeIdentity, NodeParameters
from wire.registers import Counter, Detail
from wire.stimulus import Post
from wire.trace import port_source
from wire.trace_layout import Deliver, Scrap

from ..crossing.matcher import Matcher
from ..crossing.output import LocalOutput
from ..crossing.send_arbiter import SendArbiter
from ..kernel import DECIDE, UPDATE
from ..link.port import LinkPort
from ..packet import READ_TO_WIRE, DataTransmission, Packet
from .agent import Agent
from .agent_node import AgentNode
from .register_bus import Bus

__all__ = ["PortZero"]

_CYCLE_MASK: Final = 0xFFFF_FFFF
_BLOCKS: Final = 6
"""Blocks of a packet with a MAD and a GRH: what the agent's buffer has of each data VL."""
_VL15_BLOCKS: Final = 10
"""What it has of VL15."""


class AgentOutput(LocalOutput):
    """The path to the agent, which takes one packet at a time, whole: available while the agent is free."""

    def __init__(
        self, matcher: Matcher, index: int, vls: int, source: int, agent: Agent, arrivals: Sequence[int]
    ) -> None:
        """`source` of the records; `arrivals` are the port numbers of the inputs before this index."""
        super().__init__(index, vls)
        self._arrivals = arrivals
        self._matcher = matcher
        self._kernel = matcher.kernel
        self._source = source
        self._agent = agent

    def set_available(self, available: bool) -> None:
        """The agent is free, or is not, from the current cycle's matching on."""
        matcher = self._matcher
        if available:
            matcher.available |= self.bit
            matcher.wake(self.bit)
        else:
            matcher.available &= ~self.bit

    def grant(self, packet: Packet, reader: int) -> None:
        """Read a packet for the agent, which is not free from the next cycle on."""
        now = self._kernel.now
        sending = DataTransmission(packet, now, packet.slot, self.pitch, reader)
        self._agent.granted()
        if packet.bad:
            self._kernel.at(now + 3, UPDATE, self._scrap, sending)
            return
        packet.sending = sending
        self._kernel.at(sending.last_read, DECIDE, self._last_row_read, sending)

    def last_read(self, sending: DataTransmission) -> None:
        """The agent is not free yet: `_last_row_read` frees the reader."""

    # Reading (docs/pipeline.md, section 8.1).

    def _scrap(self, sending: DataTransmission) -> None:
        """Two cycles after the first read: nothing is given to the agent."""
        kernel, packet = self._kernel, sending.packet
        fields = {"slot": packet.slot, "input": packet.input, "pkt_len": packet.n}
        kernel.record(Scrap.record(kernel.now, self._source, **fields))
        self._matcher.release(sending, kernel.now)
        kernel.at(sending.w0, UPDATE, self._scrapped, sending)

    def _last_row_read(self, sending: DataTransmission) -> None:
        """In the cycle of the read of row n; the packet may have ended before."""
        if sending.last_read == -1:
            return
        self._reader_done(sending)
        if sending.end == sending.packet.n:
            sending.packet.sending = None
            self._matcher.release(sending, self._kernel.now + 1)
            self._kernel.at(sending.w0 + sending.end, UPDATE, self._deliver, sending)

    def end_early(self, sending: DataTransmission, k: int) -> None:
        """The agent gets nothing of it."""
        read = sending.end_early(k, self._kernel.now)
        self._kernel.at(read + 2, UPDATE, self._read_early, sending)
        self._kernel.at(read + READ_TO_WIRE, UPDATE, self._ended_early, sending)

    def _read_early(self, sending: DataTransmission) -> None:
        self._matcher.release(sending, self._kernel.now)

    def _ended_early(self, sending: DataTransmission) -> None:
        sending.packet.sending = None
        if sending.last_read == -1:
            self._reader_done(sending)
        self._deliver(sending)

    def _reader_done(self, sending: DataTransmission) -> None:
        """The reader is available from the current cycle's matching on."""
        matcher = self._matcher
        matcher.wake(matcher.reader_done(sending))

    # What the agent gets, in the current cycle z.

    def _scrapped(self, sending: DataTransmission) -> None:
        """The reader is available as well."""
        packet = sending.packet
        self._reader_done(sending)
        self._agent.arrived(None, self._arrivals[packet.input], packet.slot)

    def _deliver(self, sending: DataTransmission) -> None:
        """The last of what came is on the agent's wires."""
        packet = sending.packet
        data = sending.content.with_vl(packet.vl)
        first = sending.w0 + 1 - self._matcher.epoch & _CYCLE_MASK
        fields = {"slot": packet.slot, "pkt_len": packet.n, "first_cycle": first, "fingerprint": fingerprint(data)}
        self._kernel.record(Deliver.record(self._kernel.now, self._source, **fields))
        self._agent.arrived(None if packet.bad else data, self._arrivals[packet.input], packet.slot)


class PortZero(AgentNode):
    """The last input and the last output of a node's crossing, and the agent behind them.

    Attributes:
        agent: what they belong to.
    """

    def __init__(
        self,
        matcher: Matcher,
        bus: Bus,
        ports: list[LinkPort],
        arrivals: Sequence[int],
        parameters: NodeParameters,
        node: int,
        identity: NodeIdentity,
    ) -> None:
        """`arrivals` are the port numbers of the inputs before this one: an adapter's host is 0.

        The node's other inputs and outputs have been added to the matcher.
        """
        index = len(arrivals)
        self._arrivals = arrivals
        self._kernel = matcher.kernel
        self._bus = bus
        self._ports = ports
        self._node = node
        self._vl15 = parameters.vls
        self.agent = Agent(matcher.kernel, self, parameters, identity)
        source = port_source(node, 0)
        self._output = AgentOutput(matcher, index, parameters.vls, source, self.agent, arrivals)
        blocks = [_BLOCKS] * parameters.vls + [_VL15_BLOCKS]
        self._arbiter = SendArbiter(matcher, index, blocks, source, self._route)
        matcher.add(self._arbiter.input, self._output)
        self._toward = 0

    # What the agent asks; see `AgentNode`.

    def offer(self, data: bytes, output: int, slot: int) -> None:
        """Offer a packet, from the current cycle on; on the slot of a data VL, in that cycle alone."""
        now = self._kernel.now
        self._toward = output
        if slot == self._vl15:
            self._arbiter.offer(slot, iter((Post(now, self._node, slot, data),)))
        elif not self._arbiter.offer_once(slot, data):
            self._kernel.at(now + 1, DECIDE, self._sent)

    def freed(self) -> None:
        """The agent is available from the current cycle on."""
        self._output.set_available(True)

    def icrc_wrong(self, arrival: int, cycles: int) -> None:
        """Count it at the port that it came by."""
        if arrival:
            port = self._ports[self._arrivals.index(arrival)]
            port.status.counters.add_after(cycles, Counter.RCV_ERRORS, Detail.LOCAL_PHYSICAL_ERRORS)

    def taken_by_trap(self) -> None:
        """The agent is not available in the current cycle, nor until it is freed."""
        self._output.set_available(False)

    def bus_write(self, address: int, value: int) -> None:
        """Write a register."""
        self._bus.write(address, value)

    def bus_read(self, address: int, take: Callable[[int], None]) -> None:
        """Read a register; `take` is called two cycles later."""
        self._bus.read(address, take)

    def is_active(self) -> bool:
        """The adapter's port is Active."""
        return self._ports[0].status.state == PortState.ACTIVE

    # The agent's stream.

    def _route(self, packet: Packet) -> None:
        """The packet is taken from the current cycle on."""
        packet.output = self._toward
        packet.oversize = False
        self._kernel.at(self._kernel.now + 1 + packet.n, DECIDE, self._sent)

    def _sent(self, _: None) -> None:
        self.agent.sent()
