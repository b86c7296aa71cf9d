"""How often which time is between the starts of two packets of a direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from capture.records import Integers
from capture.timeline import UNKNOWN

__all__ = ["IntervalTable"]

_LAST: Final = 100_000
"""The line for all that is so many times as long as a line is wide, or longer."""

_LABEL: Final = 20
_CELL: Final = 10


class IntervalTable:
    """Counts intervals by length and direction.

    Attributes:
        bin_ns: intervals from n to less than n + 1 times this are one line of the table.
    """

    def __init__(self, bin_ns: int) -> None:
        self.bin_ns = bin_ns
        self._counts: Counter[tuple[int, int]] = Counter()

    def count(self, direction: Integers, interval_ns: Integers) -> None:
        """Take the intervals before packets; those that are not known do not count."""
        known = interval_ns != UNKNOWN
        place = np.clip(interval_ns[known] // self.bin_ns, 0, _LAST)
        keys, counts = np.unique(direction[known] * (_LAST + 1) + place, return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            self._counts[divmod(key, _LAST + 1)] += count

    def rows(self) -> Iterator[tuple[int, Mapping[int, int]]]:
        """The shortest interval of each line that is not empty, and how many there are by direction."""
        by_place: dict[int, dict[int, int]] = {}
        for (direction, place), count in self._counts.items():
            by_place.setdefault(place, {})[direction] = count
        for place in sorted(by_place):
            yield place * self.bin_ns, by_place[place]

    def lines(self, directions: Sequence[str]) -> Iterator[str]:
        """The table, a column for each direction that has intervals."""
        totals: Counter[int] = Counter()
        for (direction, _), count in self._counts.items():
            totals[direction] += count
        shown = sorted(totals)

        def line(label: str, counts: Mapping[int, int]) -> str:
            cells = (f"{counts.get(number, ''):>{max(len(directions[number]), _CELL)}}" for number in shown)
            return f"{label:>{_LABEL}}  {'  '.join(cells)}".rstrip()

        names = (f"{directions[number]:>{_CELL}}" for number in shown)
        yield f"{'interval ns':>{_LABEL}}  {'  '.join(names)}"
        for least, counts in self.rows():
            yield line(self._label(least), counts)
        yield line("all", totals)

    def _label(self, least: int) -> str:
        if least == _LAST * self.bin_ns:
            return f"{least:,} and more"
        return f"{least:,}" if self.bin_ns == 1 else f"{least:,} .. {least + self.bin_ns - 1:,}"
