"""Times between the packets of each direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from capture.chunk import Chunk
from capture.records import Integers
from wire.symbols import BITS_PER_SYMBOL, DELIMITERS

__all__ = ["BITS_PER_S", "UNKNOWN", "Gaps", "Timeline"]

BITS_PER_S: Final = 10_000_000_000
"""Of a 4X link at SDR."""

UNKNOWN: Final = -(1 << 62)
"""What is before the first packet of a direction."""

_NS: Final = 10**9


class Gaps(NamedTuple):
    """What is before each packet of a chunk on its direction, in nanoseconds, or UNKNOWN.

    Attributes:
        interval_ns: from the start of the packet before it to its own.
        idle_ns: from the end of the packet before it to its start.
    """

    interval_ns: Integers
    idle_ns: Integers


class Timeline:
    """Follows a capture, chunk by chunk."""

    def __init__(self, bits_per_s: int = BITS_PER_S) -> None:
        """BITS_PER_S is for links of which the capture does not say how fast they are."""
        self._bits_per_s = bits_per_s
        self._started: dict[int, int] = {}
        self._ended: dict[int, int] = {}

    def follow(self, chunk: Chunk, speeds: Sequence[int]) -> Gaps:
        """Of the next chunk; SPEEDS of the links by direction."""
        interval = np.full(len(chunk), UNKNOWN)
        idle = interval.copy()
        for direction in np.unique(chunk.direction).tolist():
            of_it = np.flatnonzero(chunk.direction == direction)
            start = chunk.time_ns[of_it]
            symbols = chunk.length[of_it] + DELIMITERS
            end = start + np.rint(symbols * (BITS_PER_SYMBOL * _NS / (speeds[direction] or self._bits_per_s))).astype(
                np.int64
            )
            interval[of_it[1:]] = np.diff(start)
            idle[of_it[1:]] = start[1:] - end[:-1]
            if direction in self._started:
                interval[of_it[0]] = start[0] - self._started[direction]
                idle[of_it[0]] = start[0] - self._ended[direction]
            self._started[direction], self._ended[direction] = int(start[-1]), int(end[-1])
        return Gaps(interval, idle)
