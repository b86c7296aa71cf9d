"""The lease of a key that was violated (docs/management.md, sections 4 and 7; IBTA vol 1, 14.2.4)."""

from amaranth.hdl import Module, Mux, Signal
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

        It expires in the last cycle of the last one, and that cycle already sees it. What it begins with is loaded in
        every cycle in which it may begin: that it does is known late, and says no more than that it runs.
        """
        m = Module()
        runs, loads = Signal(), Signal()
        seconds = Signal(self._period_bits)  # left, this one included
        is_last = Signal()
        second = Signal(DATA_BITS)
        cycles = Signal(DATA_BITS)  # of this second, the next one included
        ends, next_ends = Signal(), Signal()  # this is the last cycle of a second; the next one is
        m.d.comb += [
            self.expired.eq(runs & ends & is_last),
            loads.eq(~runs | self.expired),
            next_ends.eq(Mux(loads, self.second == 1, cycles == second)),
        ]
        m.d.sync += [ends.eq(next_ends), cycles.eq(Mux(next_ends, 1, Mux(loads, 2, cycles + 1)))]
        with m.If(loads):
            m.d.sync += [seconds.eq(self.period), is_last.eq(self.period == 1), second.eq(self.second)]
        with m.Elif(ends):
            m.d.sync += [seconds.eq(seconds - 1), is_last.eq(seconds == 2)]
        with m.If(loads & self.violated):
            m.d.sync += runs.eq(self.period != 0)
        with m.Elif(self.stops | self.expired):
            m.d.sync += runs.eq(0)
        return m
