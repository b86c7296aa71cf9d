"""Control operations that are wanted while a fabric runs: known so far ahead as it may run, the same in every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cosim.stimulus.actors import Shared
from wire.stimulus import Control, Operation

__all__ = ["LateControls"]

_SOONEST: Final = 2
"""Cycles from the last that is known to the first operation given then: the one that changes nothing is between."""


class LateControls:
    """What is wanted, and what has been given of it.

    Who runs the fabric draws each operation when it has given the one before. So at the end of what is known stands an
    operation that changes nothing, and when that is drawn, the next ones are known.

    Attributes:
        known: the cycle up to which all are known.
    """

    def __init__(self, first: Sequence[Control], *, host: int, known: int) -> None:
        """FIRST are those up to cycle KNOWN, ascending by cycle. HOST: the index of a node that is an adapter."""
        self.known = known
        self._first = first
        self._host = host
        self._wanted: list[tuple[Operation, int, tuple[int, int, int, int]]] = []
        self._given: Shared[Control] = Shared()

    def want(self, operation: Operation, target: int, args: tuple[int, int, int, int] = (0, 0, 0, 0)) -> None:
        """Wants an operation, which is given with the next that are."""
        self._wanted.append((operation, target, args))

    @property
    def has_wanted(self) -> bool:
        """Whether some are wanted and not given."""
        return bool(self._wanted)

    def give(self, finished: int, reach: int) -> int:
        """Gives what is wanted, one a cycle, all cycles below FINISHED being over, which is `known` or above.

        All are known then up to cycle REACH, or further if they are as many: how far is returned.
        """
        first = finished + _SOONEST
        for cycle, wanted in enumerate(self._wanted, first):
            self._given.append(Control(cycle, *wanted))
        self.known = max(reach, first + len(self._wanted))
        self._wanted.clear()
        self._given.append(self._idle())
        return self.known

    def draw(self) -> Iterator[Control]:
        """The operations of one run, to be begun before any is given; they never end."""
        queue = self._given.queue()
        queue.extend([*self._first, self._idle()])
        return iter(queue.popleft, None)

    def _idle(self) -> Control:
        """Nothing to be received is held up at a host, as ever."""
        return Control(self.known + 1, Operation.RECV_STALL, self._host)
