"""Error injection at the entry of a link (docs/pipeline.md, section 2.1)."""

from abc import ABC, abstractmethod
from collections import deque

from wire.stimulus import Injection, Trigger
from wire.symbols import Control
from wire.trace_layout import Inject

from ..kernel import DECIDE, UPDATE, Kernel
from ..packet import LinkTransmission, Row, Transmission

__all__ = ["Injector", "LinkEntry"]

_K_LAST = 1
_K_SHIFT = 32
_DATA_MASK = 0xFFFF_FFFF


def _ends_packet(row: Row) -> bool:
    return bool(row[1] & _K_LAST) and row[0] & 0xFF in (Control.EGP, Control.EBP)


class LinkEntry(ABC):
    """Where rows enter a direction of a link.

    Attributes:
        in_flight: packets, in order, that have not fully arrived.
        stale: the injector is inside a packet whose end row was refused.
    """

    in_flight: deque[Transmission]
    stale: bool

    @abstractmethod
    def entering(self, cycle: int) -> Row | None:
        """The row that enters, or entered since the link is up, in a cycle, before injection; None if none is valid."""

    @abstractmethod
    def inside(self, cycle: int) -> bool:
        """True if the injector is inside a packet in the current cycle."""

    @abstractmethod
    def inject(self, row: Row) -> None:
        """Replace the row that enters in the current cycle."""


class Injector:
    """One direction's injector. It works only while an operation is armed or begun.

    Attributes:
        armed: the operation that waits for its packet or idle row.
    """

    def __init__(self, entry: LinkEntry, kernel: Kernel, source: int) -> None:
        self.armed: Injection | None = None
        self._begun: Injection | None = None
        self._row = 0
        self._recorded = False
        self._entry = entry
        self._link_up = True
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
        self._link_up = up
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
        if self.armed is not operation or not self._link_up:
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
            ends = self._row > 0 and _ends_packet(row)
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
