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
from itertools import chain
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

_NEAR: Final = 2048
"""So many cycles, from the current one on, have places of their own: more than a packet of 2 KiB takes at 4X."""
_PLACE_MASK: Final = _NEAR - 1

# In the compiled model, names that are said to be final take less time than those that are imported.
_Record: Final = Record
_make: Final = tuple.__new__
"""Makes a record of a tuple, in less time than the class does."""

_Event = tuple[Callable[[Any], None], Any]
"""Action and argument."""


class Kernel:
    """A calendar: events by (cycle, phase), in the order in which they were scheduled.

    Records of other KINDS than these do not leave; without it all do.

    Attributes:
        now: the current cycle.
    """

    __slots__ = ("_events", "_far", "_far_comes", "_far_count", "_kinds", "_phases", "_records", "now")

    def __init__(self, kinds: Collection[int] | None = None) -> None:
        self.now = 0
        self._kinds = None if kinds is None else frozenset(kinds)
        # By the places of near cycles: masks of the phases with events, these by phase, and records that have not left.
        self._phases = [0] * _NEAR
        self._events: list[list[_Event] | None] = [None] * (_NEAR << _PHASE_BITS)
        self._records: list[list[Record] | None] = [None] * _NEAR
        # A heap of the events of other cycles: the cycle, which one it is of all these, the phase, the event.
        self._far: list[tuple[int, int, int, _Event]] = []
        self._far_count = 0
        self._far_comes = NEVER  # the cycle in which the first of them is near

    def at(self, cycle: int, phase: int, action: Callable[[Any], None], argument: Any = None) -> None:
        """Call `action(argument)` in a phase of a cycle, not before the phase being worked on."""
        assert cycle >= self.now
        if cycle >= self.now + _NEAR:
            heappush(self._far, (cycle, self._far_count, phase, (action, argument)))
            self._far_count += 1
            self._far_comes = min(self._far_comes, cycle - _NEAR + 1)
            return
        place = cycle & _PLACE_MASK
        events = self._events[place << _PHASE_BITS | phase]
        if events is None:
            self._events[place << _PHASE_BITS | phase] = [(action, argument)]
            self._phases[place] |= 1 << phase
        else:
            events.append((action, argument))

    def record(self, fields: tuple[int, ...]) -> Record:
        """Put a record into the trace, in its cycle, the current one or a near one ahead; returns it."""
        cycle = fields[0]
        assert self.now <= cycle < self.now + _NEAR
        record = _make(_Record, fields)
        if self.keeps(fields[2]):
            place = cycle & _PLACE_MASK
            records = self._records[place]
            if records is None:
                self._records[place] = [record]
            else:
                records.append(record)
        return record

    def keeps(self, kind: int) -> bool:
        """Whether records of a kind leave."""
        kinds = self._kinds
        return kinds is None or kind in kinds

    def withdraw(self, record: Record) -> None:
        """Take back a record of a cycle ahead."""
        if self.keeps(record.kind):
            records = self._records[record.cycle & _PLACE_MASK]
            assert records is not None
            records.remove(record)

    def forget(self, dead: Container[int], is_theirs: Callable[[Record], bool]) -> None:
        """Nothing that was to come of these objects, given by id, does, nor do their records of the cycles ahead."""
        for events in self._events:
            if events is not None:  # others keep their places: the current cycle's are being worked through
                events[:] = [event if id(_owner(event[0])) not in dead else (_nothing, None) for event in events]
        self._far = [entry for entry in self._far if id(_owner(entry[3][0])) not in dead]
        heapify(self._far)
        for records in self._records:
            if records:
                records[:] = [record for record in records if record.cycle <= self.now or not is_theirs(record)]

    def run(self, until: int) -> Iterator[Record]:
        """Work through all cycles below `until`, yielding their records in order (section 11)."""
        return chain.from_iterable(iter(partial(self._next_records, until), []))

    def _next_records(self, until: int) -> list[Record]:
        """Work through cycles up to the next one that has records, or all below `until`: its records, in order."""
        while self.now < until:
            place = self.now & _PLACE_MASK
            while phases := self._phases[place]:  # an action may add to them
                first = phases & -phases
                slot = place << _PHASE_BITS | first.bit_length() - 1
                events = self._events[slot]
                assert events is not None
                for action, argument in events:  # and to these
                    action(argument)
                self._events[slot] = None
                self._phases[place] ^= first
            self.now += 1
            if self.now == self._far_comes:
                self._come_near()
            records = self._records[place]
            if records:
                self._records[place] = None
                if len(records) > 1:
                    records.sort()
                return records
        return []

    def _come_near(self) -> None:
        """The last near cycle gets its events from afar, before any others."""
        far, last = self._far, self.now + _NEAR - 1
        while far and far[0][0] == last:
            _cycle, _count, phase, event = heappop(far)
            self.at(last, phase, *event)
        self._far_comes = far[0][0] - _NEAR + 1 if far else NEVER


def _nothing(_: None) -> None:
    """What becomes of an event that is forgotten."""


def _owner(action: Callable[[Any], None]) -> object:
    """The object whose method it is."""
    if isinstance(action, partial):
        action = action.func
    return getattr(action, "__self__", None)
