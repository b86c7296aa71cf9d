"""Links: two directions with a flight time, up and down (docs/pipeline.md, section 2).

A direction knows the packets that are on it and computes a row only where somebody needs it: the
receiver takes an undamaged packet in one piece. What damages one (an injected error, a refused
row, the link going down) makes the receiver look at rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

from ..kernel import CONTROL, UPDATE, Kernel
from ..packet import Row, Transmission, idle
from .injector import Injector, LinkEntry
from .wire_log import WireLog

__all__ = ["Cable", "Direction", "LinkEnd", "RowReceiver"]

_PHASE_MASK = 3
_REMEMBERED = 16
"""Packets to remember before looking whether they have arrived."""
_DONE_LATENCY = 2
"""Cycles from a packet's last row at the receiver until it is done with."""
_RESET_PITCH = 1
"""A port is 4X at reset."""


class RowReceiver(ABC):
    """What takes the rows of a direction."""

    @abstractmethod
    def expect(self, sending: Transmission) -> None:
        """A packet will enter the link."""

    @abstractmethod
    def expect_end(self, sending: Transmission) -> None:
        """A packet ends early; its end row enters the link in the current cycle."""

    @abstractmethod
    def disturb(self, cycle: int) -> None:
        """From a cycle ahead on, rows may differ from what their packets' senders planned."""


class LinkEnd(ABC):
    """What is at an end of a cable."""

    @abstractmethod
    def connect(self, cable: Cable, out: Direction, into: Direction) -> RowReceiver:
        """Plug in a cable, which is up; returns what receives."""

    @abstractmethod
    def polls(self) -> bool:
        """True if it lets the link be up, as visible in the current cycle."""

    @abstractmethod
    def link_changed(self, up: bool) -> None:
        """The link is up, or is down, from the current cycle on."""


class Direction(LinkEntry):
    """Rows from a transmitter to a receiver.

    Attributes:
        flight: flight time in cycles.
        log: what is kept of it for somebody outside.
    """

    def __init__(self, cable: Cable, source: int) -> None:
        self.cable = cable
        self.flight = cable.flight
        self.in_flight: deque[Transmission] = deque()
        self.stale = False
        self.log: WireLog | None = None
        self.injector = Injector(self, cable.kernel, source)
        self._kernel = cable.kernel
        self._changed: dict[int, Row] = {}  # injected rows by the cycle in which they enter
        self._pitches: deque[tuple[int, int]] = deque([(0, _RESET_PITCH)])
        self.receiver: RowReceiver

    # What the sender does.

    def send(self, sending: Transmission) -> None:
        """A packet will be on the wires from its cycle w0 on."""
        in_flight = self.in_flight
        if len(in_flight) >= _REMEMBERED:
            self._forget()
        in_flight.append(sending)
        if self.log:
            self.log.send(sending)
        if self.injector.armed:
            self.injector.expect(sending)
        if self.stale:
            self._end_passes(sending)
        self.receiver.expect(sending)

    def refuse(self, sending: Transmission, row: int) -> None:
        """Rows from this one on will be idle rows."""
        if row:
            self.receiver.disturb(sending.w0 + row * sending.pitch + self.flight)
            self._end_passes(sending)
        else:
            self.in_flight.remove(sending)
            sending.whole = False

    def ended_early(self, sending: Transmission) -> None:
        """The end row is on the wires, sooner than was planned."""
        if sending.whole:
            self.receiver.expect_end(sending)
        if self.stale or sending.refused > 0:
            self._end_passes(sending)

    def arrived(self, sending: Transmission) -> None:
        """The receiver has done with a packet."""
        sending.arrived = True
        if self.in_flight[0] is sending:
            self.in_flight.popleft()

    def _end_passes(self, sending: Transmission) -> None:
        """The end row, or an idle row in its place, will pass the injector: it may be stale, or become so."""
        self._kernel.at(sending.w0 + sending.end * sending.pitch, UPDATE, self._end_passed, sending)

    def _end_passed(self, sending: Transmission) -> None:
        if sending.w0 + sending.end * sending.pitch != self._kernel.now or not self.cable.up:
            return
        if sending.refused < 0:
            self.stale = False
        elif sending.refused > 0 and sending.w0 >= self.cable.up_since and not self.stale:
            self.stale = True
            for later in self.in_flight:
                if later.w0 > sending.w0:
                    self._end_passes(later)

    def set_pitch(self, pitch: int) -> None:
        """The sender's width, visible from the current cycle on."""
        now = self._kernel.now
        self._pitches.append((now, pitch))
        if self.log:
            self.log.set_pitch(now, pitch)
        for sending in self.in_flight:
            # Its remaining rows are on the wires in other cycles than planned, or not at all.
            if sending.pitch != pitch and sending.w0 + sending.end * sending.pitch >= now:
                sending.irregular = True
        if self.in_flight and self.last_arrival(self.in_flight[-1]) >= now + self.flight:
            self.receiver.disturb(now + self.flight)

    def polling_changed(self, polls: bool) -> None:
        """The sender begins or ceases to poll, visible in the current cycle."""
        if self.log:
            self.log.set_polls(self._kernel.now, polls)

    # What is on the wires.

    def keep_log(self, *, entering: bool) -> WireLog:
        """Keep what is on the wires from cycle 0 on, see `WireLog`; to be called before."""
        self.log = WireLog(_RESET_PITCH, flight=self.flight if entering else None)
        return self.log

    def inside(self, cycle: int) -> bool:
        """Between the rows of a packet too."""
        return self.stale or any(
            sending.w0 >= self.cable.up_since and sending.w0 <= cycle <= sending.w0 + sending.end * sending.pitch
            for sending in self.in_flight
        )

    def entering(self, cycle: int) -> Row | None:
        """None if the link is down, or the cycle none of the sender's width."""
        if not self.cable.up:
            return None
        pitch = next(pitch for since, pitch in reversed(self._pitches) if since <= cycle)
        if pitch != 1 and cycle & _PHASE_MASK:
            return None
        for sending in self.in_flight:
            index, rest = divmod(cycle - sending.w0, sending.pitch)
            if not rest and 0 <= index <= sending.end:
                return sending.row(index)
        return idle(cycle)

    def inject(self, row: Row) -> None:
        """The receiver is to look at it."""
        now = self._kernel.now
        self._changed[now] = row
        if self.log:
            self.log.inject(now, row)
        self.receiver.disturb(now + self.flight)

    def leaving(self) -> Row | None:
        """The row that leaves in the current cycle; None if there is no valid one."""
        entered = self._kernel.now - self.flight
        if entered < self.cable.up_since:
            return None
        row = self.entering(entered)
        return self._changed.get(entered, row) if row else None

    def next_changed(self, cycle: int) -> int | None:
        """The first cycle, not before a given one, in which an injected row leaves."""
        return min((w + self.flight for w in self._changed if w + self.flight >= cycle), default=None)

    def last_arrival(self, sending: Transmission) -> int:
        """Cycle in which the end row of a packet leaves, as far as is known."""
        return sending.w0 + sending.end * sending.pitch + self.flight

    def _forget(self) -> None:
        """Drop what has arrived."""
        now = self._kernel.now
        while self.in_flight and self.last_arrival(self.in_flight[0]) + _DONE_LATENCY < now:
            self.in_flight.popleft()
        if self._changed:
            self._changed = {w: row for w, row in self._changed.items() if w + self.flight >= now}
        while len(self._pitches) > 1 and self._pitches[1][0] + self.flight < now:
            self._pitches.popleft()


class Cable:
    """A link: two directions that go up and down together, as the control operations and both ports say.

    Attributes:
        up: as visible in the current cycle; up from cycle 0.
        up_since: the cycle since which it has been so.
    """

    def __init__(self, kernel: Kernel, flight: int) -> None:
        self.kernel = kernel
        self.flight = flight
        self.up = True
        self.up_since = 0
        self._held_down = False  # by the control operations
        self._polled = True  # both ports were polling in the cycle before
        self._ends: tuple[LinkEnd, LinkEnd]
        self.directions: tuple[Direction, Direction]

    def connect(self, a: LinkEnd, b: LinkEnd, sources: tuple[int, int]) -> None:
        """Connect two ends; `sources` are those of the directions in the trace."""
        self._ends = a, b
        self.directions = there, back = Direction(self, sources[0]), Direction(self, sources[1])
        back.receiver = a.connect(self, there, back)
        there.receiver = b.connect(self, back, there)

    def set_up(self, up: bool) -> None:
        """LINK_DOWN or LINK_UP given in the current cycle."""
        now = self.kernel.now
        self.kernel.at(now + 1, CONTROL, self._hold, not up)
        self.kernel.at(now + 1, UPDATE, self._change)

    def _hold(self, down: bool) -> None:
        self._held_down = down

    def polling_changed(self) -> None:
        """An end begins or ceases to poll, visible in the current cycle."""
        now = self.kernel.now
        self.kernel.at(now + 1, CONTROL, self._look_at_ends)
        self.kernel.at(now + 1, UPDATE, self._change)

    def _look_at_ends(self, _: None) -> None:
        """The ends still show what was visible in the cycle before."""
        self._polled = all(end.polls() for end in self._ends)

    def _change(self, _: None) -> None:
        up = self._polled and not self._held_down
        if up == self.up:
            return
        now = self.kernel.now
        self.up = up
        if up:
            self.up_since = now
        for direction in self.directions:
            direction.stale = False
            direction.injector.link_changed(up)
            if direction.log:
                direction.log.set_up(now, up)
        for end in self._ends:
            end.link_changed(up)
