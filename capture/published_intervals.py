"""Times between packets as hosts' own captures had them in a laboratory, and how far others are from them.

Published counts for 4X links at SDR: 65,536 packets of RDMA write with 2 KiB each, alone on their way (one every
2.07 us on the link) or as one of two flows to one receiver (one every 4.15 us), captured at the host that sent them or
at the host that received them, which in the second case captured the other flow too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

__all__ = ["PUBLISHED", "PUBLISHED_PACKETS", "SHORT_US", "interval_classes", "total_variation"]

SHORT_US: Final = 13
"""Intervals of 0 to 12 us have a class each; all that are longer have the next one."""

PUBLISHED_PACKETS: Final = 65_536
"""Of each flow."""


def _table(*counts: int) -> tuple[int, ...]:
    """Of counts from 0 us on. What is in none of them is longer: pauses of 312 to 336 us."""
    return (*counts, *(0,) * (SHORT_US - len(counts)), PUBLISHED_PACKETS - 1 - sum(counts))


PUBLISHED: Final = {
    "one flow, at its sender": _table(3106, 16103, 38531, 7203, 221, 103, 21, 23, 11),
    "one flow, at its receiver": _table(6316, 13047, 37644, 7914, 310, 155, 47, 22, 7, 2, 1),
    "one of two flows, at its sender": _table(3263, 2940, 3495, 7081, 41216, 7226, 124, 113, 8, 2, 0, 1),
    "one of two flows, at its receiver": _table(4107, 9800, 6034, 5671, 31164, 7798, 253, 441, 106, 15, 8, 4, 1),
}
"""How many intervals there are of each class."""


def interval_classes(microseconds: Mapping[int, int]) -> list[int]:
    """How many intervals of each class there are, of how many of each length in whole microseconds."""
    short = [microseconds.get(length, 0) for length in range(SHORT_US)]
    return [*short, sum(microseconds.values()) - sum(short)]


def total_variation(counts: Sequence[int], published: Sequence[int]) -> float:
    """How far two tables are from each other: the share of intervals that would have to be of another class, 0 to 1."""
    ours, theirs = np.asarray(counts, float), np.asarray(published, float)
    return float(np.abs(ours / ours.sum() - theirs / theirs.sum()).sum() / 2)
