"""A node, as its ports and its register bus know it."""

from abc import abstractmethod
from typing import Final

from wire.codes import PortState
from wire.headers import LRH
from wire.registers import Counter, Detail
from wire.trace import Verdict

from ..link.acceptance import PortOwner
from ..link.partition import p_key_of
from ..link.port import LinkPort
from ..packet import Packet
from .agent import Agent

__all__ = ["Node"]

_EVENT_TO_COUNTER: Final = 2
"""Cycles from an event of trap 259 until the port that it names has counted it."""


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

    def rejected_by_partition(self, packet: Packet, verdict: Verdict) -> None:
        """On departure it counts at the port that it would have left by. The agent tells of a P_Key."""
        rejects = packet.input
        if verdict == Verdict.XMIT_CONSTRAINT:
            rejects = packet.output
            self.ports[rejects].status.counters.add_after(1, Counter.XMIT_CONSTRAINT_ERRORS)
        self.tell_of_p_key(packet, rejects)

    def tell_of_p_key(self, packet: Packet, rejects: int, *, is_copy: bool = False) -> None:
        """The port of an index rejects a packet, or a copy of it, for the P_Key that it has, if it has one."""
        if packet.key_row:
            self.ports[rejects].status.counters.add_after(_EVENT_TO_COUNTER, Detail.P_KEY_VIOLATIONS)
            lrh = LRH.record(slid=packet.slid, dlid=packet.dlid, sl=packet.sl)
            self.agent.p_key_rejected(packet.input + 1, rejects + 1, lrh, p_key_of(packet), is_copy=is_copy)

    @abstractmethod
    def read_register(self, page: int, offset: int) -> int:
        """A word that only this kind of node has, outside the ports' pages. Undefined ones read 0."""

    def write_given(self, page: int, offset: int, value: int, cycle: int) -> None:
        """A write of such a word is given in the current cycle; it will be visible in a cycle ahead."""

    @abstractmethod
    def write_register(self, page: int, offset: int, value: int) -> None:
        """Write such a word; it is visible in the current cycle. Undefined ones take no write."""
