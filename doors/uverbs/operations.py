"""What programs' queue pairs have done, and how long that took in the fabric's time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from verbs.work import SendOpcode, SendRequest

__all__ = ["OperationTimes", "Operations"]


class OperationTimes(NamedTuple):
    """The requests of one kind that a host's programs have posted to send queues, and that have ended.

    Attributes:
        least, middle, most: cycles from the doorbell to the completion.
    """

    host: str
    operation: str
    number: int
    bytes: int
    least: int
    middle: int
    most: int


@dataclass(slots=True)
class _Kind:
    bytes: int = 0
    cycles: array[int] = field(default_factory=lambda: array("Q"))


class Operations:
    """The requests of all queue pairs that have ended.

    Attributes:
        clock: gives the cycle.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        """CLOCK gives the cycle."""
        self.clock = clock
        self._kinds: dict[tuple[str, SendOpcode], _Kind] = {}

    def ended(self, host: str, request: SendRequest, began: int) -> None:
        """A request of a host has ended, well or not, that was posted in cycle BEGAN."""
        kind = self._kinds.setdefault((host, request.opcode), _Kind())
        kind.bytes += request.length
        kind.cycles.append(self.clock() - began)

    def times(self) -> Iterator[OperationTimes]:
        """What there was."""
        for (host, opcode), kind in sorted(self._kinds.items()):
            cycles = kind.cycles
            middle = round(median(cycles))
            yield OperationTimes(host, opcode.name, len(cycles), kind.bytes, min(cycles), middle, max(cycles))
