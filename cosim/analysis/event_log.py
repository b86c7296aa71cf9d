"""What happens in a fabric, event by event, in the names that people call its places by, for as many as listen."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cosim.analysis.observer import Observer
from cosim.trace.compare import Names, describe, fields
from wire.parameters import FabricParameters
from wire.trace import Kind, Record

__all__ = ["EventLog", "Monitor", "TraceEvent"]


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """A record of the trace.

    Attributes:
        cycle: when; docs/pipeline.md, section 11, says which cycle that is for each kind.
        place: where: `SW1[2]` for a port, `SW1` for a node itself, `H1[1] -> SW1[2]` for a direction of a link.
        kind: what.
        fields: its fields by name, as `wire.trace_layout` has them; codes by their names.
        text: one line for a reader.
    """

    cycle: int
    place: str
    kind: Kind
    fields: Mapping[str, int | str]
    text: str

    def __str__(self) -> str:
        return self.text


class Monitor:
    """Events of some kinds, at some places.

    Attributes:
        seen: those that were not taken from here, oldest first.
    """

    def __init__(self, kinds: Collection[Kind] | None, places: Collection[str] | None, first: int = 0) -> None:
        """FIRST is the cycle from which on they are wanted; engines tell of a cycle when it has long passed."""
        self.seen: deque[TraceEvent] = deque()
        self._first = first
        self._kinds = kinds
        self._places = places

    def take(self, record: Record, names: Names) -> None:
        """Takes a record, if it is one of these."""
        if record.cycle < self._first or (self._kinds is not None and record.kind not in self._kinds):
            return
        place = names.place(record.source)
        if self._places is None or place in self._places:
            kind = Kind(record.kind)
            self.seen.append(TraceEvent(record.cycle, place, kind, fields(record), describe(record, names)))


class EventLog(Observer):
    """Passes the records of a run to monitors, which may come at any time."""

    def __init__(self, fabric: FabricParameters) -> None:
        self._names = Names(fabric)
        self._monitors: list[Monitor] = []

    def add(self, monitor: Monitor) -> None:
        """One more, from now on."""
        self._monitors.append(monitor)

    def observe(self, record: Record) -> None:
        """Takes a record."""
        for monitor in self._monitors:
            monitor.take(record, self._names)
