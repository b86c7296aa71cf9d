"""Inputs: their queues, visible heads and readers (docs/pipeline.md, sections 4 and 7)."""

from abc import ABC, abstractmethod
from collections import deque

from wire.flow_control import CREDIT_MODULUS, CREDIT_WINDOW

from ..kernel import Kernel
from ..packet import Packet
from .buffer import Buffer
from .output import SWALLOWED

__all__ = ["FifoInput", "Input", "VoqInput"]


class Input(ABC):
    """One input and its queues. Subclasses say which queue is whose.

    Attributes:
        index: of the input.
        bit: its place in masks of inputs.
        buffer: where its packets are.
        out_ptr: rotating choice among outputs that offer a grant.
        readers: mask of the available ones.
    """

    def __init__(self, kernel: Kernel, index: int, buffer: Buffer, readers: int, queues: int) -> None:
        self._kernel = kernel
        self.index = index
        self.bit = 1 << index
        self.buffer = buffer
        self.out_ptr = 0
        self.readers = (1 << readers) - 1
        self._queues: list[deque[Packet]] = [deque() for _ in range(queues)]

    @abstractmethod
    def queue_of(self, packet: Packet) -> deque[Packet]:
        """The queue that a packet joins."""

    @abstractmethod
    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The first eligible head for (output, slot), of those visible; `room` is that of the output's gate."""

    @abstractmethod
    def waits_since(self, output: int, slot: int) -> int:
        """The first cycle in which a head for (output, slot), of those visible, was so."""

    def _may_go(self, packet: Packet, room: int | None) -> bool:
        """True if a head is eligible: it has credits or needs none, or is swallowed and its queue's last has ended."""
        if room is None:
            return True
        if room == SWALLOWED or packet.oversize:
            assert packet.queue is not None
            last, now = packet.queue[-1], self._kernel.now
            return last.ended_from <= now or last.join_at >= now
        return (room - packet.need) % CREDIT_MODULUS <= CREDIT_WINDOW

    @abstractmethod
    def show(self, packet: Packet) -> None:
        """A packet is a visible head."""

    @abstractmethod
    def granted(self, packet: Packet) -> bool:
        """A head was granted in the current cycle: True if another one for its output and slot is visible."""


class VoqInput(Input):
    """`voq`: one queue for each (output, output slot), in the order of outputs, then slots."""

    def __init__(self, kernel: Kernel, index: int, outputs: int, buffer: Buffer, readers: int, slots: int) -> None:
        super().__init__(kernel, index, buffer, readers, outputs * slots)
        self._slots = slots

    def queue_of(self, packet: Packet) -> deque[Packet]:
        """That of its output and slot there."""
        return self._queues[packet.output * self._slots + packet.slot]

    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The one queue's head."""
        packet = self._queues[output * self._slots + slot][0]
        return packet if self._may_go(packet, room) else None

    def waits_since(self, output: int, slot: int) -> int:
        """That of the one queue."""
        return self._queues[output * self._slots + slot][0].visible_from

    def show(self, packet: Packet) -> None:
        """The first in its queue."""

    def granted(self, packet: Packet) -> bool:
        """There is one queue for an output and slot."""
        return False


class FifoInput(Input):
    """`fifo`: one queue for each input slot, and a rotation over those of the data VLs."""

    def __init__(self, kernel: Kernel, index: int, buffer: Buffer, slots: int) -> None:
        super().__init__(kernel, index, buffer, 1, slots)
        self._visible: list[Packet | None] = [None] * slots
        self._queue_ptr = 0
        self._vls = slots - 1

    def queue_of(self, packet: Packet) -> deque[Packet]:
        """That of its input slot."""
        return self._queues[packet.slot_in]

    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The first eligible head from the queue rotation on."""
        if slot == self._vls:
            packet = self._visible[slot]
            return packet if packet and self._may_go(packet, room) else None
        for turn in range(self._vls):
            packet = self._visible[(self._queue_ptr + turn) % self._vls]
            if packet and packet.output == output and packet.slot == slot and self._may_go(packet, room):
                return packet
        return None

    def waits_since(self, output: int, slot: int) -> int:
        """That of the first, of all queues."""
        return min(
            packet.visible_from
            for packet in self._visible
            if packet and packet.output == output and packet.slot == slot
        )

    def show(self, packet: Packet) -> None:
        """One of the visible heads."""
        self._visible[packet.slot_in] = packet

    def granted(self, packet: Packet) -> bool:
        """There may be other visible heads for its output and slot, in other queues."""
        self._visible[packet.slot_in] = None
        if packet.slot != self._vls:
            self._queue_ptr = (packet.slot_in + 1) % self._vls
        output, slot = packet.output, packet.slot
        return any(other and other.output == output and other.slot == slot for other in self._visible)
