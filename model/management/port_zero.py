"""Port 0 of a node: between its agent, the crossing and the register bus (docs/management.md, sections 1, 2 and 7)."""

from collections.abc import Callable, Sequence
from typing import Final

from wire.codes import PortState
from wire.parameters import NodeIdentity, NodeParameters
from wire.stimulus import Post
from wire.trace import port_source

from ..crossing.matcher import Matcher
from ..crossing.send_arbiter import SendArbiter
from ..kernel import DECIDE
from ..link.port import LinkPort
from ..packet import Packet
from .agent import Agent
from .agent_node import AgentNode
from .agent_output import AgentOutput
from .register_bus import Bus

__all__ = ["PortZero"]

_BLOCKS: Final = 5
"""Blocks of a packet of 72 words: what the agent's buffer has of each data VL."""


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
        self._kernel = matcher.kernel
        self._bus = bus
        self._ports = ports
        self._node = node
        self._vl15 = parameters.vls
        self.agent = Agent(matcher.kernel, self, parameters, identity)
        source = port_source(node, 0)
        self._output = AgentOutput(matcher, index, parameters.vls, source, self.agent, arrivals)
        blocks = [_BLOCKS] * parameters.vls + [parameters.vl15_blocks]
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
