"""A node, as its ports and its register bus know it."""

from abc import abstractmethod

from wire.codes import PortState
from wire.registers import Counter

from ..link.acceptance import PortOwner
from ..link.port import LinkPort
from ..packet import Packet
from .agent import Agent

__all__ = ["Node"]


class Node(PortOwner):
    """A node.

    Attributes:
        ports: its link ports; `ports[i]` is port i+1.
        agent: of management.
    """

    ports: list[LinkPort]
    agent: Agent

    def port_state_changed(self, old: PortState, new: PortState, by_write: bool) -> None:
        """The agent looks at the change."""
        self.agent.port_state_changed(old, new, by_write=by_write)

    def rejected_on_departure(self, packet: Packet) -> None:
        """It counts at the port that it would have left by."""
        self.ports[packet.output].status.counters.add_after(1, Counter.XMIT_CONSTRAINT_ERRORS)

    @abstractmethod
    def read_register(self, page: int, offset: int) -> int:
        """A word that only this kind of node has, outside the ports' pages. Undefined ones read 0."""

    def write_given(self, page: int, offset: int, value: int, cycle: int) -> None:
        """A write of such a word is given in the current cycle; it will be visible in a cycle ahead."""

    @abstractmethod
    def write_register(self, page: int, offset: int, value: int) -> None:
        """Write such a word; it is visible in the current cycle. Undefined ones take no write."""
