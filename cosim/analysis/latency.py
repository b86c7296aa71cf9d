"""Latencies of any number of packets in little memory: exact count, mean and extremes, percentiles to within 2 %."""

from __future__ import annotations

from collections import Counter

__all__ = ["Latencies"]

_SIGNIFICANT_BITS = 7
"""A bin is 1/64 to 1/128 of its value wide."""


class Latencies:
    """A histogram whose bins widen with the value.

    Attributes:
        count: values added.
        total: their sum, in cycles.
        least, most: 0 as long as there are none.
    """

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.least = 0
        self.most = 0
        self._bins: Counter[int] = Counter()

    def add(self, cycles: int) -> None:
        """One more."""
        self.least = min(self.least, cycles) if self.count else cycles
        self.most = max(self.most, cycles)
        self.count += 1
        self.total += cycles
        shift = _shift(cycles)
        self._bins[cycles >> shift << shift] += 1

    def merge(self, other: Latencies) -> None:
        """Add all values of another."""
        if other.count:
            self.least = min(self.least, other.least) if self.count else other.least
            self.most = max(self.most, other.most)
            self.count += other.count
            self.total += other.total
            self._bins += other._bins

    @property
    def mean(self) -> float:
        """In cycles; 0 if there are none."""
        return self.total / self.count if self.count else 0.0

    def percentile(self, percent: float) -> int:
        """What `percent` % of all do not exceed, in cycles, rounded up to the end of its bin; 0 if there are none."""
        wanted = self.count * percent / 100
        seen = 0
        for value in sorted(self._bins):
            seen += self._bins[value]
            if seen >= wanted:
                return min(self.most, value | (1 << _shift(value)) - 1)
        return 0


def _shift(cycles: int) -> int:
    """Bits of a value that its bin leaves open."""
    return max(0, cycles.bit_length() - _SIGNIFICANT_BITS)
