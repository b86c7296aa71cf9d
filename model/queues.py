"""Inputs: their queues, visible heads and readers (docs/pipeline.md, sections 4 and 7)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING

from wire.flow_control import CREDIT_MODULUS, CREDIT_WINDOW

from .buffer import Buffer
from .kernel import UPDATE
from .packet import Packet

if TYPE_CHECKING:
    from .matcher import Matcher

__all__ = ["FifoInput", "Input", "VoqInput", "may_start"]

_HEAD_LATENCY = 3
"""Cycles from a head's grant until the packet behind it is a visible head."""


def may_start(packet: Packet, room: int | None) -> bool:
    """True if a head is eligible by its credits: `room` is (CL - TBS) mod 4096, None if anything may go."""
    return room is None or packet.oversize or (room - packet.need) % CREDIT_MODULUS <= CREDIT_WINDOW


class Input(ABC):
    """One input: queues, readers and the rotation over outputs. Subclasses say which queue is whose.

    Attributes:
        out_ptr: rotating choice among outputs that offer a grant.
        outputs: mask of the outputs for which a head is visible.
    """

    def __init__(self, index: int, matcher: Matcher, buffer: Buffer, readers: int, queues: int) -> None:
        self.index = index
        self.buffer = buffer
        self.out_ptr = 0
        self.outputs = 0
        self._matcher = matcher
        self._readers = (1 << readers) - 1  # mask of the available ones
        self._queues: list[deque[Packet]] = [deque() for _ in range(queues)]
        self._shown: list[int] = [0] * len(matcher.outputs)  # heads visible for each output

    @abstractmethod
    def queue_of(self, packet: Packet) -> int:
        """Number of the queue that a packet joins."""

    @abstractmethod
    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The first eligible head for (output, slot), of those visible."""

    def join(self, packet: Packet) -> None:
        """A packet joins its queue in the current cycle, before this cycle's matching."""
        packet.joined = True
        queue = self._queues[self.queue_of(packet)]
        queue.append(packet)
        if len(queue) == 1:
            kernel = self._matcher.kernel
            kernel.at(kernel.now + 1, UPDATE, self._show, packet)

    def _show(self, packet: Packet) -> None:
        """A packet is a visible head from the current cycle on."""
        self._expose(packet)
        output = packet.output
        self._shown[output] += 1
        self.outputs |= 1 << output
        matcher = self._matcher
        matcher.heads[output][packet.slot] |= 1 << self.index
        matcher.outputs[output].head_shown()
        matcher.wake(1 << output)

    def grant(self, packet: Packet) -> int:
        """A head is granted in the current cycle: returns the reader that sends it."""
        output = packet.output
        queue = self._queues[self.queue_of(packet)]
        queue.popleft()
        if queue:
            kernel = self._matcher.kernel
            kernel.at(kernel.now + _HEAD_LATENCY, UPDATE, self._show, queue[0])
        self._shown[output] -= 1
        if not self._shown[output]:
            self.outputs &= ~(1 << output)
        if not self._conceal(packet):
            self._matcher.heads[output][packet.slot] &= ~(1 << self.index)
        lowest = self._readers & -self._readers
        self._readers ^= lowest
        if not self._readers:
            self._matcher.ready &= ~(1 << self.index)
        return lowest.bit_length() - 1

    def reader_available(self, reader: int) -> None:
        """A reader is available from the current cycle on, before this cycle's matching."""
        self._readers |= 1 << reader
        self._matcher.ready |= 1 << self.index
        if self.outputs:
            self._matcher.wake(self.outputs)

    @abstractmethod
    def _expose(self, packet: Packet) -> None:
        """Make a head known to `head`."""

    @abstractmethod
    def _conceal(self, packet: Packet) -> bool:
        """Take a head away; true if another one is visible for its output and slot."""


class VoqInput(Input):
    """`voq`: one queue for each (output, output slot)."""

    def __init__(self, index: int, matcher: Matcher, buffer: Buffer, readers: int, outputs: int, slots: int) -> None:
        super().__init__(index, matcher, buffer, readers, outputs * slots)
        self._slots = slots

    def queue_of(self, packet: Packet) -> int:
        """Queues in the order of outputs, then slots."""
        return packet.output * self._slots + packet.slot

    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The one queue's head."""
        packet = self._queues[output * self._slots + slot][0]
        return packet if may_start(packet, room) else None

    def _expose(self, packet: Packet) -> None:
        pass

    def _conceal(self, packet: Packet) -> bool:
        return False


class FifoInput(Input):
    """`fifo`: one queue for each input slot, and a rotation over those of the data VLs."""

    def __init__(self, index: int, matcher: Matcher, buffer: Buffer, slots: int) -> None:
        super().__init__(index, matcher, buffer, 1, slots)
        self._visible: list[Packet | None] = [None] * slots
        self._queue_ptr = 0
        self._vls = slots - 1

    def queue_of(self, packet: Packet) -> int:
        """The queue of the slot on which the packet came."""
        return packet.slot_in

    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The first eligible head from the queue rotation on."""
        if slot == self._vls:
            return self._visible[slot]
        for turn in range(self._vls):
            packet = self._visible[(self._queue_ptr + turn) % self._vls]
            if packet and packet.output == output and packet.slot == slot and may_start(packet, room):
                return packet
        return None

    def _expose(self, packet: Packet) -> None:
        self._visible[packet.slot_in] = packet

    def _conceal(self, packet: Packet) -> bool:
        self._visible[packet.slot_in] = None
        if packet.slot != self._vls:
            self._queue_ptr = (packet.slot_in + 1) % self._vls
        return any(other and other.output == packet.output and other.slot == packet.slot for other in self._visible)
