"""What files of captures have in common, seen from their reader: interfaces, and records with their times."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UserError

__all__ = [
    "ERF",
    "INFINIBAND",
    "NO_TIME",
    "CaptureError",
    "Cut",
    "Integers",
    "Interface",
    "Records",
    "RecordsFile",
    "gathered",
]

Integers = NDArray[np.int64]

ERF: Final = 197
INFINIBAND: Final = 247
"""Link types: each record is an ERF record; or begins with its LRH at once."""

NO_TIME: Final = -(1 << 63)
"""Of a record whose time the file does not say."""


class CaptureError(UserError):
    """A file that is no capture of InfiniBand, or a damaged one; the text is one line."""


class Interface(NamedTuple):
    """Where packets were captured.

    Attributes:
        link_type: what its records begin with.
        name: as people call it; empty if the file does not say.
        bits_per_s: how fast its link is; 0 if the file does not say.
    """

    link_type: int
    name: str = ""
    bits_per_s: int = 0


class Records(NamedTuple):
    """Records in a stretch of a file; each attribute an array.

    Attributes:
        start: where a record's own bytes begin in the stretch.
        captured: how many there are.
        original: how many the packet had, as the file says.
        time_ns: since 1970, or NO_TIME.
        interface: index of the interface.
        bad: 1 where the file says that the packet was received with errors.
    """

    start: Integers
    captured: Integers
    original: Integers
    time_ns: Integers
    interface: Integers
    bad: Integers

    def at(self, index: Integers | slice) -> Records:
        """Some of them."""
        return Records(*(column[index] for column in self))


class Cut(NamedTuple):
    """Whole records cut from the front of a stretch.

    Attributes:
        records: what was found; none if only something else was.
        consumed: bytes of the stretch that were used up; 0 if it has to be longer to go on.
        damage: what is wrong with what comes next, in words; empty if nothing is.
    """

    records: Records
    consumed: int
    damage: str = ""


class RecordsFile(Protocol):
    """A kind of file that holds records."""

    interfaces: list[Interface]
    """Those of the records so far."""

    def cut(self, stretch: memoryview) -> Cut:
        """The whole records at the front of a stretch, which goes on where the last one was used up to."""


def gathered(data: NDArray[np.uint8], start: Integers, count: int, *, little: bool = False) -> Integers:
    """The integers in `count` bytes, 8 at most, at each place."""
    value = np.zeros(len(start), np.int64)
    for index in reversed(range(count)) if little else range(count):
        value = value << 8 | data[start + index]
    return value
