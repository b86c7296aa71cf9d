"""P_Key tables that are written, as section 3.6 of docs/pipeline.md has it, read plainly."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from dataclasses import dataclass, field

from wire.port_tables import P_KEY_TABLE
from wire.registers import p_key_address, place_of_address

__all__ = ["ENTRIES", "WAITING", "WrittenTables", "access_of"]

ENTRIES = P_KEY_TABLE.count
WAITING = 32
"""Writes that may wait for their turns."""

_APART = 10
_GONE, _BACK = 4, 11
"""Cycles behind the turn from which on an entry is 0, and is the new one."""


def access_of(port: int, entry: int, key: int) -> dict[str, int]:
    """A write as it is at the node's registered bus stage."""
    page, offset = place_of_address(p_key_address(port, entry))
    return {"write": 1, "page": page, "offset": offset, "wdata": key}


@dataclass
class WrittenTables:
    """The tables of all ports, from the writes to them, told in the order in which they are given."""

    accesses: dict[int, dict[str, int]] = field(default_factory=dict)
    """By the cycle of the bus stage, which is the one after that in which it is given."""
    turns: list[int] = field(default_factory=list)
    _given: list[int] = field(default_factory=list)
    _values: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def write(self, given: int, port: int, entry: int, key: int) -> int:
        """Its turn."""
        turn = max([given + 2, *(turn + _APART for turn in self.turns[-1:])])
        self.turns.append(turn)
        self._given.append(given)
        self.accesses[given + 1] = access_of(port, entry, key)
        values = self._values[port, entry]
        before = values[-1][1] if values else self._at_reset(entry)
        if key != before:
            for cycle, value in ((turn + _GONE, 0), (turn + _BACK, key)):
                insort(values, (cycle, value))
        return turn

    def waiting(self, cycle: int) -> int:
        """Writes that were given before, and whose turns are still to come."""
        return sum(
            given < cycle < turn
            for given, turn in zip(self._given[-WAITING - 1 :], self.turns[-WAITING - 1 :], strict=True)
        )

    def at(self, port: int, cycle: int) -> list[int]:
        """A port's table as visible in a cycle."""
        return [self._entry(port, entry, cycle) for entry in range(ENTRIES)]

    def has(self, port: int, p_key: int, cycle: int, *, departs: bool) -> bool:
        """Whether the table of a port that is looked into in a cycle has a P_Key."""
        return any(
            entry & 0x7FFF == p_key & 0x7FFF != 0 and (not departs or bool((entry | p_key) & 0x8000))
            for entry in self.at(port, cycle)
        )

    def _entry(self, port: int, entry: int, cycle: int) -> int:
        values = self._values.get((port, entry), [])
        return next((value for since, value in reversed(values) if since <= cycle), self._at_reset(entry))

    @staticmethod
    def _at_reset(entry: int) -> int:
        return 0xFFFF if entry == 0 else 0
