"""What those get that look on while a fabric is served: records of the trace, as many as they ask for in time."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Final

from cosim.analysis.observer import Observer
from wire.trace import RECORD, Kind, Record

__all__ = ["AT_ONCE", "Watch"]

AT_ONCE: Final = 3_600
"""Records of an answer at the most: fewer bytes than a message may have."""

_MOST: Final = 200_000 * RECORD.size
"""Bytes of records that are kept for one who does not ask; after that it is taken to be away."""


class Watch(Observer):
    """Keeps records for those who look on, and the last state of each port for those who come."""

    kinds: Collection[int] = frozenset({Kind.STATE, Kind.TX_DATA, Kind.RX_DATA, Kind.TX_FCP, Kind.RX_FCP})

    def __init__(self) -> None:
        self._states: dict[int, Record] = {}
        self._kept: dict[Hashable, bytearray] = {}

    def observe(self, record: Record) -> None:
        """Keep one."""
        if record.kind == Kind.STATE:
            self._states[record.source] = record
        if self._kept:
            # Packed at once: the garbage collector does not look at bytes.
            packed = RECORD.pack(*record)
            for who, kept in tuple(self._kept.items()):
                kept += packed
                if len(kept) > _MOST:
                    self.leave(who)

    def take(self, who: Hashable) -> bytes:
        """The next records, packed, for one who looks on from now on: first the states of all ports.

        Who was away begins anew.
        """
        if who not in self._kept:
            states = sorted(self._states.values())
            self._kept[who] = bytearray().join(RECORD.pack(*record) for record in states)
        kept = self._kept[who]
        taken = bytes(kept[: AT_ONCE * RECORD.size])
        del kept[: AT_ONCE * RECORD.size]
        return taken

    def leave(self, who: Hashable) -> None:
        """It looks on no more."""
        self._kept.pop(who, None)
