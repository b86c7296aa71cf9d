"""Which trap is due (docs/management.md, section 5; IBTA vol 1, 13.4.9 and 14.2.5.1)."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from wire.port_info import PORT_INFO

__all__ = ["COUNT_BITS", "TRAPS", "Traps"]

TRAPS = 2
"""Each kind of node has two: one of its port or ports, and the M_Key's."""

COUNT_BITS = 32
"""The lower half of a TransactionID."""

_CODE_BITS = PORT_INFO["subnet_timeout"].width
_UNIT_BITS = 10
_TIMER_BITS = _UNIT_BITS + (1 << _CODE_BITS) - 1


class Traps(wiring.Component):
    """Traps by their place in turn.

    Members:
        events: something to tell, each makes its trap pending.
        repress, transaction: no trap of this TransactionID, of those named one-hot, is pending any more.
        subnet_timeout: the code.
        pending: some trap is, and the timer has run out.
        begin: a trap is taken up in this cycle, which is the one to be sent from the cycle after on: `sent`.
        start: its step 0 is in this cycle: the timer starts.
        count: events so far of `sent`.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "events": In(TRAPS),
                "repress": In(TRAPS),
                "transaction": In(COUNT_BITS),
                "subnet_timeout": In(_CODE_BITS),
                "pending": Out(1),
                "begin": In(1),
                "start": In(1),
                "sent": Out(1),
                "count": Out(COUNT_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What is pending, whose turn it is, and the timer between traps."""
        m = Module()
        pending = Signal(TRAPS)
        counts = [Signal(COUNT_BITS, name=f"count_{trap}") for trap in range(TRAPS)]
        for trap, count in enumerate(counts):
            with m.If(self.events[trap]):
                m.d.sync += [pending[trap].eq(1), count.eq(count + 1)]
            with m.Elif(self.repress[trap] & (count == self.transaction)):
                m.d.sync += pending[trap].eq(0)
        m.d.comb += self.count.eq(Array(counts)[self.sent])

        first = Signal()  # the first in turn
        with m.If(self.begin):
            chosen = Mux(first, pending[1], ~pending[0])
            m.d.sync += [self.sent.eq(chosen), first.eq(~chosen)]

        waits = Signal()
        left = Signal(_TIMER_BITS)
        m.d.sync += left.eq(left - 1)
        with m.If(left == 1):
            m.d.sync += waits.eq(0)
        with m.If(self.start):
            length = Signal(_TIMER_BITS)
            m.d.comb += length.eq((1 << _UNIT_BITS) << self.subnet_timeout)
            m.d.sync += [waits.eq(1), left.eq(length - 1)]
        m.d.comb += self.pending.eq(pending.any() & ~waits)
        return m
