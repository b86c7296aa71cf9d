"""PortXmitWait, and that of each VL: ticks of waiting, by interval arithmetic (docs/pipeline.md, section 8.3)."""

from collections.abc import Iterable
from typing import Final

from wire.pma import PMA_VL_XMIT_WAIT

from ..kernel import NEVER
from ..packet import Packet

__all__ = ["Ticks", "VlXmitWait", "XmitWait"]

_VL_MAX: Final[int] = PMA_VL_XMIT_WAIT[0].max
"""Where a VL's counter stops."""


class Ticks:
    """A port's ticks.

    Attributes:
        length: in cycles.
        since: a tick begins in this cycle, and none of this length before.
    """

    __slots__ = ("length", "since")

    def __init__(self, length: int, epoch: int = 0) -> None:
        self.length = length
        self.since = epoch

    def within(self, start: int, end: int) -> int:
        """How many lie in the cycles from START to END - 1."""
        first = -((self.since - max(start, self.since)) // self.length)
        return max(0, (end - self.since) // self.length - first)

    def begin_anew(self, cycle: int, length: int) -> None:
        """Ticks of this length begin in this cycle; those before it are counted."""
        self.length = length
        self.since = cycle


class XmitWait:
    """PortXmitWait: ticks in each cycle of which the output waited.

    Attributes:
        since: cycle from which on the output waits, None if it does not.
    """

    __slots__ = ("_ticks", "_value", "since")

    def __init__(self, ticks: Ticks) -> None:
        self.since: int | None = None
        self._ticks = ticks
        self._value = 0  # without the ticks since `since`

    def _waited(self, cycle: int) -> int:
        """Ticks that ended before a cycle and were waited through since `since`."""
        return 0 if self.since is None else self._ticks.within(self.since, cycle)

    def begin(self, cycle: int) -> None:
        """The output waits from this cycle on."""
        if self.since is None:
            self.since = cycle

    def end(self, cycle: int) -> None:
        """The output waits no longer from this cycle on."""
        self._value += self._waited(cycle)
        self.since = None

    def read(self, cycle: int) -> int:
        """The value visible in a cycle; nothing stops it here."""
        return self._value + self._waited(cycle)

    def write(self, cycle: int, value: int) -> None:
        """A write visible in a cycle."""
        self._value = value - self._waited(cycle)

    def settle(self, cycle: int) -> None:
        """Count what is visible in a cycle, in which ticks begin anew."""
        self._value += self._waited(cycle)


class VlXmitWait:
    """The same of each slot of an output.

    A slot waits as long as it has a visible head, but when a packet of its own is offered or sent. So, when it makes an
    offer, it has waited since its last packet was sent or since it has had a head, whichever was later.

    Attributes:
        active_from: the cycle from which on the port is Active, NEVER if it is not.
    """

    __slots__ = ("_free_from", "_last", "_seen_from", "_ticks", "_values", "active_from")

    def __init__(self, ticks: Ticks, seen_from: list[int]) -> None:
        """`seen_from` is that of the output."""
        self.active_from = NEVER
        self._ticks = ticks
        self._seen_from = seen_from
        self._free_from = [0] * len(seen_from)  # the cycle after a slot's last packet, but for the last one of all
        self._last = 0  # that one's slot
        self._values = [0] * len(seen_from)  # without what slots wait at present

    def _waited(self, slot: int, cycle: int) -> int:
        """Ticks that ended before a cycle, and that a slot has waited through since it was free, and had a head."""
        start = max(self._free_from[slot], self._seen_from[slot])
        start = max(start, self.active_from)
        return self._ticks.within(start, cycle) if start + self._ticks.length <= cycle else 0

    def offered(self, slot: int, cycle: int, busy_until: int) -> None:
        """A slot makes an offer in a cycle. The output was busy until another one, with the offer before."""
        self._free_from[self._last] = busy_until + 1
        self._last = slot
        self._values[slot] += self._waited(slot, cycle + 1)

    def look(self, cycle: int, busy_until: int, coming: Iterable[Packet]) -> None:
        """Before all that follows: until when the output is busy with its last offer, and heads that come."""
        self._free_from[self._last] = busy_until + 1
        for packet in coming:
            if packet.visible_from <= cycle:
                self._seen_from[packet.slot] = min(self._seen_from[packet.slot], packet.visible_from)

    def read(self, slot: int, cycle: int) -> int:
        """The value visible in a cycle."""
        return min(self._values[slot] + self._waited(slot, cycle), _VL_MAX)

    def write(self, slot: int, cycle: int, value: int) -> None:
        """A write visible in a cycle; too large a value is ignored."""
        if value <= _VL_MAX:
            self._values[slot] = value - self._waited(slot, cycle)

    def settle(self, cycle: int) -> None:
        """Count what is visible in a cycle, in which ticks begin anew, or the port is not Active any more."""
        for slot in range(len(self._values)):
            self._values[slot] += self._waited(slot, cycle)
