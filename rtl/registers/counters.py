"""A port's counters (IBTA vol 1, 16.1.3.5 and 16.1.4; docs/pipeline.md, section 10, management.md, section 6)."""

from collections.abc import Iterable, Sequence
from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import PortAccess
from rtl.restoration import restored_write_port
from rtl.rotation import number_of
from rtl.widths import CONSTRAINTS_BITS
from wire.registers import (
    COUNTER_WIDTHS,
    DATA_BITS,
    DETAIL_BITS,
    HIGH_OF_COUNTER,
    Counter,
    Detail,
    PacketCounter,
    PortRegister,
)

__all__ = ["AMOUNTS", "COUNTS", "PortCounters"]

_WIDTHS: Final[dict[Counter | PacketCounter | Detail, int]] = {
    **{counter: COUNTER_WIDTHS[counter] for counter in Counter},
    **dict.fromkeys(PacketCounter, DATA_BITS),
    **dict.fromkeys(Detail, DETAIL_BITS),
}
"""Of a counter's register; those of `HIGH_OF_COUNTER` have as many bits again above it."""

_PLACES: Final = (*HIGH_OF_COUNTER, *(counter for counter in _WIDTHS if counter not in HIGH_OF_COUNTER))
"""The counters in the order of their turns; those of 64 bits are the first."""

_WIDE: Final = len(HIGH_OF_COUNTER)
_WIDE_BITS: Final = (_WIDE - 1).bit_length()

COUNTS = data.StructLayout({counter.name: 1 for counter in _PLACES})
"""Which counters move in a cycle."""

AMOUNTS = data.StructLayout(
    {
        Counter.XMIT_DATA.name: 12,
        Counter.RCV_DATA.name: 12,
        Counter.LINK_ERROR_RECOVERY.name: 4,
        Counter.RCV_ERRORS.name: 2,
        Counter.XMIT_CONSTRAINT_ERRORS.name: CONSTRAINTS_BITS,
        Detail.LOCAL_PHYSICAL_ERRORS.name: 2,
    }
)
"""By how much those counters move that do not move by 1: words, the watchdogs of 15 VLs, link and agent, or the
packets of all other ports, at once."""

_WAITING_BITS: Final = 5
"""Beyond those of an amount: of what a counter has counted since its last turn."""


class PortCounters(wiring.Component):
    """The counters of one port. They stop at all ones.

    Members:
        counts, amounts: what is counted in this cycle, visible in the next.
        reg: an access to the port. A write sets the counter, whatever is counted in the cycle. A value that the
            counter cannot hold is ignored.
        value: in the cycle after a read what is visible of a counter, or of EXTENDED_LOW; else 0.
    """

    counts: In(COUNTS)
    amounts: In(AMOUNTS)
    reg: In(PortAccess)
    value: Out(DATA_BITS)

    def elaborate(self, platform: object) -> Module:
        """All are in one memory with one adder, and have a turn at it each while there is something to add.

        What a counter has counted since its last turn waits in a few bits of its own. An access takes the turn of its
        cycle: nothing is lost unless most of 63 cycles have an access to the port's counters.
        """
        m = Module()
        reg, places = self.reg, range(len(_PLACES))

        # An access: to which counter, to its upper half.
        place, number = Signal(len(places)), Signal(places)
        high, low, sets = Signal(), Signal(), Signal()
        too_large = [
            place[at] & reg.wdata[_WIDTHS[counter] :].any()
            for at, counter in enumerate(_PLACES)
            if _WIDTHS[counter] < DATA_BITS
        ]
        m.d.comb += [
            place.eq(Cat(reg.select & _is_one_of(reg.offset, _registers(counter)) for counter in _PLACES)),
            number.eq(number_of(place)),
            high.eq(_is_one_of(reg.offset, HIGH_OF_COUNTER.values())),
            low.eq(reg.select & (reg.offset == PortRegister.EXTENDED_LOW)),
            sets.eq(place.any() & reg.write & ~Cat(too_large).any()),
        ]
        reads, reads_high, reads_low = Signal(), Signal(), Signal()
        m.d.sync += [
            reads.eq(place.any() & reg.read),
            reads_high.eq(place.any() & reg.read & high),
            reads_low.eq(low & reg.read),
        ]

        # Turns: of the counter that was read, else of all, once each since something was counted.
        # Whose it is is a register: much looks at it.
        turn, following, at = Signal(places), Signal(places), Signal(places)
        left = Signal(range(len(places) + 1))
        adds, is_wide = Signal(), Signal()
        m.d.comb += [adds.eq((reads | (left != 0)) & ~sets), is_wide.eq(at < _WIDE), following.eq(turn)]
        with m.If(adds & ~reads):
            m.d.comb += following.eq(Mux(turn == places[-1], 0, turn + 1))
            m.d.sync += left.eq(left - 1)
        m.d.sync += [turn.eq(following), at.eq(Mux(place.any() & reg.read, number, following))]
        with m.If(self.counts.as_value().any()):
            m.d.sync += left.eq(len(places))

        # What waits, and what it makes of the counter.
        waiting = self._wait(m, Mux(adds, 1 << at, 0), Mux(sets, place, 0))
        lower, upper = (Memory(shape=DATA_BITS, depth=depth, init=[]) for depth in (len(places), _WIDE))
        m.submodules.lower, m.submodules.upper = lower, upper
        kept, kept_above = lower.read_port(domain="comb"), upper.read_port(domain="comb")
        value, above, exceeds = Signal(DATA_BITS), Signal(DATA_BITS), Signal()
        m.d.comb += [kept.addr.eq(at), kept_above.addr.eq(at[:_WIDE_BITS])]
        totals = _total(m, at, kept.data, kept_above.data, waiting)
        m.d.comb += [signal.eq(total) for signal, total in zip((value, above, exceeds), totals, strict=True)]

        # What is written: that, or what a write sets; the upper half takes the lower one from EXTENDED_LOW.
        extended_low = Signal(DATA_BITS)
        writer, writer_above = (
            restored_write_port(m, memory, lambda _: Const(0, DATA_BITS)) for memory in (lower, upper)
        )
        m.d.comb += [
            writer.en.eq(sets | adds),
            writer.addr.eq(Mux(sets, number, at)),
            writer.data.eq(Mux(sets, Mux(high, extended_low, reg.wdata), value)),
            writer_above.en.eq((sets & place[:_WIDE].any()) | (adds & is_wide)),
            writer_above.addr.eq(Mux(sets, number, at)),
            writer_above.data.eq(Mux(sets, Mux(high, reg.wdata, 0), above)),
        ]

        # What is read. Of 64 bits the register of 32 shows all ones if they are more.
        m.d.comb += self.value.eq(
            Mux(reads & ~reads_high, value | (is_wide & exceeds).replicate(DATA_BITS), 0)
            | Mux(reads_high, above, 0)
            | Mux(reads_low, extended_low, 0)
        )
        with m.If(reads_high):
            m.d.sync += extended_low.eq(value)
        with m.If(low & reg.write):
            m.d.sync += extended_low.eq(reg.wdata)
        return m

    def _wait(self, m: Module, added: Value, sets: Value) -> list[Signal]:
        """What each counter has counted since it was added or set, the cycle before this included."""
        waiting = []
        for place, counter in enumerate(_PLACES):
            amount = self.amounts[counter.name] if counter.name in dict(iter(AMOUNTS)) else Const(1, 1)
            waits = Signal(_WAITING_BITS + len(amount), name=f"{counter.name}_waits")
            m.d.sync += waits.eq(Mux(added[place], 0, waits) + Mux(self.counts[counter.name], amount, 0))
            with m.If(sets[place]):
                m.d.sync += waits.eq(0)
            waiting.append(waits)
        return waiting


def _registers(counter: Counter | PacketCounter | Detail) -> list[int]:
    """Its own, and that of its upper half."""
    return [counter, *(high for one, high in HIGH_OF_COUNTER.items() if one == counter)]


def _is_one_of(offset: Value, registers: Iterable[int]) -> Value:
    return Cat(offset == register for register in registers).any()


def _total(
    m: Module, at: Value, kept: Value, kept_above: Value, waiting: Sequence[Signal]
) -> tuple[Value, Value, Value]:
    """The counter at this place: what is kept of both halves and what waits together, or all ones if that is more.

    And whether its upper half is not 0. What becomes of that with a carry does not wait for it.
    """
    bits = [2 * DATA_BITS if counter in HIGH_OF_COUNTER else _WIDTHS[counter] for counter in _PLACES]
    total, carried_above = Signal(DATA_BITS + 1), Signal(DATA_BITS + 1)
    m.d.comb += [total.eq(kept + Array(waiting)[at]), carried_above.eq(kept_above + 1)]
    carry = total[-1]
    ones: Value = Const(0, DATA_BITS)
    too_much: Value = Const(0)
    for width in sorted(set(bits)):
        places = [place for place, one in enumerate(bits) if one == width]
        longest = max(width, *(len(waiting[place]) for place in places)) + 1
        beyond = total[width:longest].any() if width <= DATA_BITS else carry & carried_above[-1]
        over = Signal(name=f"over_{width}")
        m.d.comb += over.eq(Cat(at == place for place in places).any() & beyond)
        ones |= Mux(over, (1 << min(width, DATA_BITS)) - 1, 0)
        too_much |= over
    above = Mux(carry, carried_above, kept_above) | too_much.replicate(DATA_BITS)
    return Mux(too_much, ones, total)[:DATA_BITS], above[:DATA_BITS], carry | kept_above.any()
