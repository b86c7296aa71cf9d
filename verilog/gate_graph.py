"""Functions of free bits, as a graph of gates in which what is alike is one.

An edge is a number: twice that of a gate, and 1 more where it is inverted.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

__all__ = ["FALSE", "TRUE", "Graph", "Kind"]

FALSE: Final = 0
TRUE: Final = 1


class Kind(Enum):
    """What a gate is of its inputs."""

    FREE = auto()
    AND = auto()
    DIFFER = auto()
    CHOICE = auto()
    """The second input where the third is 1, or the first."""


class Graph:
    """Gates.

    Attributes:
        kinds: of each gate. The first is no gate: it stands for 0.
        inputs: of each gate, edges.
    """

    def __init__(self) -> None:
        self.kinds = [Kind.FREE]
        self.inputs: list[tuple[int, ...]] = [()]
        self._known: dict[tuple[Kind, tuple[int, ...]], int] = {}

    def free(self) -> int:
        """A bit that may have any value."""
        return self._add(Kind.FREE, ())

    def both(self, one: int, other: int) -> int:
        """Both are 1."""
        if one > other:
            one, other = other, one
        if one == FALSE or one == other ^ 1:
            return FALSE
        if one in (TRUE, other):
            return other
        return self._gate(Kind.AND, (one, other))

    def either(self, one: int, other: int) -> int:
        """One of them is 1."""
        return self.both(one ^ 1, other ^ 1) ^ 1

    def differ(self, one: int, other: int) -> int:
        """One of them is 1, the other 0."""
        inverted = (one ^ other) & 1
        first, second = sorted((one & ~1, other & ~1))
        if first == second:
            return inverted
        if first == FALSE:
            return second ^ inverted
        return self._gate(Kind.DIFFER, (first, second)) ^ inverted

    def choice(self, where_0: int, where_1: int, select: int) -> int:
        """One of two, by what a third is."""
        if select & 1:
            return self.choice(where_1, where_0, select ^ 1)
        if select == FALSE or where_0 == where_1:
            return where_0
        if where_0 == where_1 ^ 1:
            return self.differ(select, where_0)
        if where_0 in (FALSE, select):
            return self.both(select, where_1)
        if where_1 in (TRUE, select):
            return self.either(select, where_0)
        if where_0 in (TRUE, select ^ 1):
            return self.either(select ^ 1, where_1)
        if where_1 in (FALSE, select ^ 1):
            return self.both(select ^ 1, where_0)
        inverted = where_0 & 1
        return self._gate(Kind.CHOICE, (where_0 ^ inverted, where_1 ^ inverted, select)) ^ inverted

    def _gate(self, kind: Kind, inputs: tuple[int, ...]) -> int:
        if (kind, inputs) not in self._known:
            self._known[kind, inputs] = self._add(kind, inputs)
        return self._known[kind, inputs]

    def _add(self, kind: Kind, inputs: tuple[int, ...]) -> int:
        self.kinds.append(kind)
        self.inputs.append(inputs)
        return 2 * (len(self.kinds) - 1)
