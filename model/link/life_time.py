"""LIFE_TIME: how long a packet may stay in a switch (docs/pipeline.md, section 7.2)."""

from wire.time_limits import EXPIRED_TICKS, LIFE_TIME_STAMPS, MAX_EXPONENT, NO_LIMIT, TICK_CYCLES

__all__ = ["LifeTime", "first_tick"]


def first_tick(cycle: int, exponent: int, epoch: int) -> int:
    """The first tick of a limit's exponent from a cycle on, in a node with this cycle 0."""
    period = TICK_CYCLES << exponent
    return epoch - (epoch - cycle) // period * period


class LifeTime:
    """A switch's register, and the ticks that it has counted.

    A write is known from when it is given: whether a packet is over its life time shows only after its grant.

    Attributes:
        is_counted: there has been a limit, so that packets need stamps.
    """

    def __init__(self, epoch: int = 0) -> None:
        """`epoch` is the node's cycle 0."""
        self.is_counted = False
        self._epoch = epoch
        self._ticks = 0  # before the first span
        self._spans = [(epoch, NO_LIMIT)]  # from which cycle on the register holds what, the current one first

    def write(self, cycle: int, exponent: int, now: int) -> bool:
        """A write given in the current cycle, `now`, and visible in a cycle ahead; False if it changes nothing."""
        spans = self._spans
        if exponent == spans[-1][1]:
            return False
        while len(spans) > 1 and spans[1][0] <= now:
            first, ended = spans.pop(0)
            self._ticks += self._between(first, spans[0][0], ended)
        spans.append((cycle, exponent))
        if exponent <= MAX_EXPONENT:
            self.is_counted = True
        return True

    def changes(self, cycle: int) -> bool:
        """Whether it is another in the current cycle than in the one before."""
        return any(first == cycle for first, _exponent in self._spans)

    def exponent(self, cycle: int) -> int:
        """What is visible in a cycle, the current one or one ahead for which all writes have been given."""
        for first, exponent in reversed(self._spans):
            if first <= cycle:
                return exponent
        return NO_LIMIT

    def stamp(self, cycle: int) -> int:
        """Ticks in the cycles before such a one, modulo `LIFE_TIME_STAMPS`."""
        ticks, until = self._ticks, cycle
        for first, exponent in reversed(self._spans):
            if first < until:
                ticks += self._between(first, until, exponent)
                until = first
        return ticks % LIFE_TIME_STAMPS

    def _between(self, first: int, until: int, exponent: int) -> int:
        """Ticks of an exponent from a cycle on until before another."""
        if exponent > MAX_EXPONENT:
            return 0
        ticks = first_tick(until, exponent, self._epoch) - first_tick(first, exponent, self._epoch)
        return ticks // (TICK_CYCLES << exponent)

    def is_over(self, stamp: int, cycle: int) -> bool:
        """Whether a packet with this stamp has been in the node for too long, as such a cycle shows."""
        if self.exponent(cycle) > MAX_EXPONENT:
            return False
        return (self.stamp(cycle) - stamp) % LIFE_TIME_STAMPS >= EXPIRED_TICKS
