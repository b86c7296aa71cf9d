"""Traffic between two hosts, for as long as somebody wants it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from cosim.stimulus.packet import UdPackets
from doors.mads.host_port import HostPort
from wire.packet import WORD_BYTES, rows_of_words
from wire.stimulus import Post

__all__ = ["LabFlow"]


class LabFlow:
    """Packets from one host to another.

    Attributes:
        source: where they are from.
        posted: how many there were.
    """

    def __init__(
        self, source: HostPort, destination: HostPort, rate: float, size: int, sl: int, random: Random
    ) -> None:
        """RATE is the share of a 4X link that they take, SIZE their payload in bytes."""
        self.source = source
        self.posted = 0
        self._destination = destination
        self._rate = rate
        self._size = size
        self._sl = sl
        self._random = random
        self._make = UdPackets(random)
        self._next = 0.0

    def posts(self, first: int, last: int, vls: int, room: int) -> Iterator[Post]:
        """The packets ready from cycle FIRST to cycle LAST, at most ROOM; none while there is no way."""
        self._next = max(self._next, first)
        slid, dlid = self.source.info.lid, self._destination.info.lid
        slot = self.source.vl(self._sl)
        if not slid or not dlid or not self.source.sends_data or slot >= vls:
            return
        while self._next <= last and room > 0:
            room -= 1
            data = self._make.data(
                slid=slid, dlid=dlid, sl=self._sl, vl=slot, flow=0, sequence=self.posted, size=self._size
            )
            yield Post(int(self._next), self.source.node, slot, data)
            self.posted += 1
            rows = rows_of_words(len(data) // WORD_BYTES)
            self._next += rows + self._random.expovariate(1.0) * rows * (1 / self._rate - 1)
