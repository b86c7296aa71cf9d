"""A stretch of a capture: packets as columns of numbers, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntFlag
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capture.records import Integers
from wire.headers import BTH, GRH, LRH

__all__ = ["MOST_HEADER_BYTES", "Chunk", "PacketFlag"]

MOST_HEADER_BYTES: Final = LRH.size_bytes + GRH.size_bytes + BTH.size_bytes
"""So many bytes may be looked at from the start of any packet of a chunk on, also if it has fewer."""


class PacketFlag(IntFlag):
    """What a capture says of a packet besides its bytes."""

    LINK = 1
    """It is a link packet."""
    BAD = 2
    """It was received with errors; which ones, the next two and the CRCs say."""
    MARKED = 4
    """It ended with EBP."""
    CUT = 8
    """It ended early."""
    SHORT = 16
    """Its end was not captured."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Packets of a capture, in its order; a column for each attribute.

    Attributes:
        data: the bytes of all packets, and others.
        time_ns: since 1970, or since a simulation's cycle 0.
        direction: index into the capture's directions.
        flags: of PacketFlag.
        start: where in `data` a packet's LRH begins, or its Op.
        length: its bytes to VCRC or LPCRC, as far as they were captured.
    """

    data: NDArray[np.uint8]
    time_ns: Integers
    direction: Integers
    flags: Integers
    start: Integers
    length: Integers

    def __len__(self) -> int:
        """Number of packets."""
        return len(self.start)

    def where(self, wanted: NDArray[np.bool_]) -> Chunk:
        """Some of the packets."""
        return replace(
            self,
            time_ns=self.time_ns[wanted],
            direction=self.direction[wanted],
            flags=self.flags[wanted],
            start=self.start[wanted],
            length=self.length[wanted],
        )

    def has(self, flag: PacketFlag) -> NDArray[np.bool_]:
        """Which packets have a flag."""
        result: NDArray[np.bool_] = (self.flags & flag) != 0
        return result

    def bytes_of(self, index: int) -> bytes:
        """The bytes of a packet."""
        start = int(self.start[index])
        return self.data[start : start + int(self.length[index])].tobytes()
