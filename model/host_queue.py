"""From an adapter's receive buffer to its host (docs/pipeline.md, sections 4, 7 and 9)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from .buffer import Buffer
from .kernel import MATCH, Kernel
from .packet import Packet

__all__ = ["HostQueue"]

_HEAD_LATENCY = 3
"""Cycles from a head's grant until the packet behind it is a visible head."""
_NEVER: Final = 1 << 62


class HostQueue:
    """One input and one output, of one reader and 4X pace, without credits: a queue for each slot.

    Attributes:
        stalled: mask of slots that the host stalls.
    """

    def __init__(self, kernel: Kernel, buffer: Buffer, vls: int, deliver: Callable[[Packet], None]) -> None:
        """`deliver` is called in the cycle in which a packet's last row is read."""
        self._kernel = kernel
        self._buffer = buffer
        self._vls = vls
        self._deliver = deliver
        self._queues: list[deque[Packet]] = [deque() for _ in range(vls + 1)]
        self._waiting = 0  # packets in the queues
        self._vl_ptr = 0
        self.stalled = 0
        self._sending: Packet | None = None
        self._look_at = -1

    def join(self, packet: Packet, cycle: int) -> None:
        """A packet joins its queue in the current cycle e, before its matching."""
        queue = packet.queue = self._queues[packet.slot]
        queue.append(packet)
        self._waiting += 1
        if len(queue) == 1:
            packet.visible_from = cycle + 1
            self._look(cycle + 1)

    def stall(self, mask: int) -> None:
        """Heads of these slots wait, from the current cycle on."""
        self.stalled = mask
        self._look(self._kernel.now)

    def _look(self, cycle: int) -> None:
        """Something may be granted in a cycle; while a packet is read, that can wait."""
        if not self._sending and self._look_at != cycle:
            self._look_at = cycle
            self._kernel.at(cycle, MATCH, self._match)

    def _match(self, _: None) -> None:
        """VL15 first, then the rotation over data VLs."""
        if self._sending or not self._waiting:
            return
        now, vls = self._kernel.now, self._vls
        soonest = _NEVER
        for turn in range(-1, vls):
            slot = vls if turn < 0 else (self._vl_ptr + turn) % vls
            queue = self._queues[slot]
            if queue and not self.stalled >> slot & 1:
                if queue[0].visible_from <= now:
                    self._grant(queue, slot)
                    return
                soonest = min(soonest, queue[0].visible_from)
        if soonest != _NEVER:
            self._look(soonest)

    def _grant(self, queue: deque[Packet], slot: int) -> None:
        kernel = self._kernel
        packet = self._sending = queue.popleft()
        self._waiting -= 1
        if queue:
            queue[0].visible_from = kernel.now + _HEAD_LATENCY
        if slot != self._vls:
            self._vl_ptr = (slot + 1) % self._vls
        kernel.at(kernel.now + 1 + packet.n, MATCH, self._last_read, packet)

    def _last_read(self, packet: Packet) -> None:
        self._sending = None
        self._deliver(packet)
        self._buffer.release(0, packet, self._kernel.now + 1)
        self._match(None)
