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
    """Follows the requests of all queue pairs."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """CLOCK gives the cycle."""
        self._clock = clock
        self._begun: dict[int, int] = {}
        self._kinds: dict[tuple[str, SendOpcode], _Kind] = {}

    def began(self, request: SendRequest) -> None:
        """A request was posted; it is kept by somebody until it has ended."""
        self._begun[id(request)] = self._clock()

    def ended(self, host: str, request: SendRequest) -> None:
        """A request of a host has ended."""
        began = self._begun.pop(id(request), None)
        if began is not None:
            kind = self._kinds.setdefault((host, request.opcode), _Kind())
            kind.bytes += request.length
            kind.cycles.append(self._clock() - began)

    def times(self) -> Iterator[OperationTimes]:
        """What there was."""
        for (host, opcode), kind in sorted(self._kinds.items()):
            cycles = kind.cycles
            middle = round(median(cycles))
            yield OperationTimes(host, opcode.name, len(cycles), kind.bytes, min(cycles), middle, max(cycles))
