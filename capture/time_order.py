"""Puts packets in the order of their time stamps, some of which are later than the packets."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from capture.wire_packet import WirePacket

__all__ = ["TimeOrder"]


class TimeOrder:
    """Hands on packets by their times, those of one time as they came."""

    def __init__(self, write: Callable[[WirePacket], None]) -> None:
        self._write = write
        self._waiting: list[tuple[int, int, WirePacket]] = []
        self._count = 0

    def add(self, packet: WirePacket) -> None:
        """Take a packet."""
        self._count += 1
        heappush(self._waiting, (packet.time_ns, self._count, packet))

    def until(self, time_ns: int) -> None:
        """No packet with an earlier stamp than this will come: hand on those that have one."""
        waiting = self._waiting
        while waiting and waiting[0][0] < time_ns:
            self._write(heappop(waiting)[2])

    def end(self) -> None:
        """No packet will come."""
        while self._waiting:
            self._write(heappop(self._waiting)[2])
