"""When a host that captures its own packets takes their time stamps: late, in batches, and not of all packets."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random
from typing import Final

__all__ = [
    "LATE_SHARE",
    "LATE_US",
    "LEAST_PAUSE_US",
    "MOST_PAUSE_US",
    "RECEIVED",
    "RECORD_BYTES",
    "RING_PACKETS",
    "SENT",
    "TICK_NS",
    "WRITTEN_BYTES",
    "HostClock",
    "Side",
]

TICK_NS: Final = 1_000
"""Stamps are whole microseconds, rounded down."""

RING_PACKETS: Final = 4_096
"""So many packets can wait for the host; others are lost. It is what ibdump has unless told otherwise."""

WRITTEN_BYTES: Final = 1 << 21
RECORD_BYTES: Final = 32
"""The host writes its records out whenever they are so many bytes; each is a packet and so many bytes before it."""

LEAST_PAUSE_US: Final = 312.0
MOST_PAUSE_US: Final = 336.0
"""Meanwhile it takes no packets, for a time between these, as published."""


LATE_SHARE: Final = 0.015
LATE_US: Final = 1.8
"""What share of packets the host sees later than others, its bus or memory being busy, and by how much in the mean; how
much it is has an exponential distribution."""


@dataclass(frozen=True, slots=True)
class Side:
    """How the host deals with the packets that it sends, or with those that it receives; times in microseconds.

    Attributes:
        delay_us, spread_us: from when a packet has passed on the link until the host can see it: mean and standard
            deviation of a normal distribution.
        least_us, even_us, odd_us: how long the host has to do with a packet once it has taken its stamp, before it
            looks for the next: at least; up to how much more, evenly distributed; and how much more in the mean,
            exponentially distributed.
    """

    delay_us: float
    spread_us: float
    least_us: float
    even_us: float
    odd_us: float


SENT: Final = Side(delay_us=2.3, spread_us=0.22, least_us=0.2, even_us=2.2, odd_us=0.0)
RECEIVED: Final = Side(delay_us=0.2, spread_us=0.15, least_us=0.05, even_us=0.0, odd_us=0.85)
"""Fitted to the tables of `capture.published_intervals`."""


class HostClock:
    """A host with one queue for what it sends and receives, in the order in which it began on the link.

    What is random follows from the host's name.

    Attributes:
        captured: how many packets have got a stamp.
        lost: how many have not.
    """

    def __init__(self, host: str, ring_packets: int = RING_PACKETS) -> None:
        self.captured = 0
        self.lost = 0
        self._random = Random(host)
        self._ring_packets = ring_packets
        self._taken_us: deque[float] = deque()
        """When packets were taken or will be: those that may still be waiting."""
        self._free_us = 0.0
        self._unwritten = 0

    def stamp(self, passed_ns: float, length: int, *, sent: bool) -> int | None:
        """The stamp in nanoseconds of a packet of so many bytes that has passed at this time; None if it is lost."""
        passed_us = passed_ns / 1_000
        ring, draw = self._taken_us, self._random.random
        while ring and ring[0] <= passed_us:
            ring.popleft()
        if len(ring) >= self._ring_packets:
            self.lost += 1
            return None
        side = SENT if sent else RECEIVED
        delay_us = max(0.0, self._random.gauss(side.delay_us, side.spread_us))
        if draw() < LATE_SHARE:
            delay_us += self._random.expovariate(1 / LATE_US)
        taken_us = max(passed_us + delay_us, self._free_us)
        self._free_us = taken_us + side.least_us + side.even_us * draw()
        if side.odd_us:
            self._free_us += self._random.expovariate(1 / side.odd_us)
        self._unwritten += length + RECORD_BYTES
        if self._unwritten >= WRITTEN_BYTES:
            self._unwritten -= WRITTEN_BYTES
            self._free_us += self._random.uniform(LEAST_PAUSE_US, MOST_PAUSE_US)
        ring.append(taken_us)
        self.captured += 1
        return int(taken_us) * TICK_NS
