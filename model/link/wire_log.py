"""What a port sends its peer over a link, kept for somebody outside who asks for it from time to time."""

from collections.abc import Sequence
from typing import Final

from wire.codes import LINK_WIDTHS

from ..packet import Row, Transmission

__all__ = ["AT_ENTRY", "PHASE_MASK", "WireLog"]

PHASE_MASK: Final = 3
"""Of a cycle, the bits that are 0 where a 1X sender has a row."""

AT_ENTRY: Final = 1
"""Flight to where a link begins: what is on the sender's wires while the link is up passes there."""

LoggedRow = tuple[int, int, int]
"""(cycle, data, k)."""


class WireLog:
    """Rows of one direction of a link, by the cycle in which they are on the sender's wires.

    Either what the sender drives, or what of it gets across the link: without what is on it while it is down, and with
    errors injected.
    What is not given as a row is idle data, at the pace of the sender's width. Each of the methods gives what has not
    been given yet; it is certain only for cycles that are over.

    Attributes:
        of_sender: where packets are played in place of the sender's, it is the sender's that are kept.
    """

    def __init__(self, pitch: int, *, flight: int | None) -> None:
        """For a link that is up and whose sender offers all widths; FLIGHT: log what gets across, not what is driven.

        What gets across in a cycle is certain only when that is over at the receiver.
        """
        self.of_sender = flight is None
        self._flight = flight
        self._pitch = pitch
        self._up = True
        self._sent: list[Transmission] = []
        self._injected: dict[int, Row] = {}
        self._from = 0  # the first cycle of which rows were not given
        self._paces = [(0, self._pace)]  # with the one that holds at `_from`
        self._new_paces = [(0, self._pace)]
        self._offers = [(0, LINK_WIDTHS)]
        self._epochs = [0]

    # What the direction reports of the current cycle.

    def send(self, sending: Transmission) -> None:
        """A packet will be on the wires; it may yet be refused or end early."""
        self._sent.append(sending)

    def inject(self, cycle: int, row: Row) -> None:
        """Another row enters than was sent."""
        if self._flight is not None:
            self._injected[cycle] = row

    def set_pitch(self, cycle: int, pitch: int) -> None:
        """The sender's width is visible from this cycle on, unless it is being reset."""
        if self._pitch:
            self._pitch = pitch
            self._set_pace(cycle)

    def fall_silent(self, cycle: int) -> None:
        """The sender is being reset, visible from this cycle on."""
        self.set_pitch(cycle, 0)

    def set_up(self, cycle: int, up: bool) -> None:
        """The link is up, or down, from this cycle on."""
        self._up = up
        if self._flight is not None and not up:
            # What entered less than a flight ago will not get across.
            cycle = max(0, cycle - self._flight + 1)
            self._paces = [change for change in self._paces if change[0] < cycle]
            self._new_paces = [change for change in self._new_paces if change[0] < cycle]
        self._set_pace(cycle)

    def begin_anew(self, cycle: int, pitch: int) -> None:
        """This is the sender's cycle 0, after a reset in which it sent nothing."""
        self._epochs.append(cycle)
        self._pitch = pitch
        self._set_pace(cycle)

    def place(self, cycle: int) -> int:
        """The sender's cycle, which says what its phase and its idle data are."""
        return cycle - max((epoch for epoch in self._epochs if epoch <= cycle), default=0)

    def set_offers(self, cycle: int, widths: int) -> None:
        """The sender offers these widths, a mask, visible from this cycle on."""
        self._offers.append((cycle, widths))

    @property
    def _pace(self) -> int:
        return self._pitch if self._up or self._flight is None else 0

    def _set_pace(self, cycle: int) -> None:
        if not self._paces or self._pace != self._paces[-1][1]:
            self._paces.append((cycle, self._pace))
            self._new_paces.append((cycle, self._pace))

    # What the one outside asks.

    def rows(self, until: int) -> Sequence[LoggedRow]:
        """Rows of packets, and those injected, in cycles below UNTIL, ascending."""
        found: list[LoggedRow] = []
        left: list[Transmission] = []
        for sending in self._sent:
            for index in self._rows_of(sending, until):
                cycle = sending.w0 + index * sending.pitch
                if self._has_row(cycle):
                    row = self._injected.pop(cycle) if cycle in self._injected else sending.row(index)
                    found.append((cycle, *row))
            if sending.w0 + sending.end * sending.pitch >= until:
                left.append(sending)
        self._sent = left
        idle = sorted(cycle for cycle in self._injected if cycle < until)
        if idle:
            injected = [(cycle, *self._injected.pop(cycle)) for cycle in idle]
            found += [entry for entry in injected if self._has_row(entry[0])]
            found.sort()
        self._from = max(self._from, until)
        while len(self._paces) > 1 and self._paces[1][0] <= self._from:
            self._paces.pop(0)
        return found

    def _rows_of(self, sending: Transmission, until: int) -> range:
        """Rows of a packet, by their indices, in cycles below UNTIL that were not given yet; refused ones are none."""
        w0, pitch = sending.w0, sending.pitch
        first = max(0, -(-(self._from - w0) // pitch))
        last = min(sending.end, (until - 1 - w0) // pitch)
        if sending.refused >= 0:
            last = min(last, sending.refused - 1)
        for epoch in self._epochs:
            if epoch > w0:
                last = min(last, (epoch - 1 - w0) // pitch)
        return range(first, last + 1)

    def _has_row(self, cycle: int) -> bool:
        """Whether there is a row at all in a cycle: planned ones may be none since the width changed."""
        pace = self._pace_at(cycle)
        return pace == 1 or (pace != 0 and not self.place(cycle) & PHASE_MASK)

    def _pace_at(self, cycle: int) -> int:
        return next(pace for since, pace in reversed(self._paces) if since <= cycle)

    def _forget_before(self, cycle: int) -> None:
        """What was before this cycle is not asked for any more, nor what changed at all."""
        while len(self._paces) > 1 and self._paces[1][0] <= cycle:
            self._paces.pop(0)
        self._injected = {at: row for at, row in self._injected.items() if at >= cycle}
        self._new_paces.clear()
        self._offers.clear()

    def paces(self, until: int) -> Sequence[tuple[int, int]]:
        """(cycle, pace) of changes below UNTIL: every cycle has a row from then on (1), every fourth (4), none (0)."""
        new = [change for change in self._new_paces if change[0] < until]
        del self._new_paces[: len(new)]
        return new

    def offers(self, until: int) -> Sequence[tuple[int, int]]:
        """(cycle, mask of the widths that the sender offers) of each change below UNTIL, beginning with cycle 0."""
        new = [change for change in self._offers if change[0] < until]
        del self._offers[: len(new)]
        return new
