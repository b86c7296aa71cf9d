"""The tick of PortXmitWait, from a capture of what a port sends and from how far the counter has gone.

The counter counts ticks in which a port had a packet to send and sent no part of one from beginning to end. Where a
port always has packets to send, it waits whenever none is on its link; so each possible tick and each cycle at which
ticks may begin makes a number out of a capture, and the counter says which tick it was (EXPERIMENTS 5).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from capture.directions import ends, is_of_host
from capture.reader import CaptureReader
from capture.records import Integers
from capture.timeline import BITS_PER_S
from laboratory.stretch import Stretch
from wire.codes import VL15
from wire.symbols import BITS_PER_SYMBOL, DELIMITERS, LANES

__all__ = ["MOST_CYCLES", "TickFit", "WaitTick"]

MOST_CYCLES: Final = 256
"""The longest tick: PortSamplesControl.Tick counts from 1 to 256 cycles."""

_NS: Final = 10**9


class TickFit(NamedTuple):
    """How well a tick explains a counter.

    Attributes:
        cycles: the tick.
        least: what the counter would say at the least, and
        most: at the most, whenever ticks begin.
    """

    cycles: int
    least: int
    most: int

    def off(self, count: int) -> int:
        """By how much a counter is outside."""
        return max(self.least - count, count - self.most, 0)


class WaitTick:
    """Follows a capture of one direction.

    Attributes:
        waits: how often the port waited.
        waited_cycles: how long, in all.
    """

    def __init__(self, capture: CaptureReader, port: str = "") -> None:
        """PORT is the one that sends, `NODE[PORT]` or `HOST`, or the name of its direction; without, that of the first
        data packet on a link."""
        self.waits = 0
        self.waited_cycles = 0
        self._capture = capture
        self._port = port
        self._direction: int | None = None
        self._begin_ns: int | None = None
        self._end: int | None = None
        self._counts = [np.zeros(cycles + 1, np.int64) for cycles in range(1, MOST_CYCLES + 1)]
        """Of each tick: how the number of whole ticks changes with the cycle at which they begin."""

    @property
    def found(self) -> bool:
        """Whether there is a packet of the port."""
        return self._direction is not None

    @property
    def place(self) -> str:
        """The direction that is looked at; what was asked for, if there is none."""
        return self._port if self._direction is None else self._capture.directions[self._direction]

    @property
    def cycle_ns(self) -> float:
        """What a row takes on the link, which is a 4X link."""
        speed = 0 if self._direction is None else self._capture.speeds[self._direction]
        return LANES * BITS_PER_SYMBOL * _NS / (speed or BITS_PER_S)

    def follow(self, stretch: Stretch) -> None:
        """Take the next packets."""
        data = stretch.where(stretch.is_data & (stretch.vl != VL15))
        if self._direction is None:
            self._direction = next(filter(self._asked_for, data.direction.tolist()), None)
        data = data.where(data.direction == (-1 if self._direction is None else self._direction))
        if not len(data):
            return
        # Not since 1970: a quotient has 53 bits.
        if self._begin_ns is None:
            self._begin_ns = int(data.time_ns[0])
        start = np.rint((data.time_ns - self._begin_ns) / self.cycle_ns).astype(np.int64)
        end = start + (data.length + DELIMITERS + LANES - 1) // LANES
        if self._end is not None:
            begin = np.insert(end[:-1], 0, self._end)
        else:
            begin, start = end[:-1], start[1:]
        self._end = int(end[-1])
        waiting = start > begin
        self._wait(begin[waiting], start[waiting])

    def _asked_for(self, direction: int) -> bool:
        name = self._capture.directions[direction]
        source, _destination = ends(name) or (name, "")
        if not self._port:
            return not is_of_host(name)
        return self._port in (name, source) or f"{self._port}[1]" == source

    def _wait(self, begin: Integers, end: Integers) -> None:
        length = end - begin
        self.waits += len(length)
        self.waited_cycles += int(length.sum())
        for cycles, counts in enumerate(self._counts, 1):
            whole, rest = np.divmod(length, cycles)
            some, rest, first = whole[whole > 0], rest[whole > 0], begin[whole > 0] % cycles
            # If ticks begin at `first`, or up to `rest` cycles later, all of them fit in, else one less.
            last = first + rest
            counts[0] += int(some.sum()) - len(some)
            np.add.at(counts, first, 1)
            np.add.at(counts, np.minimum(last + 1, cycles), -1)
            round_the_end = last[last >= cycles] - cycles
            counts[0] += len(round_the_end)
            np.add.at(counts, round_the_end + 1, -1)

    def fits(self) -> list[TickFit]:
        """What the counter would say with each tick."""
        result = []
        for cycles, counts in enumerate(self._counts, 1):
            by_phase = np.cumsum(counts)[:cycles]
            result.append(TickFit(cycles, int(by_phase.min()), int(by_phase.max())))
        return result

    def best(self, count: int) -> list[TickFit]:
        """The ticks that explain a counter best, the shortest first."""
        fits = self.fits()
        least = min(fit.off(count) for fit in fits)
        return [fit for fit in fits if fit.off(count) == least]
