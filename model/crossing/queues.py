"""Inputs: their queues, visible heads and readers (docs/pipeline.md, sections 4 and 7)."""

from abc import abstractmethod
from collections import deque

from wire.flow_control import CREDIT_MODULUS, CREDIT_WINDOW

from ..packet import Packet
from .buffer import Buffer
from .matcher import Matcher
from .sides import Input

__all__ = ["FifoInput", "QueuedInput", "VoqInput"]

_HEAD_LATENCY = 3
"""Cycles from a head's grant until the packet behind it is a visible head."""


def _may_start(packet: Packet, room: int | None) -> bool:
    """True if a head is eligible by its credits: `room` is (CL - TBS) mod 4096, None if anything may go."""
    return room is None or (room - packet.need) % CREDIT_MODULUS <= CREDIT_WINDOW or packet.oversize


class QueuedInput(Input):
    """One input and its queues. Subclasses say which queue is whose."""

    def __init__(self, index: int, matcher: Matcher, buffer: Buffer, readers: int, queues: int) -> None:
        super().__init__(index, buffer, readers)
        self._matcher = matcher
        self._queues: list[deque[Packet]] = [deque() for _ in range(queues)]

    @abstractmethod
    def _queue_of(self, packet: Packet) -> deque[Packet]:
        """The queue that a packet joins."""

    def join(self, packet: Packet, cycle: int) -> None:
        """A packet joins its queue in a cycle e, the current one (before its matching) or one ahead."""
        packet.join_at = cycle
        queue = packet.queue = self._queue_of(packet)
        queue.append(packet)
        if len(queue) == 1:
            packet.visible_from = cycle + 1
            self._matcher.coming(packet)

    def _advance(self, packet: Packet) -> None:
        """The packet behind one that was granted is its queue's first."""
        queue = packet.queue
        assert queue is not None
        queue.popleft()
        if queue:
            following = queue[0]
            now = self._matcher.kernel.now
            following.visible_from = now + _HEAD_LATENCY if following.join_at <= now else following.join_at + 1
            self._matcher.coming(following)


class VoqInput(QueuedInput):
    """`voq`: one queue for each (output, output slot), in the order of outputs, then slots."""

    def __init__(self, index: int, matcher: Matcher, buffer: Buffer, readers: int, slots: int) -> None:
        super().__init__(index, matcher, buffer, readers, matcher.size * slots)
        self._slots = slots

    def _queue_of(self, packet: Packet) -> deque[Packet]:
        return self._queues[packet.output * self._slots + packet.slot]

    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The one queue's head."""
        packet = self._queues[output * self._slots + slot][0]
        return packet if _may_start(packet, room) else None

    def show(self, packet: Packet) -> None:
        """The one visible head for its output and slot."""
        self._matcher.heads[packet.output][packet.slot] |= self.bit

    def granted(self, packet: Packet) -> None:
        """There is no other visible head for its output and slot."""
        self._matcher.heads[packet.output][packet.slot] ^= self.bit
        self._advance(packet)


class FifoInput(QueuedInput):
    """`fifo`: one queue for each input slot, and a rotation over those of the data VLs."""

    def __init__(self, index: int, matcher: Matcher, buffer: Buffer, slots: int) -> None:
        super().__init__(index, matcher, buffer, 1, slots)
        self._visible: list[Packet | None] = [None] * slots
        self._queue_ptr = 0
        self._vls = slots - 1

    def _queue_of(self, packet: Packet) -> deque[Packet]:
        return self._queues[packet.slot_in]

    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The first eligible head from the queue rotation on."""
        if slot == self._vls:
            return self._visible[slot]
        for turn in range(self._vls):
            packet = self._visible[(self._queue_ptr + turn) % self._vls]
            if packet and packet.output == output and packet.slot == slot and _may_start(packet, room):
                return packet
        return None

    def show(self, packet: Packet) -> None:
        """One of the visible heads."""
        self._visible[packet.slot_in] = packet
        self._matcher.heads[packet.output][packet.slot] |= self.bit

    def granted(self, packet: Packet) -> None:
        """There may be other visible heads for its output and slot."""
        self._visible[packet.slot_in] = None
        if packet.slot != self._vls:
            self._queue_ptr = (packet.slot_in + 1) % self._vls
        output, slot = packet.output, packet.slot
        if not any(other and other.output == output and other.slot == slot for other in self._visible):
            self._matcher.heads[output][slot] ^= self.bit
        self._advance(packet)
