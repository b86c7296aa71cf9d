"""How many packets of which kind there are in a capture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from capture.chunk import Chunk, PacketFlag
from capture.crc_check import Crc, Crcs

__all__ = ["Totals"]

_WRONG: Final = (Crc.WRONG, Crc.INVERTED)


class Totals:
    """Adds up, chunk by chunk."""

    def __init__(self) -> None:
        self.packets = 0
        """All that were shown."""
        self._by_direction: dict[int, dict[str, int]] = {}

    def add(self, chunk: Chunk, crcs: Crcs) -> None:
        """Take packets that are shown."""
        self.packets += len(chunk)
        is_link = chunk.has(PacketFlag.LINK)
        wrong = np.isin(crcs.link, _WRONG)
        for direction in np.unique(chunk.direction).tolist():
            of_it = chunk.direction == direction
            added = {
                "data_packets": of_it & ~is_link,
                "link_packets": of_it & is_link,
                "vcrc_wrong": of_it & ~is_link & wrong,
                "icrc_wrong": of_it & np.isin(crcs.icrc, _WRONG),
                "lpcrc_wrong": of_it & is_link & wrong,
                "ended_by_ebp": of_it & chunk.has(PacketFlag.MARKED),
                "cut": of_it & chunk.has(PacketFlag.CUT),
            }
            totals = self._by_direction.setdefault(direction, dict.fromkeys(("bytes", *added), 0))
            totals["bytes"] += int(chunk.length[of_it].sum())
            for name, which in added.items():
                totals[name] += int(which.sum())

    def json(self, directions: Sequence[str]) -> dict[str, Any]:
        """By the names of directions."""
        return {directions[number]: totals for number, totals in sorted(self._by_direction.items())}
