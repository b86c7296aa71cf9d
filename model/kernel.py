"""Cycles and their phases: the calendar of everything that happens (docs/pipeline.md, section 1).

A register holds one value, the one visible in the current cycle. A cycle is worked through in
phases, so that what is computed from values visible at c, and registered, is visible at c+1:

- `CONTROL`, `RECEIVE`, `STATE`: the clock edge. Registers still show what was visible in the cycle
  before; what these phases compute from it is visible from this cycle on.
- `UPDATE`: every other register takes the value visible in this cycle.
- `DECIDE`, `MATCH`: the decisions of this cycle, from what is visible in it.
- `END`: nothing else happens in this cycle.

The cycle's records leave after it, in order.
"""

from collections.abc import Callable, Collection, Container, Iterator
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any, Final

from wire.trace import Record

__all__ = ["CONTROL", "DECIDE", "END", "MATCH", "NEVER", "RECEIVE", "STATE", "UPDATE", "Kernel"]

CONTROL: Final = 0
"""Control operations and posts."""
RECEIVE: Final = 1
"""Headers, link packets and the flow control period: they read states that `STATE` changes."""
STATE: Final = 2
"""Port states: they read `up`, which `UPDATE` changes."""
UPDATE: Final = 3
DECIDE: Final = 4
MATCH: Final = 5
END: Final = 6
_PHASE_BITS: Final = 3
NEVER: Final = 1 << 61
"""Later than any cycle, but not a big integer in the compiled model."""

# In the compiled model, names that are said to be final take less time than those that are imported.
_Record: Final = Record
_push: Final = heappush
_pop: Final = heappop
_make: Final = tuple.__new__
"""Makes a record of a tuple, in less time than the class does."""


class Kernel:
    """A calendar: events by (cycle, phase), in the order in which they were scheduled.

    Records of other KINDS than these do not leave; without it all do.

    Attributes:
        now: the current cycle.
    """

    __slots__ = ("_buckets", "_keys", "_kinds", "_records", "now")

    def __init__(self, kinds: Collection[int] | None = None) -> None:
        self.now = 0
        self._kinds = None if kinds is None else frozenset(kinds)
        self._keys: list[int] = []  # a heap of the keys (cycle and phase) of the buckets
        self._buckets: dict[int, list[tuple[Callable[[Any], None], Any]]] = {}
        self._records: list[Record] = []  # a heap of those that have not left

    def at(self, cycle: int, phase: int, action: Callable[[Any], None], argument: Any = None) -> None:
        """Call `action(argument)` in a phase of a cycle, not before the phase being worked on."""
        key: Any = cycle << _PHASE_BITS | phase  # an object: the compiled model makes one once
        buckets = self._buckets
        bucket = buckets.get(key)
        if bucket is None:
            buckets[key] = [(action, argument)]
            _push(self._keys, key)
        else:
            bucket.append((action, argument))

    def record(self, fields: tuple[int, ...]) -> Record:
        """Put a record into the trace, in its cycle, the current one or one ahead; returns it."""
        record = _make(_Record, fields)
        if self.keeps(fields[2]):
            _push(self._records, record)
        return record

    def keeps(self, kind: int) -> bool:
        """Whether records of a kind leave."""
        kinds = self._kinds
        return kinds is None or kind in kinds

    def withdraw(self, record: Record) -> None:
        """Take back a record of a cycle ahead."""
        if self.keeps(record.kind):
            self._records.remove(record)
            heapify(self._records)

    def forget(self, dead: Container[int], is_theirs: Callable[[Record], bool]) -> None:
        """Nothing that was to come of these objects, given by id, does, nor do their records of the cycles ahead."""
        for bucket in self._buckets.values():
            bucket[:] = [event for event in bucket if id(_owner(event[0])) not in dead]
        now = self.now
        records = self._records
        records[:] = [record for record in records if record[0] <= now or not is_theirs(record)]
        heapify(records)

    def run(self, until: int) -> Iterator[Record]:
        """Work through all cycles below `until`, yielding their records in order (section 11)."""
        limit = until << _PHASE_BITS
        keys, buckets, records = self._keys, self._buckets, self._records
        while keys and keys[0] < limit:
            key: Any = _pop(keys)
            cycle: int = key >> _PHASE_BITS
            while records and records[0][0] < cycle:
                yield _pop(records)
            self.now = cycle
            for action, argument in buckets[key]:  # an action may add to the bucket it is in
                action(argument)
            del buckets[key]
        while records and records[0][0] < until:
            yield _pop(records)
        self.now = max(self.now, until)


def _owner(action: Callable[[Any], None]) -> object:
    """The object whose method it is."""
    if isinstance(action, partial):
        action = action.func
    return getattr(action, "__self__", None)
