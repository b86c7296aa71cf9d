"""A port's counters (IBTA vol 1, 16.1.3.5 and 16.1.4; docs/pipeline.md, section 10, management.md, section 6)."""

from collections.abc import Iterable
from typing import Any, Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import PortAccess
from rtl.restoration import restored_write_port
from rtl.rotation import any_of, select
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

COUNTS = data.StructLayout({counter.name: 1 for counter in _WIDTHS})
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

_ROW_BITS: Final = 4
_COUNTER_ROWS: Final = {register >> _ROW_BITS for register in (*_WIDTHS, *HIGH_OF_COUNTER.values())}
(_COUNTERS, _HALVES, _DETAILS, _PACKETS) = sorted(_COUNTER_ROWS)
"""The registers of counters by the upper bits of their offsets: a place is little more than an offset.

Those of `Counter`; its last one, of 32 bits, and the upper halves of its last four; those of `Detail`; those of
`PacketCounter` and their upper halves.
"""

_PLACE_BITS: Final = 5
_DETAIL_PLACES: Final = 0x10
_XMIT_WAIT_PLACE: Final = 0x1A
_PACKET_PLACES: Final = 0x1C


def _place_of(counter: Counter | PacketCounter | Detail) -> int:
    """Where what is counted waits, and is kept."""
    row, column = divmod(counter, 1 << _ROW_BITS)
    return {
        _COUNTERS: column,
        _HALVES: _XMIT_WAIT_PLACE,
        _DETAILS: _DETAIL_PLACES | column,
        _PACKETS: _PACKET_PLACES | column,
    }[row]


_PLACES: Final = {_place_of(counter): counter for counter in _WIDTHS}

_NARROW_BITS: Final = DETAIL_BITS + 1
"""What is kept of every counter. Of one of 16 bits or less the highest says that it was exceeded."""

_WIDE: Final = {place for place, counter in _PLACES.items() if _WIDTHS[counter] == DATA_BITS}
_WIDE_BITS: Final = 2 * DATA_BITS + 1
"""What is kept of the others, PortXmitWait among them; the highest bit says that 64 were exceeded."""


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
        reg = self.reg

        # An access: to which counter, to its upper half. That it is to one of the counters' rows is known soonest.
        row, column = reg.offset[_ROW_BITS:], reg.offset[:_ROW_BITS]
        accesses, is_counter, high, low, sets = Signal(), Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            accesses.eq(reg.select & (reg.read | reg.write) & _is_one_of(row, sorted(_COUNTER_ROWS))),
            high.eq(_is_one_of(reg.offset, HIGH_OF_COUNTER.values())),
            is_counter.eq(reg.select & (_is_one_of(reg.offset, _WIDTHS) | high)),
            low.eq(reg.select & (reg.offset == PortRegister.EXTENDED_LOW)),
            sets.eq(is_counter & reg.write & ~self._too_large()),
        ]

        # Whose turn it is: of the counter accessed, else of all, once each since something was counted.
        turn, left = Signal(_PLACE_BITS), Signal(range(len(_PLACES) + 1))
        place, works = Signal(_PLACE_BITS), Signal()
        m.d.comb += [
            place.eq(Mux(accesses, _place(m, row, column), turn)),
            works.eq(accesses | (left != 0)),
        ]
        with m.If((place == turn) & (left != 0)):
            m.d.sync += [left.eq(left - 1), turn.eq(_following(turn))]
        with m.If(self.counts.as_value().any()):
            m.d.sync += left.eq(len(_PLACES))
        waited, and_one = self._wait(m, place, works, sets)

        # In the next cycle it is added to what is kept, or what a write gives to nothing. The upper half is given
        # together with the lower one, which EXTENDED_LOW has.
        extended_low, total = Signal(DATA_BITS), Signal(_WIDE_BITS)
        at, adds = Signal(_PLACE_BITS), Signal()
        kept, given, gives_above = Signal(_WIDE_BITS), Signal(2 * DATA_BITS), Signal()
        # The upper bits of all but the wide ones mean nothing.
        before = Cat(
            _kept(m, "narrow", (1 << _PLACE_BITS, place, at), total[:_NARROW_BITS], adds),
            _kept(
                m,
                "wide",
                (1 << _PLACE_BITS - 1, _wide_word(place), _wide_word(at)),
                total[_NARROW_BITS:],
                adds & _is_wide(at),
            ),
        )
        m.d.sync += [at.eq(place), adds.eq(works), gives_above.eq(sets & high & reg.wdata.any())]
        with m.If(sets):
            m.d.sync += [kept.eq(0), given.eq(Mux(high, Cat(extended_low, reg.wdata), reg.wdata))]
        with m.Else():
            # What is being added to it is not in the memory yet.
            m.d.sync += [kept.eq(Mux(adds & (place == at), total, before)), given.eq(0)]
        added = given | waited
        m.d.comb += total.eq(self._total(kept, added, and_one, _is_wide(at)))

        # What a read shows.
        shows, shows_high, shows_low = Signal(), Signal(), Signal()
        m.d.sync += [
            shows.eq(is_counter & reg.read & ~high),
            shows_high.eq(is_counter & reg.read & high),
            shows_low.eq(low & reg.read),
        ]
        exceeded = total[-1].replicate(DATA_BITS)
        above = kept[DATA_BITS:].any() | gives_above
        carry = kept[DATA_BITS] ^ added[DATA_BITS] ^ total[DATA_BITS]
        m.d.comb += self.value.eq(
            Mux(shows, _shown(m, at, total, above | carry), 0)
            | Mux(shows_high, total[DATA_BITS : 2 * DATA_BITS] | exceeded, 0)
            | Mux(shows_low, extended_low, 0)
        )
        with m.If(shows_high):
            m.d.sync += extended_low.eq(total[:DATA_BITS] | exceeded)
        with m.If(low & reg.write):
            m.d.sync += extended_low.eq(reg.wdata)
        return m

    def _too_large(self) -> Value:
        """More is written than the counter can hold."""
        reg = self.reg
        return Cat(
            _is_one_of(reg.offset, (counter for counter, bits in _WIDTHS.items() if bits == width))
            & reg.wdata[width:].any()
            for width in sorted({*_WIDTHS.values()} - {DATA_BITS})
        ).any()

    def _wait(self, m: Module, place: Value, works: Value, sets: Value) -> tuple[Value, Value]:
        """What the counter at this place has counted, in the next cycle; of others it goes on waiting.

        Apart from a count of 1 in the cycle itself, which may come late. What is set has counted nothing.
        """
        is_taken = Signal(1 << _PLACE_BITS)
        m.d.comb += is_taken.eq(Mux(works, 1 << place, 0))
        waiting: list[list[Value]] = [[] for _ in range(1 << _PLACE_BITS)]
        for at, counter in _PLACES.items():
            counts = self.counts[counter.name]
            amount = self.amounts[counter.name] if counter.name in dict(iter(AMOUNTS)) else Const(1, 1)
            waits = Signal(_WAITING_BITS + len(amount), name=f"{counter.name}_waits")
            after = Signal.like(waits, name=f"{counter.name}_after")
            m.d.comb += after.eq(waits + amount)
            with m.If(is_taken[at]):
                m.d.sync += waits.eq(0)
            with m.Elif(counts):
                m.d.sync += waits.eq(after)
            waiting[at] = [waits, counts] if len(amount) == 1 else [Mux(counts, after, waits), Const(0)]

        # Half of the choice is made in this cycle, the rest in the next.
        low_bits = _PLACE_BITS - 2
        column = Signal(1 << low_bits)
        m.d.comb += column.eq(1 << place[:low_bits])
        parts, ones = [], []
        for quarter in range(1 << 2):
            of_quarter = waiting[quarter << low_bits : (quarter + 1) << low_bits]
            there = [(bit, one) for bit, one in zip(column, of_quarter, strict=True) if one]
            chosen = Cat(bit for bit, _ in there)
            of_part = select(chosen, [waits for _, (waits, _) in there])
            part, one = Signal(len(of_part), name=f"part_{quarter}"), Signal(name=f"one_{quarter}")
            is_there = works & ~sets & (place[low_bits:] == quarter)
            m.d.sync += [
                part.eq(Mux(is_there, of_part, 0)),
                one.eq(select(chosen, [counts for _, (_, counts) in there]) & is_there),
            ]
            parts.append(part)
            ones.append(one)
        return any_of(parts), Cat(ones).any()

    def _total(self, kept: Value, added: Value, and_one: Value, is_wide: Value) -> Value:
        """The sum. What says that a counter was exceeded stays."""
        total = (Cat(Const(1, 1), kept) + Cat(and_one, added))[1:][:_WIDE_BITS]
        over = _NARROW_BITS - 1
        return Cat(
            total[:over],
            total[over] | (kept[over] & ~is_wide),
            total[over + 1 : -1],
            total[-1] | kept[-1],
        )


def _is_one_of(offset: Value, registers: Iterable[int]) -> Value:
    return Cat(offset == register for register in registers).any()


def _place(m: Module, row: Value, column: Value) -> Value:
    """`_place_of`, of a counter's register or of its upper half; of others it means nothing."""
    place = Signal(_PLACE_BITS, name="place_of_register")
    with m.Switch(row[:3]):
        with m.Case(_COUNTERS):
            m.d.comb += place.eq(column)
        with m.Case(_HALVES):
            m.d.comb += place.eq(Mux(column[-1], column, _XMIT_WAIT_PLACE))
        with m.Case(_DETAILS):
            m.d.comb += place.eq(_DETAIL_PLACES | column)
        with m.Default():
            m.d.comb += place.eq(_PACKET_PLACES | column)
    return place


def _kept(m: Module, name: str, words: tuple[int, Value, Value], value: Value, writes: Value) -> Value:
    """What a memory of so many words has at the first of these two; VALUE is what is written at the second."""
    depth, word, written = words
    m.submodules[name] = memory = Memory(shape=len(value), depth=depth, init=[])
    reader: Any = memory.read_port(domain="comb")
    writer = restored_write_port(m, memory, lambda _: Const(0, len(value)))
    m.d.comb += [reader.addr.eq(word), writer.addr.eq(written), writer.data.eq(value), writer.en.eq(writes)]
    return Value.cast(reader.data)


def _following(turn: Value) -> Value:
    """The next place that has a counter."""
    following: Value = (turn + 1)[:_PLACE_BITS]
    for place in sorted({*range(1 << _PLACE_BITS)} - {*_PLACES}):
        following = Mux(turn == place - 1, (place + 1) % (1 << _PLACE_BITS), following)
    return following


def _is_wide(place: Value) -> Value:
    return _is_one_of(place, sorted(_WIDE))


def _wide_word(place: Value) -> Value:
    """The word of a place of `_WIDE`; no two have the same."""
    return Cat(place[:2], place[4], place[2])


def _shown(m: Module, place: Value, total: Value, exceeds_32: Value) -> Value:
    """A counter as its register shows it, all ones if it is more. Of 64 bits that is their lower half."""
    within: Value = Const(0, DATA_BITS)
    exceeded = []
    for width in sorted({*_WIDTHS.values()}):
        is_one = Signal(name=f"has_{width}_bits")
        m.d.comb += is_one.eq(_is_one_of(place, (at for at, counter in _PLACES.items() if _WIDTHS[counter] == width)))
        within |= is_one.replicate(width)
        exceeded.append(is_one & (total[width:_NARROW_BITS].any() if width < DATA_BITS else exceeds_32))
    return (total[:DATA_BITS] | Cat(exceeded).any().replicate(DATA_BITS)) & within
