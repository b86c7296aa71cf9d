"""Cycles and their phases: the calendar of everything that happens (docs/pipeline.md, section 1).

A register holds one value, the one visible in the current cycle. A cycle is worked through in
phases, so that what is computed from values visible at c, and registered, is visible at c+1:

- `FLAGS`, `RECEIVE`, `STATE`: the clock edge. Registers still show what was visible in the cycle
  before; what these phases compute from it is visible from this cycle on.
- `UPDATE`: every other register takes the value visible in this cycle.
- `DECIDE`, `MATCH`: the decisions of this cycle, from what is visible in it.
- `RECORD`: the cycle's records leave, in order.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any, Final

from wire.trace import Record

__all__ = ["DECIDE", "FLAGS", "MATCH", "RECEIVE", "STATE", "UPDATE", "Kernel"]

FLAGS: Final = 0
"""Flow control flags: they read registers that `RECEIVE` changes."""
RECEIVE: Final = 1
"""Headers, link packets and the flow control period: they read states that `STATE` changes."""
STATE: Final = 2
"""Port states: they read `up`, which `UPDATE` changes."""
UPDATE: Final = 3
DECIDE: Final = 4
MATCH: Final = 5
_RECORD: Final = 7
_PHASE_BITS: Final = 3
_PHASE_MASK: Final = (1 << _PHASE_BITS) - 1
_WINDOW: Final = 1 << 10
"""Cycles ahead that have a bucket of their own for each phase; what is farther waits in a heap."""
_KEYS: Final = _WINDOW << _PHASE_BITS


class Kernel:
    """A calendar: events by (cycle, phase), in the order in which they were scheduled.

    Attributes:
        now: the current cycle.
    """

    __slots__ = ("_buckets", "_current", "_far", "_far_count", "_keys", "now")

    def __init__(self) -> None:
        self.now = 0
        self._current = 0
        self._keys: list[int] = []  # a heap of the keys (cycle and phase) of buckets in use
        self._buckets: list[list[Any]] = [[] for _ in range(_KEYS)]
        self._far: list[tuple[int, int, Any]] = []  # a heap of (key, order, entry)
        self._far_count = 0

    def at(self, cycle: int, phase: int, action: Callable[[Any], None], argument: Any = None) -> None:
        """Call `action(argument)` in a phase of a cycle, not before the phase being worked on."""
        key = cycle << _PHASE_BITS | phase
        if 0 <= key - self._current < _KEYS:
            bucket = self._buckets[key % _KEYS]
            if not bucket:
                heappush(self._keys, key)
            bucket.append((action, argument))
        else:
            self._put_far(key, (action, argument))

    def record(self, record: Record) -> None:
        """Put a record into the trace, in its cycle, which may be a little ahead."""
        key = record[0] << _PHASE_BITS | _RECORD
        bucket = self._buckets[key % _KEYS]
        if not bucket:
            heappush(self._keys, key)
        bucket.append(record)

    def _put_far(self, key: int, entry: Any) -> None:
        assert key > self._current, f"cycle {key >> _PHASE_BITS} phase {key & _PHASE_MASK} is over in {self.now}"
        self._far_count += 1
        heappush(self._far, (key, self._far_count, entry))

    def _fetch(self, first: int) -> None:
        """Give what is no longer far from key `first` its bucket, before anything else is put there."""
        far = self._far
        while far and far[0][0] - first < _KEYS:
            key, _, entry = heappop(far)
            bucket = self._buckets[key % _KEYS]
            if not bucket:
                heappush(self._keys, key)
            bucket.append(entry)

    def run(self, until: int) -> Iterator[Record]:
        """Work through all cycles below `until`, yielding their records in order (section 11)."""
        limit = until << _PHASE_BITS
        keys, buckets, far = self._keys, self._buckets, self._far
        while keys or far:
            key = keys[0] if keys else far[0][0]
            if far:
                key = min(key, far[0][0])
            if key >= limit:
                break
            if far and far[0][0] - key < _KEYS:
                self._fetch(key)
            heappop(keys)
            self._current = key
            bucket = buckets[key % _KEYS]
            if key & _PHASE_MASK == _RECORD:
                if len(bucket) > 1:
                    bucket.sort()
                yield from bucket
            else:
                self.now = key >> _PHASE_BITS
                for action, argument in bucket:  # an action may add to the bucket it is in
                    action(argument)
            bucket.clear()
        self.now = until
        self._current = max(self._current, limit)
