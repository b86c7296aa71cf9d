"""What waits for an output: how much of it, and whether it waited for credits (docs/pipeline.md, section 7.3)."""

from typing import Final

from wire.headers import LRH
from wire.packet import blocks_of_words

from ..kernel import NEVER, UPDATE, Kernel
from ..packet import Packet

__all__ = ["LARGEST_NEED", "Backlog"]

LARGEST_NEED: Final[int] = blocks_of_words(LRH["pkt_len"].max)
"""More blocks than a packet has."""


class Backlog:
    """That of a port's output, by slot.

    Attributes:
        queued: blocks that wait in all queues, but for multicast packets, as they are visible two cycles later.
        starved_from: the cycle from which on a slot is starved; NEVER if it is not.
    """

    def __init__(self, kernel: Kernel, vls: int) -> None:
        self.queued = [0] * (vls + 1)
        self.starved_from = [NEVER] * (vls + 1)
        self._kernel = kernel

    def join(self, packet: Packet, cycle: int) -> None:
        """A packet that is no multicast packet joins in a cycle, the current one or one ahead."""
        self._kernel.at(cycle + 1, UPDATE, self._joins, packet)

    def _joins(self, packet: Packet) -> None:
        self.queued[packet.slot] += packet.need

    def granted(self, packet: Packet) -> bool:
        """A packet is granted in the current cycle: whether its slot was starved until then."""
        slot = packet.slot
        if packet.copies is None:
            self.queued[slot] -= packet.need
        since = self.starved_from[slot]
        if since == NEVER:
            return False
        self.starved_from[slot] = NEVER
        return since <= self._kernel.now
