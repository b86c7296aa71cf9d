"""PortXmitWait: ticks in which data had to wait (docs/pipeline.md, section 8.3)."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.timer import Timer
from rtl.registers.port_registers import DurationSignature
from wire.registers import PortRegister

__all__ = ["XmitWait"]


class XmitWait(wiring.Component):
    """Finds the ticks that were spent waiting.

    Members:
        waiting: the output waits in this cycle.
        tick: PortSamplesControl.Tick; a tick lasts a cycle more.
        waited: a tick ends with this cycle, and the output waited in each of its cycles.
    """

    waiting: In(1)
    tick: In(DurationSignature(PortRegister.TICK))
    waited: Out(1)

    def elaborate(self, platform: object) -> Module:
        """Build the tick and what is seen of it."""
        m = Module()
        m.submodules.timer = timer = Timer(len(self.tick.length) + 1)
        m.d.comb += [
            timer.length.eq(self.tick.length + 1),
            timer.run.eq(1),
            timer.restart.eq(self.tick.written),
        ]
        all_so_far = Signal(init=1)
        with m.If(timer.last | timer.restart):
            m.d.sync += all_so_far.eq(1)
        with m.Elif(~self.waiting):
            m.d.sync += all_so_far.eq(0)
        m.d.comb += self.waited.eq(timer.last & all_so_far & self.waiting)
        return m
