"""A port's counters (IBTA vol 1, 16.1.3.5 and 16.1.4; docs/pipeline.md, section 10, management.md, section 6)."""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.registers.counter_places import (
    COUNTED_LATE,
    COUNTED_TWICE,
    LANE_BITS,
    LANES,
    LENGTHS,
    XMIT_WAIT_WORD,
    amounts_layout,
    counts_layout,
    most_counted,
    names_of_counters,
    narrow_widths,
    places_of_counters,
    word_bits,
)
from rtl.registers.port_access import port_access_layout
from rtl.restoration import restored_write_port
from rtl.rotation import any_of, select
from wire.registers import DATA_BITS, PortRegister

__all__ = ["PortCounters"]

_ERROR_BITS: Final = 2
"""Of FLOW_CTL_UPDATE_ERRORS, for each VL."""

_ACCESSES: Final = 15
"""To a port's counters, in twice as many cycles, with which nothing is lost."""

_TOGETHER: Final = 4
"""As many counters have one register, which says that one of them counts."""

_CODE_BITS: Final = 4
"""Of numbers that go on in another order than that of their values."""


def _code_after(code: Value) -> Value:
    """The number after it, in the order of a shift register.

    Each bit is what the one below it was, the lowest that of a shift register with feedback (x^4 + x^3 + 1), but for
    the two numbers between which 0 is put in: one LUT, where an adder has one for each bit.
    """
    return Cat(code[-1] ^ code[-2] ^ ~code[:-1].any(), code[:-1])


def _number_of_code(code: Value) -> Value:
    """How many steps behind 0 it is."""
    numbers, at = [0] * (1 << _CODE_BITS), 0
    for number in range(len(numbers)):
        numbers[at] = number
        at = (at << 1 | (at >> 3 ^ at >> 2 ^ (at % 8 == 0)) & 1) % len(numbers)
    return Array(Const(number, _CODE_BITS) for number in numbers)[code]


_Lane: Final = data.StructLayout({"value": LANE_BITS, "exceeded": 1})
"""What is kept of a counter, or of a part of one. `exceeded` says that it has been more: the second lane of two and of
four that it was more than 32 bits, the fourth that it was more than 64; else the lane of a counter of one."""

_Word: Final = data.ArrayLayout(_Lane, LANES)


class PortCounters(wiring.Component):
    """The counters of one port. They stop at all ones.

    Args:
        vls: data VLs.
        others: ports whose packets leave by this one.

    Members:
        counts, amounts: what is counted in this cycle, visible in the next; no more than `most_counted`. Of a counter
            that does not move the amount is 0, of `LENGTHS` anything. What is counted late is that of the cycle before,
            visible in this.
        expired: mask of the VLs without a flow control packet for too long, in this cycle, likewise.
        reg: an access to the port. A write sets the counter, whatever is counted in the cycle. A value that the
            counter cannot hold is ignored.
        value: two cycles after a read what was visible in the cycle after it of a counter, or of EXTENDED_LOW; else 0.
    """

    def __init__(self, vls: int, others: int) -> None:
        self._vls = vls
        self._others = others
        self._places = places_of_counters(vls)
        self._words = sorted({place.word for place in self._places.values()})
        self._word_bits = word_bits(vls)
        super().__init__(
            {
                "counts": In(counts_layout(vls)),
                "amounts": In(amounts_layout(vls, others)),
                "expired": In(vls),
                "reg": In(port_access_layout(vls)),
                "value": Out(DATA_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """All are in one memory with one adder; each word of them has a turn at it while there is something to add.

        What a counter has counted since its last turn waits in a few bits of its own, a cycle before turns begin. An
        access takes the turn of its cycle: nothing is lost unless most of 30 cycles have an access to the port's
        counters. What is counted late is taken in the cycle after its turn's, in which it is added.
        """
        m = Module()
        reg, counter, accessed = self.reg, self.reg.counter, Signal()
        m.d.comb += accessed.eq(reg.select & counter.is_any)

        # Whose turn it is: of the word accessed, else of all, once each since something was counted.
        turn, left = Signal(self._word_bits), Signal(range(len(self._words) + 1))
        word, works = Signal(self._word_bits), Signal()
        m.d.comb += [word.eq(Mux(accessed, counter.word, turn)), works.eq(accessed | (left != 0))]
        with m.If((word == turn) & (left != 0)):
            m.d.sync += [left.eq(left - 1), turn.eq(self._following(turn))]
        # That something counts is known late in its cycle, of what is not counted late: registers are between, each
        # for a few counters.
        names = [name for name, _ in self.counts.shape()]
        late = Cat(self.counts[name] for name in names if name in COUNTED_LATE)
        soon = Cat(self.counts[name] for name in names if name not in COUNTED_LATE)
        counted = [Signal(name=f"counted_{first}") for first in range(0, len(soon), _TOGETHER)]
        m.d.sync += [some.eq(soon.word_select(at, _TOGETHER).any()) for at, some in enumerate(counted)]
        with m.If(Cat(late, *counted).any()):
            m.d.sync += left.eq(len(self._words))

        # In the next cycle it is added to what is kept, or what a write gives to nothing.
        at, adds = Signal(self._word_bits), Signal()
        m.d.sync += [at.eq(word), adds.eq(works)]
        kept, total = Signal(_Word), Signal(_Word)
        before = _kept(m, (1 << self._word_bits, word, at), total.as_value(), adds)
        # That a counter was exceeded is known last. EXTENDED_LOW, which is all ones then, has it beside its bits.
        low_bits, low_exceeded = Signal(DATA_BITS), Signal()
        extended_low = low_bits | low_exceeded.replicate(DATA_BITS)
        given, sets, gives_above = self._give(m, extended_low)
        waited, ones = self._wait(m, word, works, sets)
        for lane in range(LANES):
            with m.If(sets[lane]):
                m.d.sync += kept[lane].eq(0)
            with m.Else():
                # What is being added to it is not in the memory yet.
                m.d.sync += kept[lane].eq(Mux(adds & (word == at), total[lane], before[lane]))
        joined = Signal(LANES)  # with the lane above
        is_whole = self._is_whole(word)
        m.d.sync += joined.eq(Cat(is_whole | (word == XMIT_WAIT_WORD), is_whole, is_whole))
        _add(m, kept, [given[lane] | waited[lane] for lane in range(LANES)], ones, joined, total)
        with m.If(gives_above):
            m.d.comb += total[1].exceeded.eq(1)

        errors = self._count_expired(m, extended_low)
        shows_low, shows_errors = Signal(), Signal()
        m.d.sync += [
            shows_low.eq(reg.select & reg.reads[PortRegister.EXTENDED_LOW.name]),
            shows_errors.eq(reg.select & reg.reads[PortRegister.FLOW_CTL_UPDATE_ERRORS.name]),
        ]
        others, value = Signal(DATA_BITS), Signal(DATA_BITS)
        m.d.sync += others.eq(Mux(shows_low, low_bits, 0) | Mux(shows_errors, errors, 0))
        upper = self._show(m, total, shows_low & low_exceeded, value)
        m.d.comb += self.value.eq(value | others)
        with m.If(upper):
            m.d.sync += [low_bits.eq(Cat(total[0].value, total[1].value)), low_exceeded.eq(total[-1].exceeded)]
        with m.If(reg.select & reg.writes[PortRegister.EXTENDED_LOW.name]):
            m.d.sync += [low_bits.eq(reg.wdata), low_exceeded.eq(0)]
        return m

    def _is_whole(self, word: Value) -> Value:
        """It has one counter, of all lanes."""
        return word[3] & ~word[4:].any()

    def _following(self, turn: Value) -> Value:
        """The next word that has a counter."""
        following: Value = (turn + 1)[: self._word_bits]
        for word in sorted({*range(1 << self._word_bits)} - {*self._words}):
            after = next((used for used in self._words if used > word), 0)
            following = Mux(turn == word - 1, after, following)
        return following

    def _give(self, m: Module, extended_low: Value) -> tuple[list[Signal], Signal, Signal]:
        """What a write gives to each lane, in the next cycle; which it sets, in this; it gives more than 32 bits.

        The upper half is given together with the lower one, which EXTENDED_LOW has; to the register of the lower half
        alone what is above is 0.
        """
        reg, counter = self.reg, self.reg.counter
        upper, first = counter.upper, reg.wdata[:LANE_BITS]
        values = (
            Mux(upper, extended_low[:LANE_BITS], first),
            Mux(upper, extended_low[LANE_BITS:], counter.odd),
            first,
            counter.odd,
        )
        given = [Signal(LANE_BITS, name=f"given_{lane}") for lane in range(LANES)]
        writes, sets, gives_above = Signal(), Signal(LANES), Signal()
        m.d.comb += [writes.eq(reg.select & ~counter.too_large), sets.eq(Mux(writes, counter.sets, 0))]
        for lane, lane_given in enumerate(given):
            m.d.sync += lane_given.eq(Mux(writes & counter.gives[lane], values[lane], 0))
        m.d.sync += gives_above.eq(reg.select & counter.gives_above)
        return given, sets, gives_above

    def _wait(self, m: Module, word: Value, works: Value, sets: Value) -> tuple[list[Value], list[Value]]:
        """By lane, what the word's counter has counted, in the next cycle, and one more; of others it goes on waiting.

        A count of 1 in the cycle itself may come late, and is the one more. What is set has counted nothing.
        """
        is_taken = Signal(1 << self._word_bits)
        m.d.comb += is_taken.eq(Mux(works, 1 << word, 0))
        words = len(self._words)
        most_cycles = words - 1 + _ACCESSES * -(-words // _ACCESSES)
        names, amounts = names_of_counters(self._vls), self.amounts.shape().members
        waiting: list[dict[int, tuple[Value, Value, bool]]] = [{} for _ in range(LANES)]
        late: list[list[tuple[Value, Value, Value]]] = [[] for _ in range(LANES)]
        for register, place in self._places.items():
            name = names[register]
            counts, takes, is_late = self.counts[name], is_taken[place.word], name in COUNTED_LATE
            bits = most_counted(register, self._vls, self._others, most_cycles + 1).bit_length()
            waits, after = Signal(bits, name=f"{name}_waits"), Signal(bits, name=f"{name}_after")
            is_code = name not in amounts and not is_late and bits == _CODE_BITS
            is_length = register in LENGTHS
            if name in amounts:
                m.d.comb += after.eq(waits + self.amounts[name])
                counts = counts if is_length else Const(1)
            else:
                m.d.comb += after.eq(_code_after(waits) if is_code else waits + 1)
            if is_late:
                takes, is_here = Signal(name=f"{name}_taken"), Signal(name=f"{name}_here")
                m.d.sync += [takes.eq(is_taken[place.word]), is_here.eq(is_taken[place.word] & ~sets[place.lane])]
            with m.If(takes):
                m.d.sync += waits.eq(0)
            with m.Elif(counts):
                m.d.sync += waits.eq(after)
            if name in COUNTED_TWICE:
                # Both come late, so one more than what waits is ready for the second.
                amount = self.amounts[name]
                waits, one = Mux(amount[1], (waits + 1)[:bits], waits), amount.any()
            elif name in amounts:
                # Whether a packet counts is known later than its length.
                waits, one = Mux(counts, after, waits) if is_length else after, Const(0, 1)
            else:
                one = counts
            if is_late:
                late[place.lane].append((is_here, waits, one))
            else:
                waiting[place.lane][place.word] = waits, one, is_code

        # Of every four words one is chosen in this cycle, and what number it is; of these in the next, and of all that
        # is late.
        waited, ones = [], []
        for lane, of_lane in enumerate(waiting):
            here = works & ~sets[lane]
            choice = _Choice(m, f"lane_{lane}", word, here)
            numbers = choice.of({at: waits for at, (waits, _, is_code) in of_lane.items() if not is_code})
            codes = choice.of({at: waits for at, (waits, _, is_code) in of_lane.items() if is_code}, _number_of_code)
            added, values, mores = zip(*late[lane], strict=True) if late[lane] else ((0,), (0,), (0,))
            waited.append(numbers | codes | select(added, values))
            ones.append(choice.of({at: one for at, (_, one, _) in of_lane.items()}) | select(added, mores))
        return waited, ones

    def _count_expired(self, m: Module, extended_low: Value) -> Value:
        """FLOW_CTL_UPDATE_ERRORS; EXTENDED_LOW says of which VLs it is written."""
        fields = [Signal(_ERROR_BITS, name=f"flow_control_errors_{vl}") for vl in range(self._vls)]
        above = Const(0, DATA_BITS - _ERROR_BITS * self._vls)
        writes = self.reg.select & self.reg.writes[PortRegister.FLOW_CTL_UPDATE_ERRORS.name]
        for vl, field in enumerate(fields):
            given = self.reg.wdata[DATA_BITS - _ERROR_BITS * (vl + 1) :][:_ERROR_BITS]
            with m.If(writes & extended_low[vl]):
                m.d.sync += field.eq(given)
            with m.Elif(self.expired[vl] & ~field.all()):
                m.d.sync += field.eq(field + 1)
        return Cat(above, *reversed(fields))

    def _show(self, m: Module, total: data.View, ones: Value, value: Signal) -> Signal:
        """VALUE is what a read showed in the cycle before, of a counter all ones if it was more than its register has.
        A read in this cycle shows an upper half; or, with ONES, something else, all ones.
        """
        is_here, counter = self.reg.select, self.reg.counter
        shows, ends, two, upper = Signal(LANES), Signal(LANES), Signal(), Signal()
        m.d.sync += [
            shows.eq(Mux(is_here, counter.shows, 0)),
            ends.eq(Mux(is_here, counter.ends, 0)),
            two.eq(is_here & counter.shows[0] & counter.ends[1]),
            upper.eq(is_here & counter.shows[2] & counter.ends[3]),
        ]
        lower = select(shows, [lane.value for lane in total])
        higher = select(Cat(two, upper), [total[1].value, total[-1].value])
        visible, exceeded = Signal(DATA_BITS), Signal(LANES + 1)
        m.d.sync += [
            visible.eq(Cat(lower, higher)),
            exceeded.eq(Cat(ends & Cat(lane.exceeded for lane in total), ones)),
        ]

        # In the next cycle: which of its bits the register has.
        widths = narrow_widths(self._vls)
        narrow = [Signal(len(widths), name=f"narrow_{ago}") for ago in (1, 2)]
        has, wide, is_more = Signal(len(widths)), Signal(), Signal()
        m.d.sync += [
            narrow[0].eq(counter.narrow),
            narrow[1].eq(narrow[0]),
            has.eq(Cat(~narrow[0][: place + 1].any() for place in range(len(widths)))),
            wide.eq(two | upper | ones),
        ]
        stretches = [end - begin for begin, end in pairwise([*widths, LANE_BITS])]
        within = (bit.replicate(bits) for bit, bits in zip(has, stretches, strict=True))
        beyond = (is_one & visible[width:LANE_BITS].any() for is_one, width in zip(narrow[1], widths, strict=True))
        shown = visible | Cat(is_more.replicate(LANE_BITS), (is_more & wide).replicate(DATA_BITS - LANE_BITS))
        m.d.comb += [
            is_more.eq(Cat(exceeded, *beyond).any()),
            value.eq(shown & Cat(Const(-1, widths[0]), *within, Const(-1, DATA_BITS - LANE_BITS))),
        ]
        return upper


class _Choice:
    """Which of a lane's values is that of a word; half of the choice is made in this cycle, the rest in the next.

    Args:
        m: gets the registers between.
        name: of the lane.
        word: whose value, if `there`.
    """

    def __init__(self, m: Module, name: str, word: Value, there: Value) -> None:
        self._m = m
        self._name = name
        self._word = word
        self._there = there
        self._chosen = 0

    def of(self, values: Mapping[int, Value], number: Callable[[Value], Value] = lambda value: value) -> Value:
        """The value, of those by word, in the next cycle, as a NUMBER; 0 if the word has none."""
        column, rest = self._word[:2], self._word[2:]
        parts = []
        self._chosen += 1
        for quarter in sorted({word >> 2 for word in values}):
            there = {word & 3: value for word, value in values.items() if word >> 2 == quarter}
            value = any_of(Mux(column == place, value, 0) for place, value in there.items())
            part = Signal(len(value), name=f"{self._name}_{self._chosen}_{quarter}")
            self._m.d.sync += part.eq(Mux(self._there & (rest == quarter), number(value), 0))
            parts.append(part)
        return any_of(parts) if parts else Const(0, 1)


def _add(
    m: Module, kept: data.View, added: Iterable[Value], ones: Iterable[Value], joined: Signal, total: data.View
) -> None:
    """TOTAL is the sum, lane by lane. What says that a counter was exceeded stays.

    One chain of carries, with a place below each lane: two ones there give a carry, the one more, and a single one,
    where it is joined with the lane below, passes that one's on. The last carry comes latest: a place above all lanes
    has one of its own where the last lane was exceeded before, and passes that on.
    """
    below: Value = Const(0, 1)
    operands: list[tuple[Value, Value]] = []
    for lane, (more, one) in enumerate(zip(added, ones, strict=True)):
        operands += [(one, one | below), (kept[lane].value, Cat(more, Const(0, LANE_BITS))[:LANE_BITS])]
        below = joined[lane]
    operands.append((kept[-1].exceeded, Const(1, 1)))
    chain = Signal(LANES * (LANE_BITS + 1) + 2)
    m.d.comb += chain.eq(Cat(first for first, _ in operands) + Cat(second for _, second in operands))
    for lane in range(LANES):
        *value, carry = chain[1 + lane * (LANE_BITS + 1) :][: LANE_BITS + 1]
        m.d.comb += [
            total[lane].value.eq(Cat(value)),
            total[lane].exceeded.eq(
                kept[lane].exceeded | (carry ^ joined[lane]) if lane < LANES - 1 else chain[-1],
            ),
        ]


def _kept(m: Module, words: tuple[int, Value, Value], value: Value, writes: Value) -> Any:
    """What a memory of so many words has at the first of these two; VALUE is what is written at the second."""
    depth, word, written = words
    m.submodules.kept = memory = Memory(shape=_Word, depth=depth, init=[])
    reader: Any = memory.read_port(domain="comb")
    writer = restored_write_port(m, memory, lambda _: Const(0, _Word.size))
    m.d.comb += [
        reader.addr.eq(word),
        writer.addr.eq(written),
        Value.cast(writer.data).eq(value),
        writer.en.eq(writes),
    ]
    return reader.data
