"""Receive and send buffers: free blocks by slot (docs/pipeline.md, sections 3.3 and 8.1)."""

from collections.abc import Callable, Sequence

from .kernel import UPDATE, Kernel
from .packet import Packet

__all__ = ["Buffer"]


class Buffer:
    """Blocks of one input, one pool for each slot, and the port through which they return.

    An input releases one packet a cycle, lowest reader first; a later one waits. Two readers can
    ask in the same cycle, and neither again in the next, so that a release waits one cycle at most.

    Attributes:
        free: free blocks by slot, as visible.
    """

    def __init__(self, kernel: Kernel, blocks: Sequence[int], readers: int, freed: Callable[[int], None]) -> None:
        self.free = list(blocks)
        self._kernel = kernel
        self._asked = [-1] * readers
        self._freed = freed

    def take(self, packet: Packet) -> None:
        """Take a packet's blocks; the new count is visible in the current cycle."""
        self.free[packet.slot_in] -= packet.need

    def give_back(self, packet: Packet) -> None:
        """Return the blocks of a packet that is cancelled, visible in the current cycle."""
        self.free[packet.slot_in] += packet.need
        self._freed(packet.slot_in)

    def ask(self, reader: int, cycle: int) -> None:
        """A reader asks for the release of its packet in a cycle y, the current one or the next."""
        self._asked[reader] = cycle

    def release(self, reader: int, packet: Packet) -> None:
        """Return the blocks of a packet whose release was asked for in the cycle before."""
        if reader and self._asked[0] == self._kernel.now - 1:
            self._kernel.at(self._kernel.now + 1, UPDATE, self.give_back, packet)
        else:
            self.give_back(packet)
