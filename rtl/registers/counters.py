"""A port's counters (IBTA vol 1, 16.1.3.5; docs/pipeline.md, section 10)."""

from typing import Final

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import PortAccess
from wire.registers import COUNTER_WIDTHS, DATA_BITS, HIGH_OF_COUNTER, Counter

__all__ = ["AMOUNTS", "COUNTER_VALUES", "COUNTS", "PortCounters"]

_WIDTHS: Final = {counter: width for counter, width in COUNTER_WIDTHS.items() if counter not in HIGH_OF_COUNTER}

COUNTS = data.StructLayout({counter.name: 1 for counter in _WIDTHS})
"""Which counters move in a cycle."""

AMOUNTS = data.StructLayout({Counter.LINK_ERROR_RECOVERY.name: 4})
"""By how much those counters move that do not move by 1: the watchdogs of 8 VLs at once."""

COUNTER_VALUES = data.StructLayout({counter.name: width for counter, width in _WIDTHS.items()})


class PortCounters(wiring.Component):
    """The counters of one port but those of 64 bits. They stop at all ones.

    Members:
        counts, amounts: what is counted in this cycle, visible in the next.
        reg: an access to the port. A write sets the counter, whatever is counted in the cycle. A value that the
            counter cannot hold is ignored.
        values: the counters.
    """

    counts: In(COUNTS)
    amounts: In(AMOUNTS)
    reg: In(PortAccess)
    values: Out(COUNTER_VALUES)

    def elaborate(self, platform: object) -> Module:
        """Build the counters. What a cycle counts is added in the next, in which it already shows."""
        m = Module()
        reg, varying = self.reg, dict(iter(AMOUNTS))
        amounts = Signal(AMOUNTS)
        m.d.sync += amounts.eq(self.amounts)
        for counter, width in _WIDTHS.items():
            kept = Signal(width, name=f"{counter.name}_kept")
            counted = Signal(name=f"{counter.name}_counted")
            value = self.values[counter.name]
            if counter.name in varying:
                following = Signal(width + 1, name=f"{counter.name}_following")
                m.d.comb += [
                    following.eq(kept + Mux(counted, amounts[counter.name], 0)),
                    value.eq(following | following[width].replicate(width)),
                ]
            else:
                m.d.comb += value.eq(kept + (counted & ~kept.all()))
            m.d.sync += [kept.eq(value), counted.eq(self.counts[counter.name])]
            fits = ~reg.wdata[width:].any() if width < DATA_BITS else 1
            with m.If(reg.select & reg.write & (reg.offset == counter) & fits):
                m.d.sync += [kept.eq(reg.wdata), counted.eq(0)]
        return m
