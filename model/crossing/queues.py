"""Inputs: their queues, visible heads and readers (docs/pipeline.md, sections 4 and 7).

A head is a packet, or a copy of a multicast packet; several copies of one may be heads at a time.
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from wire.flow_control import CREDIT_MODULUS, CREDIT_WINDOW

from ..kernel import NEVER, Kernel
from ..packet import Packet
from .buffer import Buffer
from .inspection import Inspection
from .output import SWALLOWED

__all__ = ["FifoInput", "Input", "VoqInput"]

# In the compiled model, what is said to be final takes less time than what is imported.
_MODULUS: Final[int] = CREDIT_MODULUS
_WINDOW: Final[int] = CREDIT_WINDOW
_HEAD_LATENCY: Final = 5
"""Cycles from a packet's grant until the one behind it is a visible head."""
_GRANT_TO_LEAVING: Final = 1
"""Cycles from a packet's grant until it leaves its queue."""


class Input(ABC):
    """One input and its queues. Subclasses say which queue is whose.

    Attributes:
        index: of the input.
        bit: its place in masks of inputs.
        buffer: where its packets are.
        out_ptr: rotating choice among outputs that offer a grant.
        readers: mask of the available ones.
        inspection: of guarded packets, at a switch's port; None elsewhere.
    """

    def __init__(self, kernel: Kernel, index: int, buffer: Buffer, readers: int, queues: int, slots: int) -> None:
        self._kernel = kernel
        self.index = index
        self.bit = 1 << index
        self.buffer = buffer
        self.out_ptr = 0
        self.readers = (1 << readers) - 1
        self.inspection: Inspection | None = None
        self._queues: list[deque[Packet]] = [deque() for _ in range(queues)]
        self._vls = slots - 1
        # Of queues by input slot: the visible heads of each, and the rotation over those of the data VLs.
        self._visible: list[list[Packet]] = [[] for _ in range(slots)]
        self._queue_ptr = 0
        # The last packet that was granted, with all its copies: its queue, and when.
        self._granted_of: deque[Packet] | None = None
        self._granted_at = -1

    def left(self, queue: deque[Packet]) -> None:
        """A queue's first packet was granted in the current cycle, and is no more in it."""
        self._granted_of, self._granted_at = queue, self._kernel.now

    def first_visible(self, packet: Packet) -> int:
        """The first cycle in which a packet that is the first in its queue now is a visible head."""
        joined = packet.join_at
        if packet.queue is self._granted_of and joined <= self._granted_at + _GRANT_TO_LEAVING:
            return self._granted_at + _HEAD_LATENCY
        return joined + 1

    @abstractmethod
    def queue_of(self, packet: Packet) -> deque[Packet]:
        """The queue that a packet joins."""

    @abstractmethod
    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The first eligible head for (output, slot), of those visible; `room` is that of the output's gate."""

    @abstractmethod
    def waits_since(self, output: int, slot: int) -> int:
        """The first cycle in which a head for (output, slot), of those visible, was so."""

    @abstractmethod
    def starves(self, output: int, slot: int, room: int) -> bool:
        """Whether a head for (output, data slot), of those visible, has not the credits that it needs."""

    @staticmethod
    def _lacks_credits(packet: Packet, room: int) -> bool:
        return not packet.oversize and not packet.is_rejected and (room - packet.need) % _MODULUS > _WINDOW

    def _may_go(self, packet: Packet, room: int | None) -> bool:
        """True if a head is eligible: it has credits or needs none, or is swallowed and has ended."""
        if room is None:
            return True
        if room == SWALLOWED or packet.oversize or packet.is_rejected:
            assert packet.queue is not None
            head, last, now = packet.queue[0], packet.queue[-1], self._kernel.now
            # What came before the last has ended when that joins, and it counts from the next cycle but one on.
            return last.ended_from <= now or (last is not head and last.join_at >= now - 1)
        return (room - packet.need) % _MODULUS <= _WINDOW

    @abstractmethod
    def show(self, packet: Packet) -> None:
        """A packet is a visible head."""

    @abstractmethod
    def granted(self, packet: Packet) -> bool:
        """A head was granted in the current cycle: True if another one for its output and slot is visible."""

    # Heads of queues by input slot.

    def _first_in_turn(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The first eligible head for an output and a data slot, from the queue rotation on."""
        for turn in range(self._vls):
            for packet in self._visible[(self._queue_ptr + turn) % self._vls]:
                if packet.output == output and packet.slot == slot and self._may_go(packet, room):
                    return packet
        return None

    def _seen_since(self, output: int, slot: int) -> int:
        """Since when one of them is a head for (output, slot); NEVER if there is none."""
        since = NEVER
        for packets in self._visible:
            for packet in packets:
                if packet.output == output and packet.slot == slot:
                    since = min(since, packet.visible_from)
        return since

    def _one_starves(self, output: int, slot: int, room: int) -> bool:
        """Whether one of them is a head for (output, slot) without its credits."""
        for packets in self._visible:
            for packet in packets:
                if packet.output == output and packet.slot == slot and self._lacks_credits(packet, room):
                    return True
        return False

    def _goes(self, packet: Packet) -> None:
        """One of them is granted."""
        self._visible[packet.slot_in].remove(packet)
        if packet.slot != self._vls:
            self._queue_ptr = (packet.slot_in + 1) % self._vls


class VoqInput(Input):
    """`voq`: one queue for each (output, output slot), in the order of outputs, then slots.

    After them stand the queues of multicast packets, one for each data VL.
    """

    def __init__(self, kernel: Kernel, index: int, outputs: int, buffer: Buffer, readers: int, slots: int) -> None:
        super().__init__(kernel, index, buffer, readers, outputs * slots + slots - 1, slots)
        self._slots = slots
        self._multicasts = outputs * slots  # the first of their queues
        self._copies = 0  # visible heads that are copies
        self._copy_goes = [False] * (outputs * slots)  # turn: of two eligible heads, one a copy

    def queue_of(self, packet: Packet) -> deque[Packet]:
        """That of its output and slot there, or of its VL."""
        if packet.copies is not None:
            return self._queues[self._multicasts + packet.slot_in]
        return self._queues[packet.output * self._slots + packet.slot]

    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The one queue's head, or a copy."""
        place = output * self._slots + slot
        if self._copies:
            return self._in_turn(place, output, slot, room)
        packet = self._queues[place][0]
        return packet if self._may_go(packet, room) else None

    def _in_turn(self, place: int, output: int, slot: int, room: int | None) -> Packet | None:
        """Copies and others take turns."""
        packet = self._queues[place][0] if self._is_visible(place) else None
        if packet is not None and not self._may_go(packet, room):
            packet = None
        if packet is not None and not self._copy_goes[place]:
            return packet
        return self._first_in_turn(output, slot, room) or packet

    def _is_visible(self, place: int) -> bool:
        """Whether a queue that is no multicast packets' has a visible head."""
        queue = self._queues[place]
        return bool(queue) and queue[0].visible_from <= self._kernel.now

    def waits_since(self, output: int, slot: int) -> int:
        """That of the one queue, or of copies."""
        place = output * self._slots + slot
        if not self._copies:
            return self._queues[place][0].visible_from
        since = self._queues[place][0].visible_from if self._is_visible(place) else NEVER
        return min(since, self._seen_since(output, slot))

    def starves(self, output: int, slot: int, room: int) -> bool:
        """The one queue's head, or a copy."""
        place = output * self._slots + slot
        if not self._copies:
            return self._lacks_credits(self._queues[place][0], room)
        if self._is_visible(place) and self._lacks_credits(self._queues[place][0], room):
            return True
        return self._one_starves(output, slot, room)

    def show(self, packet: Packet) -> None:
        """The first in its queue."""
        if packet.copies is not None:
            self._visible[packet.slot_in].append(packet)
            self._copies += 1

    def granted(self, packet: Packet) -> bool:
        """There may be a visible head of the other kind, and of two that are copies."""
        output, slot = packet.output, packet.slot
        place = output * self._slots + slot
        is_copy = packet.copies is not None
        self._copy_goes[place] = not is_copy
        if is_copy:
            self._goes(packet)
            self._copies -= 1
            if self._is_visible(place):
                return True
        return self._copies != 0 and self._seen_since(output, slot) != NEVER


class FifoInput(Input):
    """`fifo`: one queue for each input slot, and a rotation over those of the data VLs."""

    def __init__(self, kernel: Kernel, index: int, buffer: Buffer, slots: int) -> None:
        super().__init__(kernel, index, buffer, 1, slots, slots)

    def queue_of(self, packet: Packet) -> deque[Packet]:
        """That of its input slot."""
        return self._queues[packet.slot_in]

    def head(self, output: int, slot: int, room: int | None) -> Packet | None:
        """The first eligible head from the queue rotation on."""
        if slot == self._vls:
            packet = self._visible[slot][0]
            return packet if self._may_go(packet, room) else None
        return self._first_in_turn(output, slot, room)

    def waits_since(self, output: int, slot: int) -> int:
        """That of the first, of all queues."""
        return self._seen_since(output, slot)

    def starves(self, output: int, slot: int, room: int) -> bool:
        """One of all queues."""
        return self._one_starves(output, slot, room)

    def show(self, packet: Packet) -> None:
        """One of the visible heads."""
        self._visible[packet.slot_in].append(packet)

    def granted(self, packet: Packet) -> bool:
        """There may be other visible heads for its output and slot, in other queues."""
        self._goes(packet)
        return self._seen_since(packet.output, packet.slot) != NEVER
