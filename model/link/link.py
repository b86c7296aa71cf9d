"""A direction of a link: rows in flight, and errors injected at its entry (docs/pipeline.md, section 2).

It knows the packets that are on it and computes a row only where somebody needs it: the
receiver takes an undamaged packet in one piece. What damages one (an injected error, a refused
row, the link going down) makes the receiver look at rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Final

from wire.framing import FramedPacket
from wire.stimulus import Injection, Trigger
from wire.trace_layout import Inject

from ..kernel import DECIDE, NEVER, UPDATE, Kernel
from ..packet import LinkTransmission, Row, Transmission, idle
from .playing import PlayedRows, played, rest_of
from .row_sums import RowSums
from .wire_log import PHASE_MASK, WireLog
from .wire_tap import WireTap

__all__ = ["Direction", "RowReceiver"]

_REMEMBERED: Final = 16
"""Packets to remember before looking whether they have arrived."""
_DONE_LATENCY: Final = 2
"""Cycles from a packet's last row at the receiver until it is done with."""
_RESET_PITCH: Final = 1
"""A port is 4X at reset."""
_K_LAST: Final = 1
_K_SHIFT: Final = 32
_DATA_MASK: Final = 0xFFFF_FFFF


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


class Direction:
    """Rows from a transmitter to a receiver.

    Attributes:
        flight: flight time in cycles.
        up: as visible in the current cycle; up from cycle 0.
        up_since: the cycle since which it has been so.
        epoch: cycle 0 of the sender, which a reset makes begin anew.
        in_flight: packets, in order, that have not fully arrived.
        stale: the injector is inside a packet whose end row was not on the wires.
        logs: what is kept of it for somebody outside.
        played_from: packets that the sender puts on the wires from this cycle on only logs of the sender get.
        injector: at its entry.
    """

    def __init__(
        self, kernel: Kernel, flight: int, source: int, receiver: RowReceiver, offers_changed: Callable[[], None]
    ) -> None:
        """`source` is that of its records; `offers_changed` is called when its sender offers other widths."""
        self.flight = flight
        self.up = True
        self.up_since = 0
        self.epoch = 0
        self.in_flight: deque[Transmission] = deque()
        self.stale = False
        self.logs: list[WireLog] = []
        self.played_from = NEVER
        self.injector = Injector(self, kernel, source)
        self._kernel = kernel
        self._receiver = receiver
        self._offers_changed = offers_changed
        self._changed: dict[int, Row] = {}  # injected rows by the cycle in which they enter
        self._pitches: deque[tuple[int, int]] = deque([(0, _RESET_PITCH)])
        self._played: Transmission | None = None

    # What the sender does.

    def send(self, sending: Transmission) -> None:
        """A packet will be on the wires from its cycle w0 on."""
        if sending.w0 >= self.played_from:
            for log in self.logs:
                if log.of_sender:
                    log.send(sending)
            return
        in_flight = self.in_flight
        if len(in_flight) >= _REMEMBERED:
            self._forget()
        in_flight.append(sending)
        for log in self.logs:
            log.send(sending)
        if self.injector.armed:
            self.injector.expect(sending)
        if self.stale or sending.irregular:
            self._end_passes(sending)
        self._receiver.expect(sending)

    def refuse(self, sending: Transmission, row: int) -> None:
        """Rows from this one on will be idle rows."""
        if sending.w0 >= self.played_from:
            return
        if row:
            self._receiver.disturb(sending.w0 + row * sending.pitch + self.flight)
            self._end_passes(sending)
        else:
            self.in_flight.remove(sending)
            sending.whole = False

    def ended_early(self, sending: Transmission) -> None:
        """The end row is on the wires, sooner than was planned."""
        if sending.w0 >= self.played_from:
            return
        if sending.whole:
            self._receiver.expect_end(sending)
        if self.stale or sending.refused > 0:
            self._end_passes(sending)

    def arrived(self, sending: Transmission) -> None:
        """The receiver has done with a packet."""
        sending.arrived = True
        if self.in_flight[0] is sending:
            self.in_flight.popleft()

    def _end_passes(self, sending: Transmission) -> None:
        """The end row, or an idle one or none in its place, will pass the injector: it may be stale, or become so."""
        following = sending.w0 + sending.end * sending.pitch + 1
        if following >= self._kernel.now:
            self._kernel.at(following, UPDATE, self._end_passed, sending)
        else:  # of packets that are played, one may end before another that began before it
            self._look_at_end(sending, following - 1)

    def _end_passed(self, sending: Transmission) -> None:
        """In the cycle after it."""
        end = sending.w0 + sending.end * sending.pitch
        if end == self._kernel.now - 1:
            self._look_at_end(sending, end)

    def _look_at_end(self, sending: Transmission, end: int) -> None:
        """What an end row, or what was in its place, has left the injector in, if the link is up."""
        if not self.up:
            return
        if sending.refused < 0 and self._has_row(end):
            self.stale = False
        elif sending.refused and self._row_0_entered(sending) and not self.stale:
            self.stale = True
            for later in self.in_flight:
                if later.w0 > sending.w0:
                    self._end_passes(later)

    def set_pitch(self, pitch: int) -> None:
        """The sender's width, visible from the current cycle on."""
        now = self._kernel.now
        self._pitches.append((now, pitch))
        for log in self.logs:
            log.set_pitch(now, pitch)
        for sending in self.in_flight:
            # Its remaining rows are on the wires in other cycles than planned, or not at all.
            if sending.pitch != pitch and sending.w0 + sending.end * sending.pitch >= now:
                sending.irregular = True
                self._end_passes(sending)
        if self._played:
            self._play_on(self._played, pitch)
        if self.in_flight and self.last_arrival(self.in_flight[-1]) >= now + self.flight:
            self._receiver.disturb(now + self.flight)

    def offers_changed(self, widths: int) -> None:
        """The sender offers other widths, a mask, visible in the current cycle."""
        self._offers_changed()
        for log in self.logs:
            log.set_offers(self._kernel.now, widths)

    def fall_silent(self) -> None:
        """The sender is being reset, visible in the current cycle."""
        for log in self.logs:
            log.fall_silent(self._kernel.now)

    def begin_anew(self) -> None:
        """The sender begins to live in the current cycle. The link has been down for longer than anything takes."""
        self.epoch = now = self._kernel.now
        self.in_flight.clear()
        self._played = None
        self._pitches = deque([(now, _RESET_PITCH)])
        for log in self.logs:
            log.begin_anew(now, _RESET_PITCH)

    def received_by(self, receiver: RowReceiver) -> None:
        """The receiving node is another one from the next cycle on, when the link is down."""
        self._receiver = receiver
        for sending in self.in_flight:
            sending.whole = False

    def link_changed(self, up: bool) -> None:
        """The link is up, or is down, from the current cycle on."""
        now = self._kernel.now
        self.up = up
        if up:
            self.up_since = now
        self.stale = False
        self.injector.link_changed(up)
        for log in self.logs:
            log.set_up(now, up)

    # Who plays in place of the sender.

    def play(self, packet: FramedPacket) -> None:
        """A packet is on the wires from its cycle on, which is the current one, in place of the sender's."""
        sending, before = played(packet, self._pitches[-1][1]), self._played
        if isinstance(before, PlayedRows) and before.breaks and before.w0 + before.end * before.pitch >= sending.w0:
            before.end -= 1
        self._enter(sending)

    def _play_on(self, sending: Transmission, pitch: int) -> None:
        """The sender's width changed, visible in the current cycle: what is left of a packet has its rows as they come.

        Of the rows that were none, which a port's own packet loses, a capture has nothing.
        """
        now = self._kernel.now
        row = -((sending.w0 - now) // sending.pitch)
        if row <= sending.end:
            sending.refused = row
            self._enter(rest_of(sending, row, now if pitch == 1 else now + (self.epoch - now & PHASE_MASK), pitch))

    def _enter(self, sending: Transmission) -> None:
        """Rows that are played will be on the wires."""
        self._played = sending
        if len(self.in_flight) >= _REMEMBERED:
            self._forget()
        self.in_flight.append(sending)
        for log in self.logs:
            if not log.of_sender:
                log.send(sending)
        self._receiver.expect(sending)

    # What is on the wires.

    def keep_log(self, *, entering: bool) -> WireLog:
        """Keep what is on the wires from cycle 0 on, see `WireLog`; to be called before."""
        log = WireLog(_RESET_PITCH, flight=self.flight if entering else None)
        self.logs.append(log)
        return log

    def tap(self) -> WireTap:
        """Keep the packets that enter from cycle 0 on; to be called before."""
        tap = WireTap(_RESET_PITCH)
        self.logs.append(tap)
        return tap

    def sum_rows(self) -> RowSums:
        """Sum up all rows that enter from cycle 0 on; to be called before."""
        sums = RowSums(_RESET_PITCH)
        self.logs.append(sums)
        return sums

    def inside(self, cycle: int) -> bool:
        """True if the injector is inside a packet in the current cycle, between its rows too."""
        return self.stale or any(
            sending.w0 <= cycle <= sending.w0 + sending.end * sending.pitch and self._row_0_entered(sending)
            for sending in self.in_flight
        )

    def _row_0_entered(self, sending: Transmission) -> bool:
        """Row 0 of a packet, which is over, was on the wires, and the link has been up since."""
        return sending.w0 >= self.up_since and self._has_row(sending.w0)

    def _has_row(self, cycle: int) -> bool:
        """The sender's width has a row in a cycle, as far as widths are remembered."""
        pitch = next((pitch for since, pitch in reversed(self._pitches) if since <= cycle), 1)
        return pitch == 1 or not cycle - self.epoch & PHASE_MASK

    def entering(self, cycle: int) -> Row | None:
        """The row that enters, or entered since the link is up, in a cycle, before injection.

        None if the link is down, or the cycle none of the sender's width.
        """
        if not self.up or not self._has_row(cycle):
            return None
        for sending in self.in_flight:
            index, rest = divmod(cycle - sending.w0, sending.pitch)
            if not rest and 0 <= index <= sending.end and not 0 <= sending.refused <= index:
                return sending.row(index)
        return idle(cycle - self.epoch)

    def inject(self, row: Row) -> None:
        """Replace the row that enters in the current cycle; the receiver is to look at it."""
        now = self._kernel.now
        self._changed[now] = row
        for log in self.logs:
            log.inject(now, row)
        self._receiver.disturb(now + self.flight)

    def leaving(self) -> Row | None:
        """The row that leaves in the current cycle; None if there is no valid one."""
        entered = self._kernel.now - self.flight
        if entered < self.up_since:
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


class Injector:
    """One direction's injector (section 2.1). It works only while an operation is armed or begun.

    Attributes:
        armed: the operation that waits for its packet or idle row.
    """

    def __init__(self, entry: Direction, kernel: Kernel, source: int) -> None:
        self.armed: Injection | None = None
        self._begun: Injection | None = None
        self._row = 0
        self._recorded = False
        self._entry = entry
        self._kernel = kernel
        self._source = source

    def inject(self, operation: Injection) -> None:
        """INJECT given in the current cycle."""
        self._kernel.at(self._kernel.now + 1, UPDATE, self._arm, operation)

    def _arm(self, operation: Injection) -> None:
        if self._begun:
            return
        self.armed = operation
        now = self._kernel.now
        if operation.trigger == Trigger.IDLE:
            self._kernel.at(now, DECIDE, self._seek_idle, operation)
        else:
            for sending in self._entry.in_flight:
                if sending.w0 >= now:
                    self.expect(sending)

    def expect(self, sending: Transmission) -> None:
        """A packet's row 0 will enter in its cycle w0, unless it is refused."""
        self._kernel.at(sending.w0, DECIDE, self._begin_packet, sending)

    def link_changed(self, up: bool) -> None:
        """The link went up or down in the current cycle."""
        if not up:
            self._begun = None
        elif self.armed and self.armed.trigger == Trigger.IDLE:
            self._kernel.at(self._kernel.now, DECIDE, self._seek_idle, self.armed)

    def _begin_packet(self, sending: Transmission) -> None:
        operation = self.armed
        if operation is None or sending.refused == 0 or self._entry.stale:
            return
        if operation.trigger == (Trigger.LINK if isinstance(sending, LinkTransmission) else Trigger.DATA):
            row = self._entry.entering(self._kernel.now)
            if row is not None:  # the link may be down, and at a change of width row 0 be lost
                self._begin(operation)
                self._step(operation)

    def _begin(self, operation: Injection) -> None:
        self.armed = None
        self._begun = operation
        self._row = 0
        self._recorded = False

    def _seek_idle(self, operation: Injection) -> None:
        now = self._kernel.now
        if self.armed is not operation or not self._entry.up:
            return
        row = self._entry.entering(now)
        if row is None or self._entry.inside(now):
            self._kernel.at(now + 1, DECIDE, self._seek_idle, operation)
            return
        self._begin(operation)
        self._change(operation, row, False)
        self._begun = None

    def _step(self, operation: Injection) -> None:
        """A cycle of a begun operation."""
        if self._begun is not operation:
            return
        now = self._kernel.now
        row = self._entry.entering(now)
        if row is not None:
            ends = bool(row[1] & _K_LAST)  # of what senders send: a row 0 has its K bit on lane 0
            self._change(operation, row, ends)
            self._row += 1
            if ends:
                self._begun = None
                return
        self._kernel.at(now + 1, DECIDE, self._step, operation)

    def _change(self, operation: Injection, row: Row, ends: bool) -> None:
        wanted = ends if operation.at_end else operation.first <= self._row <= operation.last
        if not wanted:
            return
        now = self._kernel.now
        if not self._recorded:
            self._recorded = True
            self._kernel.record(Inject.record(now, self._source, trigger=operation.trigger, row=self._row))
        bits = (row[1] << _K_SHIFT | row[0]) & operation.keep ^ operation.flip
        changed = bits & _DATA_MASK, bits >> _K_SHIFT
        if changed != row:
            self._entry.inject(changed)
