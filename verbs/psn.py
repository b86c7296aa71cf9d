"""Packet sequence numbers: 24 bits that wrap round (IBTA vol 1, 9.7.1 and 9.7.2)."""

from typing import Final

__all__ = ["PSN_MASK", "PSN_WINDOW", "psn_add", "psn_after"]

PSN_MASK: Final = (1 << 24) - 1

PSN_WINDOW: Final = 1 << 23
"""So many PSNs may be outstanding, and so far back does a responder take a PSN for a duplicate's.

One more than that behind is the farthest ahead: of 2^24 PSNs one is expected, 2^23 are duplicates and the others are
out of sequence.
"""


def psn_add(psn: int, count: int) -> int:
    """The PSN `count` packets later."""
    return psn + count & PSN_MASK


def psn_after(psn: int, start: int) -> int:
    """How many packets `psn` is after `start`, 0 to 2^24 - 1."""
    return psn - start & PSN_MASK
