"""A port's counters (IBTA vol 1, 16.1.3.5 and 16.1.4.11; docs/pipeline.md, section 10, management.md, section 6)."""

from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import PortAccess
from rtl.restoration import restored_write_port
from wire.registers import COUNTER_WIDTHS, DATA_BITS, DETAIL_BITS, HIGH_OF_COUNTER, Counter, Detail, PortRegister

__all__ = [
    "AMOUNTS",
    "COUNTER_VALUES",
    "COUNTS",
    "NARROW_COUNTERS",
    "WIDE_AMOUNTS",
    "WIDE_COUNTS",
    "PortCounters",
    "WideCounters",
]

_WIDTHS: Final[dict[Counter | Detail, int]] = {
    **{counter: width for counter, width in COUNTER_WIDTHS.items() if counter not in HIGH_OF_COUNTER},
    **dict.fromkeys(Detail, DETAIL_BITS),
}

NARROW_COUNTERS: Final = tuple(_WIDTHS)
"""Those of 32 bits at most."""

COUNTS = data.StructLayout({counter.name: 1 for counter in _WIDTHS})
"""Which counters move in a cycle."""

AMOUNTS = data.StructLayout(
    {Counter.LINK_ERROR_RECOVERY.name: 4, Counter.RCV_ERRORS.name: 2, Detail.LOCAL_PHYSICAL_ERRORS.name: 2}
)
"""By how much those counters move that do not move by 1: the watchdogs of 8 VLs, or link and agent, at once."""

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


_COUNTERS: Final = tuple(HIGH_OF_COUNTER)
_NUMBER_BITS: Final = (len(_COUNTERS) - 1).bit_length()

WIDE_COUNTS = data.StructLayout({counter.name: 1 for counter in _COUNTERS})
"""Which counters move in a cycle."""

WIDE_AMOUNTS = data.StructLayout({Counter.XMIT_DATA.name: 12, Counter.RCV_DATA.name: 12})
"""By how much those counters move that do not move by 1."""

_LOWEST: Final = 16
"""Bits of a counter that have an adder of their own: all in which an amount counts, and enough to carry rarely."""

_ABOVE: Final = 2 * DATA_BITS - _LOWEST


class WideCounters(wiring.Component):
    """The four counters of one port. They stop at all ones.

    Members:
        counts, amounts: what is counted in this cycle, visible in the next.
        reg: an access to the port. A write sets the counter, whatever is counted in the cycle.
        value: in the cycle after a read what is visible of a counter, or of EXTENDED_LOW; else 0.
    """

    counts: In(WIDE_COUNTS)
    amounts: In(WIDE_AMOUNTS)
    reg: In(PortAccess)
    value: Out(DATA_BITS)

    def elaborate(self, platform: object) -> Module:
        """The lowest bits count in registers of their own, each with an adder.

        What a cycle counts is added in the next, in which it already shows. All bits above the lowest are in one memory
        with one adder. What carries into them is owed until the memory has a cycle for it, one in which the counter is
        read or nothing is: long before it carries again, unless the bus gives accesses to other counters of the port in
        each of thousands of cycles.
        """
        m = Module()
        reg, extended_low = self.reg, Signal(DATA_BITS)
        numbers = range(len(_COUNTERS))

        # An access: the registers of lower and of upper halves are in the counters' order from a multiple of 4 on.
        number = reg.offset[:_NUMBER_BITS]

        def of_block(first: int) -> Value:
            return reg.select & (reg.offset[_NUMBER_BITS:] == first >> _NUMBER_BITS)

        whole, high = of_block(min(HIGH_OF_COUNTER)), of_block(min(HIGH_OF_COUNTER.values()))
        low = reg.select & (reg.offset == PortRegister.EXTENDED_LOW)
        reads_whole, reads_high, reads_low = Signal(), Signal(), Signal()
        read_number = Signal(_NUMBER_BITS)
        m.d.sync += [
            reads_whole.eq(whole & reg.read),
            reads_high.eq(high & reg.read),
            reads_low.eq(low & reg.read),
            read_number.eq(number),
        ]
        sets, sets_high = Signal(), Signal()
        given = Signal(2 * DATA_BITS)
        m.d.comb += [
            sets.eq((whole | high) & reg.write),
            sets_high.eq(high),
            given.eq(Mux(sets_high, Cat(extended_low, reg.wdata), reg.wdata)),
        ]

        # The bits above: of the counter that is read, else of the first that was owed something before this cycle, so
        # that the choice does not wait for the adders.
        m.submodules.memory = memory = Memory(shape=_ABOVE, depth=len(_COUNTERS), init=[])
        writer = restored_write_port(m, memory, lambda _counter: Const(0, _ABOVE))
        reader = memory.read_port(domain="comb")
        owed, still_owed, full = (Signal(len(_COUNTERS), name=name) for name in ("owed", "still_owed", "full"))
        at, first_owed = Signal(_NUMBER_BITS), Signal(_NUMBER_BITS)
        here = Signal(len(_COUNTERS))
        owes, stops = Signal(), Signal()
        above = Signal(_ABOVE)
        for counter in reversed(numbers):
            with m.If(still_owed[counter]):
                m.d.comb += first_owed.eq(counter)
        m.d.comb += [
            at.eq(Mux(reads_whole | reads_high, read_number, first_owed)),
            here.eq(Cat(at == counter for counter in numbers)),
            owes.eq((owed & here).any()),
            stops.eq((owed & full & here).any()),
            reader.addr.eq(at),
            above.eq(reader.data + owes),
            writer.en.eq(sets | (owes & ~stops)),
            writer.addr.eq(Mux(sets, number, at)),
            writer.data.eq(Mux(sets, given[_LOWEST:], above)),
        ]
        with m.If(writer.en):
            m.d.sync += full.bit_select(writer.addr, 1).eq(writer.data.all())

        # The lowest bits, and what is owed above them.
        lowest = []
        for counter, register in enumerate(_COUNTERS):
            amount = self.amounts[register.name] if register.name in dict(iter(WIDE_AMOUNTS)) else Const(1, 1)
            counted = Signal.like(amount, name=f"{register.name}_counted")
            kept = Signal(_LOWEST, name=f"{register.name}_kept")
            following = Signal(_LOWEST + 1, name=f"{register.name}_following")
            m.d.comb += [following.eq(kept + counted), owed[counter].eq(still_owed[counter] | following[_LOWEST])]
            m.d.sync += [
                counted.eq(Mux(self.counts[register.name], amount, 0)),
                kept.eq(following),
                still_owed[counter].eq(owed[counter] & (sets | ~here[counter])),
            ]
            with m.If(stops & here[counter]):
                m.d.sync += [kept.eq(~0), counted.eq(0)]
            with m.If(sets & (number == counter)):
                m.d.sync += [kept.eq(given), counted.eq(0), still_owed[counter].eq(0)]
            lowest.append(following[:_LOWEST])

        # What is read. Whether all of it is ones is known without waiting for the sum.
        lower, upper = Signal(DATA_BITS), above[-DATA_BITS:]
        has_upper, ones = Signal(), Signal()
        m.d.comb += [
            lower.eq(Cat(Array(lowest)[at], above)),
            has_upper.eq(reader.data[-DATA_BITS:].any() | (owes & reader.data[:-DATA_BITS].all())),
            ones.eq((reads_whole & (has_upper | stops)) | (reads_high & stops)),
            self.value.eq(
                Mux(reads_whole, lower, 0)
                | Mux(reads_high, upper, 0)
                | Mux(reads_low, extended_low, 0)
                | ones.replicate(DATA_BITS)
            ),
        ]
        with m.If(reads_high):
            m.d.sync += extended_low.eq(lower | stops.replicate(DATA_BITS))
        with m.If(low & reg.write):
            m.d.sync += extended_low.eq(reg.wdata)
        return m
