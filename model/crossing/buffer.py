"""Receive and send buffers: free blocks by slot (docs/pipeline.md, sections 3.3 and 8.1)."""

from collections.abc import Callable, Sequence

from ..kernel import NEVER
from ..packet import Packet

__all__ = ["Buffer"]


class Buffer:
    """Blocks of one input, one pool for each slot, and the port through which they return.

    An input releases one packet a cycle, lowest reader first; a later one waits. Two readers can
    ask in the same cycle, and neither again in the next, so that a release waits one cycle at most.

    What returns is booked ahead, and added when somebody looks (`settle`).

    Attributes:
        sizes: all blocks by slot.
        free: free blocks by slot, as visible in the cycle last settled; a packet takes its own from them.
        next_return: no blocks return before this cycle.
    """

    __slots__ = ("_freed", "_returns", "free", "next_return", "sizes")

    def __init__(self, blocks: Sequence[int]) -> None:
        self.sizes = tuple(blocks)
        self.free = list(blocks)
        self.next_return = NEVER
        self._freed: Callable[[int], None]
        self._returns: list[tuple[int, int, Packet]] = []  # (cycle in which they are visible, reader, packet)

    def watch(self, freed: Callable[[int], None]) -> None:
        """`freed(cycle)` is called for blocks that return, visible in a cycle ahead."""
        self._freed = freed

    def release(self, reader: int, packet: Packet, asked: int) -> None:
        """Return the blocks of a packet whose release a reader (its bit) asks for in a cycle y, `asked`."""
        cycle = asked + 1
        if self._returns:
            cycle = self._in_turn(reader, cycle)
        self._returns.append((cycle, reader, packet))
        if cycle < self.next_return:
            self.next_return = cycle
        self._freed(cycle)

    def _in_turn(self, reader: int, cycle: int) -> int:
        """The cycle in which a reader's release is visible, and that of one with which it competes."""
        for index, (visible, other, packet) in enumerate(self._returns):
            if visible == cycle and other:
                if other < reader:
                    return cycle + 1
                self._returns[index] = (visible + 1, other, packet)
        return cycle

    def give_back(self, packet: Packet, cycle: int) -> None:
        """Return the blocks of a packet that is cancelled, visible in a cycle ahead."""
        self._returns.append((cycle, 0, packet))
        self.next_return = min(self.next_return, cycle)
        self._freed(cycle)

    def settle(self, cycle: int) -> None:
        """Let `free` be what is visible in a cycle, the current one or the one before.

        There is something to do only if `next_return` is not after it.
        """
        if len(self._returns) == 1:
            packet = self._returns.pop()[2]
            self.free[packet.slot_in] += packet.need
            self.next_return = NEVER
            return
        later: list[tuple[int, int, Packet]] = []
        following = NEVER
        for entry in self._returns:
            visible = entry[0]
            if visible <= cycle:
                packet = entry[2]
                self.free[packet.slot_in] += packet.need
            else:
                later.append(entry)
                following = min(following, visible)
        self._returns = later
        self.next_return = following
