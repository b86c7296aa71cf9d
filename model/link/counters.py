"""Port counters (docs/pipeline.md, sections 8.3 and 10; docs/management.md, section 6)."""

from typing import Final

from wire.codes import is_multicast_lid
from wire.registers import (
    COUNTER_WIDTHS,
    DATA_BITS,
    DETAIL_BITS,
    PORT_RESET_VALUES,
    Counter,
    Detail,
    PacketCounter,
    PortRegister,
)

from ..kernel import Kernel

__all__ = ["Counted", "Counters", "XmitWait"]

Counted = Counter | Detail | PacketCounter
"""The register of a counter."""

_WIDTHS: Final[dict[Counted, int]] = {
    **{counter: COUNTER_WIDTHS[counter] for counter in Counter},
    **dict.fromkeys(Detail, DETAIL_BITS),
    **dict.fromkeys(PacketCounter, DATA_BITS),
}
_LATE_LIMIT = 64
_WHOLE_MAX = (1 << 2 * DATA_BITS) - 1
_SENT: Final = (
    Counter.XMIT_PKTS,
    Counter.XMIT_DATA,
    PacketCounter.UNICAST_XMIT_PKTS,
    PacketCounter.MULTICAST_XMIT_PKTS,
)
_RECEIVED: Final = (
    Counter.RCV_PKTS,
    Counter.RCV_DATA,
    PacketCounter.UNICAST_RCV_PKTS,
    PacketCounter.MULTICAST_RCV_PKTS,
)

_Packet = tuple[int, int, int]
"""One that is not counted yet: the cycle in which it is, its end row, its DLID."""


class XmitWait:
    """PortXmitWait: ticks in each cycle of which the output waited, by interval arithmetic.

    Attributes:
        since: cycle from which on the output waits, None if it does not.
        tick: length of a tick in cycles.
    """

    __slots__ = ("_base", "_value", "since", "tick")

    def __init__(self, tick: int, epoch: int = 0) -> None:
        self.tick = tick
        self.since: int | None = None
        self._base = epoch  # a tick begins in this cycle
        self._value = 0  # without the ticks since `since`

    def _ticks(self, cycle: int) -> int:
        """Ticks that ended before a cycle and were waited through since `since`."""
        if self.since is None:
            return 0
        first = -((self._base - self.since) // self.tick)
        return max(0, (cycle - self._base) // self.tick - first)

    def begin(self, cycle: int) -> None:
        """The output waits from this cycle on."""
        if self.since is None:
            self.since = cycle

    def end(self, cycle: int) -> None:
        """The output waits no longer from this cycle on."""
        self._value += self._ticks(cycle)
        self.since = None

    def read(self, cycle: int) -> int:
        """The value visible in a cycle."""
        return self._value + self._ticks(cycle)

    def write(self, cycle: int, value: int) -> None:
        """A write visible in a cycle."""
        self._value = value - self._ticks(cycle)

    def set_tick(self, cycle: int, tick: int) -> None:
        """Ticks of this length begin in this cycle."""
        self._value += self._ticks(cycle)
        if self.since is not None:
            self.since = max(self.since, cycle)
        self.tick = tick
        self._base = cycle


class Counters:
    """A port's counters. They stop at all ones; as they only grow, reads apply that limit.

    Attributes:
        xmit_wait: PortXmitWait.
        local_phy_errors: LOCAL_PHY_ERRORS.
        extended_low: the register EXTENDED_LOW.
    """

    __slots__ = (
        "_kernel",
        "_late",
        "_physical_errors",
        "_received",
        "_sent",
        "_values",
        "extended_low",
        "local_phy_errors",
        "xmit_wait",
    )

    def __init__(self, kernel: Kernel, epoch: int = 0) -> None:
        self._kernel = kernel
        self._values: dict[Counted, int] = dict.fromkeys(_WIDTHS, 0)
        self._late: list[tuple[int, Counted]] = []
        self._sent: list[_Packet] = []
        self._received: list[_Packet] = []
        self._physical_errors = 0
        self.xmit_wait = XmitWait(PORT_RESET_VALUES[PortRegister.TICK] + 1, epoch)
        self.local_phy_errors = PORT_RESET_VALUES[PortRegister.LOCAL_PHY_ERRORS]
        self.extended_low = 0

    def add(self, *counters: Counted) -> None:
        """Increments visible in the current cycle; not after a read or write of this cycle."""
        for counter in counters:
            self._values[counter] += 1

    def sent(self, cycle: int, rows: int, dlid: int) -> None:
        """A packet with this end row is sent, visible in a cycle ahead."""
        self._sent.append((cycle, rows, dlid))
        if len(self._sent) > _LATE_LIMIT:
            self._settle(self._kernel.now)

    def not_sent(self, cycle: int, rows: int, dlid: int) -> None:
        """Take back what `sent` was given; the cycle is still ahead."""
        self._sent.remove((cycle, rows, dlid))

    def received(self, cycle: int, rows: int, dlid: int) -> None:
        """A packet with this end row was received, visible in a cycle ahead. Without a header its DLID is 0."""
        self._received.append((cycle, rows, dlid))
        if len(self._received) > _LATE_LIMIT:
            self._settle(self._kernel.now)

    def add_after(self, cycles: int, *counters: Counted) -> None:
        """Increments visible from some cycles after the current one on."""
        now = self._kernel.now
        if len(self._late) >= _LATE_LIMIT:
            self._settle(now)
        self._late += [(now + cycles, counter) for counter in counters]

    def physical_error(self) -> None:
        """Count towards LocalLinkIntegrityErrors (section 10)."""
        self._physical_errors += 1
        if self._physical_errors > self.local_phy_errors:
            self._physical_errors = 0
            self.add_after(1, Counter.LOCAL_LINK_INTEGRITY_ERRORS)

    def _settle(self, cycle: int) -> None:
        """Count what is visible in a cycle."""
        for visible, counter in self._late:
            if visible <= cycle:
                self._values[counter] += 1
        self._late = [entry for entry in self._late if entry[0] > cycle]
        self._sent = self._count(self._sent, cycle, _SENT)
        self._received = self._count(self._received, cycle, _RECEIVED)

    def _count(
        self, packets: list[_Packet], cycle: int, counters: tuple[Counter, Counter, PacketCounter, PacketCounter]
    ) -> list[_Packet]:
        """Count the packets visible in a cycle: all, their data, unicast and multicast ones; returns the others."""
        of_all, data, unicast, multicast = counters
        values = self._values
        for seen, rows, dlid in packets:
            if seen <= cycle:
                values[of_all] += 1
                values[data] += rows
                values[multicast if is_multicast_lid(dlid) else unicast] += 1
        return [packet for packet in packets if packet[0] > cycle]

    def read(self, cycle: int, counter: Counted) -> int:
        """What a counter's register shows in a cycle."""
        self._settle(cycle)
        value = self.xmit_wait.read(cycle) if counter is Counter.XMIT_WAIT else self._values[counter]
        return min(value, (1 << _WIDTHS[counter]) - 1)

    def write(self, cycle: int, counter: Counted, value: int) -> None:
        """A write visible in a cycle; an increment in that cycle is lost."""
        if value >> _WIDTHS[counter]:
            return
        self._settle(cycle)
        if counter is Counter.XMIT_WAIT:
            self.xmit_wait.write(cycle, value)
        else:
            self._values[counter] = value

    def read_whole(self, cycle: int, counter: Counted) -> int:
        """The value of a counter of 64 bits, visible in a cycle."""
        self._settle(cycle)
        return min(self._values[counter], _WHOLE_MAX)

    def write_atomically(self, cycle: int, counter: Counted, value: int) -> None:
        """A write of its 64 bits visible in a cycle; an increment in that cycle is lost."""
        if value <= _WHOLE_MAX:
            self._settle(cycle)
            self._values[counter] = value
