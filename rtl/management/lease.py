"""The lease of a key that was violated (docs/management.md, sections 4 and 7; IBTA vol 1, 14.2.4)."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from wire.registers import DATA_BITS

__all__ = ["Lease"]


class Lease(wiring.Component):
    """Runs from a violation on, until a good key stops it or its period is over.

    Args:
        period_bits: of the period.

    Members:
        period: of the key, in seconds, 0 if there is no lease; `second`: register LEASE_SECOND, cycles.
        stops, violated: a good key came in this cycle; a violation did, which starts a lease that does not run.
        expired: it is over in this cycle.
    """

    def __init__(self, period_bits: int) -> None:
        self._period_bits = period_bits
        super().__init__(
            {
                "period": In(period_bits),
                "second": In(DATA_BITS),
                "stops": In(1),
                "violated": In(1),
                "expired": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Whole seconds, of the length that they had when it began.

        It expires in the last cycle of the last one, and that cycle already sees it.
        """
        m = Module()
        seconds = Signal(self._period_bits)  # left, this one included
        runs, last = Signal(), Signal()  # there are some, there is one
        second = Signal(DATA_BITS)
        cycles = Signal(DATA_BITS)  # left of this second, this one included
        ends = Signal()  # it is 1
        m.d.comb += self.expired.eq(runs & last & ends)
        with m.If(runs):
            m.d.sync += [cycles.eq(cycles - 1), ends.eq(cycles == 2)]
            with m.If(ends):
                m.d.sync += [cycles.eq(second), ends.eq(second == 1), seconds.eq(seconds - 1)]
                m.d.sync += [runs.eq(~last), last.eq(seconds == 2)]
        with m.If(self.stops):
            m.d.sync += runs.eq(0)
        with m.If(self.violated & (~runs | self.expired)):
            m.d.sync += [
                runs.eq(self.period != 0),
                last.eq(self.period == 1),
                seconds.eq(self.period),
                second.eq(self.second),
                cycles.eq(self.second),
                ends.eq(self.second == 1),
            ]
        return m
