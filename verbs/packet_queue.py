"""Packets of a port that wait apart from queue pairs."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from verbs.frame import Outgoing

__all__ = ["PacketQueue"]


class PacketQueue:
    """Packets that go before what queue pairs have, one after the other."""

    def __init__(self) -> None:
        self._waiting: deque[Outgoing] = deque()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._waiting)

    def put(self, packet: Outgoing) -> None:
        """One more."""
        self._waiting.append(packet)

    def take(self, blocked: Collection[int]) -> Outgoing | None:
        """The next one; None if there is none, or none has an SL that there is room for."""
        for packet in self._waiting:
            if packet.sl not in blocked:
                self._waiting.remove(packet)
                return packet
        return None
