"""What is counted once it has lasted: errors that pile up, ticks of waiting (docs/pipeline.md, sections 8.3 and 10)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.timer import Timer
from rtl.registers.port_registers import DurationSignature
from wire.registers import PortRegister

__all__ = ["BufferOverruns", "LinkIntegrity", "XmitWait"]

_THRESHOLD_BITS = 4


class LinkIntegrity(wiring.Component):
    """LocalLinkIntegrityErrors: physical errors beyond a threshold.

    Members:
        error: a physical error in this cycle.
        threshold: LOCAL_PHY_ERRORS.
        exceeded: this error exceeds it; the count starts again.
    """

    error: In(1)
    threshold: In(_THRESHOLD_BITS)
    exceeded: Out(1)

    def elaborate(self, platform: object) -> Module:
        """Build the count."""
        m = Module()
        count = Signal(_THRESHOLD_BITS)
        m.d.comb += self.exceeded.eq(self.error & (count >= self.threshold))
        with m.If(self.exceeded):
            m.d.sync += count.eq(0)
        with m.Elif(self.error):
            m.d.sync += count.eq(count + 1)
        return m


class BufferOverruns(wiring.Component):
    """ExcessiveBufferOverrunErrors: consecutive flow control periods with an overrun each.

    Members:
        overrun: a packet found no room, in this cycle.
        period_over: this is the last cycle of a period.
        restart: the next cycle is the first of a period, whatever became of the one before.
        clear: no period counts any longer; given with `restart`.
        threshold: OVERRUN_ERRORS; 0 for never.
        exceeded: the threshold is reached, in the first cycle of the next period.
    """

    overrun: In(1)
    period_over: In(1)
    restart: In(1)
    clear: In(1)
    threshold: In(_THRESHOLD_BITS)
    exceeded: Out(1)

    def elaborate(self, platform: object) -> Module:
        """Build the count of periods."""
        m = Module()
        seen = Signal()  # an overrun in this period so far
        with m.If(self.period_over | self.restart):
            m.d.sync += seen.eq(0)
        with m.Elif(self.overrun):
            m.d.sync += seen.eq(1)

        judge = Signal()  # a period has just ended, `spoilt` if it had an overrun
        spoilt = Signal()
        m.d.sync += [judge.eq(self.period_over), spoilt.eq(seen | self.overrun)]

        periods = Signal(_THRESHOLD_BITS)
        reached = Signal(_THRESHOLD_BITS + 1)
        m.d.comb += [
            reached.eq(periods + 1),
            self.exceeded.eq(judge & spoilt & (self.threshold != 0) & (reached >= self.threshold)),
        ]
        with m.If(self.clear | self.exceeded | (judge & ~spoilt)):
            m.d.sync += periods.eq(0)
        with m.Elif(judge & ~periods.all()):
            m.d.sync += periods.eq(reached)
        return m


class XmitWait(wiring.Component):
    """Finds the ticks that were spent waiting.

    Args:
        those: how many may wait.

    Members:
        waiting: mask of those that wait in this cycle.
        tick: PortSamplesControl.Tick; a tick lasts a cycle more.
        waited: a tick has ended with the cycle before; mask of those that waited in each of its cycles. Who waits is
            known late.
    """

    def __init__(self, those: int) -> None:
        self._those = those
        super().__init__({"waiting": In(those), "tick": In(DurationSignature(PortRegister.TICK)), "waited": Out(those)})

    def elaborate(self, platform: object) -> Module:
        """Build the tick and what is seen of it."""
        m = Module()
        m.submodules.timer = timer = Timer(len(self.tick.length), first=0)
        m.d.comb += [
            timer.length.eq(self.tick.length),
            timer.run.eq(1),
            timer.restart.eq(self.tick.written),
        ]
        so_far = Signal(self._those, init=-1)  # those that have waited since the tick began
        with m.If(timer.last | timer.restart):
            m.d.sync += so_far.eq(-1)
        with m.Else():
            m.d.sync += so_far.eq(so_far & self.waiting)
        m.d.sync += self.waited.eq(Mux(timer.last, so_far & self.waiting, 0))
        return m
