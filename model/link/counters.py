"""Port counters (docs/pipeline.md, section 10; docs/management.md, section 6)."""

from typing import Final

from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN
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
from .xmit_wait import Ticks, XmitWait

__all__ = ["COUNTED_WIDTHS", "Counted", "Counters"]

Counted = Counter | Detail | PacketCounter
"""The register of a counter."""

COUNTED_WIDTHS: Final[dict[Counted, int]] = {
    **{counter: COUNTER_WIDTHS[counter] for counter in Counter},
    **dict.fromkeys(Detail, DETAIL_BITS),
    **dict.fromkeys(PacketCounter, DATA_BITS),
}
"""Bits of each that a write may set."""

_UPDATE_ERRORS: Final = 3
"""The most that is counted for a VL in FLOW_CTL_UPDATE_ERRORS."""
_LATE_LIMIT: Final = 64
_WHOLE_MAX: Final = (1 << 2 * DATA_BITS) - 1
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


def _update_errors_at(vl: int) -> int:
    """The lower of a VL's two bits in FLOW_CTL_UPDATE_ERRORS."""
    return DATA_BITS - 2 - 2 * vl


class Counters:
    """A port's counters. They stop at all ones; as they only grow, reads apply that limit.

    Attributes:
        ticks: in which waiting is counted.
        xmit_wait: PortXmitWait.
        local_phy_errors: LOCAL_PHY_ERRORS.
        extended_low: the register EXTENDED_LOW.
    """

    __slots__ = (
        "_flow_ctl_update_errors",
        "_kernel",
        "_late",
        "_physical_errors",
        "_received",
        "_sent",
        "_values",
        "extended_low",
        "local_phy_errors",
        "ticks",
        "xmit_wait",
    )

    def __init__(self, kernel: Kernel, vls: int, epoch: int = 0) -> None:
        self._kernel = kernel
        self._values: dict[Counted, int] = dict.fromkeys(COUNTED_WIDTHS, 0)
        self._late: list[tuple[int, Counted]] = []
        self._sent: list[_Packet] = []
        self._received: list[_Packet] = []
        self._physical_errors = 0
        self._flow_ctl_update_errors = [0] * vls
        self.ticks = Ticks(PORT_RESET_VALUES[PortRegister.TICK] + 1, epoch)
        self.xmit_wait = XmitWait(self.ticks)
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

    def watchdog_expired(self, vl: int) -> None:
        """That of a data VL, visible in the current cycle; not after a read or write of this cycle."""
        self.add(Counter.LINK_ERROR_RECOVERY)
        self._flow_ctl_update_errors[vl] += 1

    def read_flow_ctl_update_errors(self) -> int:
        """FLOW_CTL_UPDATE_ERRORS: two bits for each data VL, VL 0's the highest."""
        errors = self._flow_ctl_update_errors
        return sum(min(count, _UPDATE_ERRORS) << _update_errors_at(vl) for vl, count in enumerate(errors))

    def write_flow_ctl_update_errors(self, value: int, chosen: int) -> None:
        """A write for the VLs whose bit in a mask is 1, visible in the current cycle."""
        for vl in range(len(self._flow_ctl_update_errors)):
            if chosen >> vl & 1:
                self._flow_ctl_update_errors[vl] = value >> _update_errors_at(vl) & _UPDATE_ERRORS

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
        left: list[_Packet] = []
        all_rows = multicasts = 0
        for visible, rows, dlid in packets:
            if visible > cycle:
                left.append((visible, rows, dlid))
            else:
                all_rows += rows
                if LID_MULTICAST_MIN <= dlid <= LID_MULTICAST_MAX:
                    multicasts += 1
        values, counted = self._values, len(packets) - len(left)
        values[of_all] += counted
        values[data] += all_rows
        values[unicast] += counted - multicasts
        values[multicast] += multicasts
        return left

    def read(self, cycle: int, counter: Counted) -> int:
        """What a counter's register shows in a cycle."""
        self._settle(cycle)
        value = self.xmit_wait.read(cycle) if counter is Counter.XMIT_WAIT else self._values[counter]
        return min(value, (1 << COUNTED_WIDTHS[counter]) - 1)

    def write(self, cycle: int, counter: Counted, value: int) -> None:
        """A write visible in a cycle; an increment in that cycle is lost."""
        if value >> COUNTED_WIDTHS[counter]:
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
        self._settle(cycle)
        self._values[counter] = value
