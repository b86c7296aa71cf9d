"""Events: the lines of a story, and which of them are reported."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cosim.analysis.observer import Observer
from cosim.scenario.tables import EventName, Recording
from cosim.topology.topology import Port
from wire.parameters import adapter_port

__all__ = ["Event", "EventFilter"]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the story.

    Attributes:
        cycle: when.
        place: the port it happens at.
        name: what kind of event.
        text: what happens, for a reader.
        packet: `flow/sequence` of the packet it is about, or None.
        vl: the VL, where there is one.
        credit_blocks: credits left to the port on that VL, in blocks, where the event shows them.
        credit_packets: the same in packets of the size last sent.
        buffer_blocks: blocks in use in the port's receive buffers, all VLs, where the event shows them.
        buffer_vl_blocks: the same of this VL.
        until: for a packet sent, the cycle of its last row.
        blocks: for a packet sent, the blocks it takes.
        since: for a packet sent, the cycle from which on it waited: its host had it, or the switch accepted it.
    """

    cycle: int
    place: Port
    name: EventName
    text: str
    packet: str | None = None
    vl: int | None = None
    credit_blocks: int | None = None
    credit_packets: int | None = None
    buffer_blocks: int | None = None
    buffer_vl_blocks: int | None = None
    until: int | None = None
    blocks: int | None = None
    since: int | None = None


class EventFilter(Observer):
    """Picks what a scenario wants reported, and of a long run only the first and the last events.

    Attributes:
        skipped: events left out between the first and the last.
    """

    def __init__(self, recording: Recording, report: Callable[[Event], None], skip: Callable[[int], None]) -> None:
        self._recording = recording
        self._report = report
        self._skip = skip
        self._first = 0
        self._last: deque[Event] = deque(maxlen=recording.last or None)
        self.skipped = 0

    def add(self, event: Event) -> None:
        """Take one event."""
        recording = self._recording
        if event.name not in recording.events:
            return
        if recording.nodes is not None and adapter_port(event.place.node)[0] not in recording.nodes:
            return
        if self._first < recording.first:
            self._first += 1
            self._report(event)
            return
        if len(self._last) == recording.last:
            self.skipped += 1
        if recording.last:
            self._last.append(event)

    def finish(self) -> None:
        """Report how many were left out, and the last ones."""
        if self.skipped:
            self._skip(self.skipped)
        for event in self._last:
            self._report(event)
