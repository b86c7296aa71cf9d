"""Port counters (docs/pipeline.md, sections 8.3 and 10)."""

from wire.registers import COUNTER_WIDTHS, Counter

from .kernel import Kernel

__all__ = ["Counters", "XmitWait"]

_LATE_LIMIT = 64
_XMIT_PKTS, _XMIT_DATA = Counter.XMIT_PKTS, Counter.XMIT_DATA
_RCV_PKTS, _RCV_DATA = Counter.RCV_PKTS, Counter.RCV_DATA


class XmitWait:
    """PortXmitWait: ticks in each cycle of which the output waited, by interval arithmetic.

    Attributes:
        tick: length of a tick in cycles.
    """

    __slots__ = ("_base", "_counted", "_since", "_value", "tick")

    def __init__(self, tick: int) -> None:
        self.tick = tick
        self._base = 0
        self._counted = 0  # ticks since base that are already in the value, or can no longer be
        self._since: int | None = None
        self._value = 0

    @property
    def waiting(self) -> bool:
        """True if the output waits, from some cycle on."""
        return self._since is not None

    def _count(self, cycle: int) -> None:
        """Count the ticks that are over before a cycle."""
        over = (cycle - self._base) // self.tick
        if self._since is not None:
            first = max(self._counted, -((self._base - self._since) // self.tick))
            self._value += max(0, over - first)
        self._counted = max(self._counted, over)

    def begin(self, cycle: int) -> None:
        """The output waits from this cycle on."""
        if self._since is None:
            self._count(cycle)
            self._since = cycle

    def end(self, cycle: int) -> None:
        """The output waits no longer from this cycle on."""
        if self._since is not None:
            if cycle > self._since:
                self._count(cycle)
            self._since = None

    def read(self, cycle: int) -> int:
        """The value visible in a cycle."""
        self._count(cycle)
        return self._value

    def write(self, cycle: int, value: int) -> None:
        """A write visible in a cycle."""
        self._count(cycle)
        self._value = value

    def set_tick(self, cycle: int, tick: int) -> None:
        """Ticks of this length begin in this cycle."""
        self._count(cycle)
        self.tick = tick
        self._base = cycle
        self._counted = 0


class Counters:
    """A port's counters. They stop at all ones; as they only ever grow, reading stops them.

    Attributes:
        xmit_wait: PortXmitWait.
    """

    __slots__ = ("_kernel", "_late", "_values", "xmit_wait")

    def __init__(self, kernel: Kernel, tick: int) -> None:
        self._kernel = kernel
        self._values = dict.fromkeys(COUNTER_WIDTHS, 0)
        self._late: list[tuple[int, Counter, int]] = []
        self.xmit_wait = XmitWait(tick)

    def add(self, counter: Counter, amount: int = 1) -> None:
        """An increment visible in the current cycle; not after a read or write of this cycle."""
        self._values[counter] += amount

    def sent(self, rows: int) -> None:
        """A packet with this end row was sent, visible in the current cycle."""
        values = self._values
        values[_XMIT_PKTS] += 1
        values[_XMIT_DATA] += rows

    def received(self, rows: int) -> None:
        """A packet with this end row was received, visible in the next cycle."""
        cycle = self._kernel.now + 1
        late = self._late
        if len(late) >= _LATE_LIMIT:
            self._settle(cycle - 1)
            late = self._late
        late.append((cycle, _RCV_PKTS, 1))
        late.append((cycle, _RCV_DATA, rows))

    def add_after(self, cycles: int, counter: Counter, amount: int = 1) -> None:
        """An increment visible from some cycles after the current one on."""
        now = self._kernel.now
        if len(self._late) >= _LATE_LIMIT:
            self._settle(now)
        self._late.append((now + cycles, counter, amount))

    def _settle(self, cycle: int) -> None:
        late = self._late
        self._late = [entry for entry in late if entry[0] > cycle]
        for visible, counter, amount in late:
            if visible <= cycle:
                self._values[counter] += amount

    def read(self, cycle: int, counter: Counter) -> int:
        """The value visible in a cycle."""
        self._settle(cycle)
        value = self.xmit_wait.read(cycle) if counter is Counter.XMIT_WAIT else self._values[counter]
        return min(value, (1 << COUNTER_WIDTHS[counter]) - 1)

    def write(self, cycle: int, counter: Counter, value: int) -> None:
        """A write visible in a cycle; an increment in that cycle is lost."""
        if value >> COUNTER_WIDTHS[counter]:
            return
        self._settle(cycle)
        if counter is Counter.XMIT_WAIT:
            self.xmit_wait.write(cycle, value)
        else:
            self._values[counter] = value
