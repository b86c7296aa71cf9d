"""A port's counters, those of up to 32 bits above all."""

import random
from collections.abc import Sequence

import pytest

from rtl.registers.counters import AMOUNTS, PortCounters
from tests.rtl.registers import counter_bench
from tests.rtl.registers.counter_bench import Access, Counted, Cycle, read, write
from wire.registers import (
    COUNTER_WIDTHS,
    DETAIL_BITS,
    HIGH_OF_COUNTER,
    Counter,
    CounterHigh,
    Detail,
    PacketCounter,
    PortRegister,
)

WIDTHS: dict[Counter | Detail, int] = {
    **{counter: width for counter, width in COUNTER_WIDTHS.items() if counter not in HIGH_OF_COUNTER},
    **dict.fromkeys(Detail, DETAIL_BITS),
}
ALL: dict[Counter | PacketCounter | Detail, int] = {**WIDTHS, **dict.fromkeys(HIGH_OF_COUNTER, 64)}
"""The bits of each counter."""
REGISTERS: dict[int, tuple[Counter | PacketCounter | Detail, bool]] = {
    **{counter: (counter, False) for counter in ALL},
    **{high: (counter, True) for counter, high in HIGH_OF_COUNTER.items()},
}
"""The counter that a register shows, and whether it is its upper half."""
VARYING = {counter: AMOUNTS[counter.name].width for counter in ALL if counter.name in dict(iter(AMOUNTS))}
REST: Cycle = (None, {})
LATER = pytest.mark.parametrize("later", [0, 1, 2, 13, 14, 15, 16, 40])
"""Cycles between what is counted and what looks at it: fewer than a round of turns, as many, more."""


def answers(cycles: Sequence[Cycle]) -> list[int]:
    return counter_bench.answers(PortCounters(), cycles)


def count(*counters: Counter | Detail) -> Cycle:
    return None, dict.fromkeys(counters, 1)


def test_at_reset_all_are_0() -> None:
    assert answers([read(counter) for counter in WIDTHS]) == [0] * len(WIDTHS)


def test_what_a_cycle_counts_shows_in_the_next() -> None:
    # The read of a cycle shows what is visible in the next.
    cycles: list[Cycle] = []
    for counter in WIDTHS:
        cycles += [read(counter), ((counter, None), {counter: 1}), read(counter)]
    assert answers(cycles) == [0, 1, 1] * len(WIDTHS)


@LATER
def test_what_was_counted_stays(later: int) -> None:
    cycles: list[Cycle] = []
    for counter in WIDTHS:
        cycles += [*[count(counter), *[REST] * later] * 2, *[read(counter)] * 20]
    assert answers(cycles) == [2] * 20 * len(WIDTHS)


def test_a_counter_stops_at_all_ones() -> None:
    cycles: list[Cycle] = []
    expected = []
    for counter, width in WIDTHS.items():
        top = (1 << width) - 1
        cycles += [write(counter, top - 1), read(counter), *[count(counter), read(counter)] * 3, *[read(counter)] * 20]
        expected += [top - 1, *[top] * 23]
    assert answers(cycles) == expected


def test_a_large_step_stops_there_too() -> None:
    cycles: list[Cycle] = []
    expected = []
    for counter, bits in ((counter, VARYING[counter]) for counter in WIDTHS if counter in VARYING):
        top, step = (1 << WIDTHS[counter]) - 1, (1 << bits) - 1
        cycles += [write(counter, top - step - 1), *[((counter, None), {counter: step})] * 2, *[read(counter)] * 20]
        expected += [top - 1, *[top] * 21]
    assert answers(cycles) == expected


@LATER
def test_a_write_sets_the_counter_and_what_is_counted_then_is_lost(later: int) -> None:
    cycles: list[Cycle] = []
    for counter in WIDTHS:
        sets: Cycle = ((counter, 7), {counter: 1})
        cycles += [count(counter), *[REST] * later, sets, read(counter), *[REST] * later, read(counter)]
    assert answers(cycles) == [7, 7] * len(WIDTHS)


def test_what_is_counted_in_the_cycle_of_a_read_of_another_counts() -> None:
    cycles: list[Cycle] = []
    for counter, other in zip(WIDTHS, [*WIDTHS][1:], strict=False):
        cycles += [*[((other, None), {counter: 1})] * 5, read(counter)]
    assert answers(cycles) == [0, 0, 0, 0, 0, 5] * (len(WIDTHS) - 1)


def test_a_write_elsewhere_changes_nothing() -> None:
    elsewhere = [*HIGH_OF_COUNTER, *CounterHigh, *PortRegister]
    elsewhere += [counter | bit for counter in WIDTHS for bit in (0x100, 0x8000)]
    cycles = [write(offset, 99) for offset in elsewhere]
    for value, counter in enumerate(WIDTHS):
        cycles += [
            write(counter, value % 16),
            *(write(other, 9) for other in WIDTHS if other != counter),
            read(counter),
        ]
    assert answers(cycles) == [value % 16 for value in range(len(WIDTHS))]


def test_a_value_too_wide_is_ignored() -> None:
    narrow = {counter: width for counter, width in WIDTHS.items() if width < 32}
    cycles: list[Cycle] = []
    for counter, width in narrow.items():
        cycles += [write(counter, 3), write(counter, 1 << width), write(counter, 1 << 31 | 1), read(counter)]
    assert answers(cycles) == [3] * len(narrow)


def test_other_registers_are_none_of_ours() -> None:
    offsets = [offset for offset in range(0x60) if offset not in (*REGISTERS, PortRegister.EXTENDED_LOW)]
    offsets += [register | bit for register in WIDTHS for bit in (0x80, 0x100, 0x8000)]
    found = answers([*(write(counter, 3) for counter in WIDTHS), *map(read, offsets), *map(read, WIDTHS)])
    assert found == [0] * len(offsets) + [3] * len(WIDTHS)


def test_all_may_count_in_every_cycle() -> None:
    """Longer than any of them can wait for its turn."""
    found = answers([*[count(*WIDTHS)] * 100, *map(read, WIDTHS)])
    assert found == [min(100, (1 << width) - 1) for width in WIDTHS.values()]


def test_all_are_written_while_all_count() -> None:
    """As an agent clears them, one after the other."""
    clears: list[Cycle] = [((counter, 0), dict.fromkeys(WIDTHS, 1)) for counter in WIDTHS]
    found = answers([*[count(*WIDTHS)] * 20, *clears, *map(read, WIDTHS)])
    assert found == [min(len(WIDTHS) - 1 - place, (1 << width) - 1) for place, width in enumerate(WIDTHS.values())]


class Reference:
    """The contract's words: values as visible in a cycle."""

    def __init__(self) -> None:
        self.values = dict.fromkeys(ALL, 0)
        self.low = 0
        self.kept: int | None = None

    def cycle(self, access: Access | None, counted: Counted) -> int:
        """Go on to the next cycle; what an access of this one reads in it."""
        before, self.low = self.low, self.low if self.kept is None else self.kept
        self.kept = None
        for counter, amount in counted.items():
            self.values[counter] = min(self.values[counter] + amount, (1 << ALL[counter]) - 1)
        offset, written = access or (0, None)
        if offset == PortRegister.EXTENDED_LOW:
            self.low = self.low if written is None else written
            return self.low if written is None else 0
        if offset not in REGISTERS:
            return 0
        counter, is_high = REGISTERS[offset]
        if written is not None:
            value = written << 32 | before if is_high else written
            if value < 1 << ALL[counter]:
                self.values[counter] = value
            return 0
        if is_high:
            self.kept = self.values[counter] & 0xFFFF_FFFF
            return self.values[counter] >> 32
        return min(self.values[counter], 0xFFFF_FFFF)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_counters_under_random_accesses(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    edges = [0, 1, 14, 15, 254, 255, 256, 0xF000, 0xFFF0, 0xFFFE, 0xFFFF, 0x1_0000]
    edges += [0xFFFF_0000, 0xFFFF_F000, 0xFFFF_FFFE, 0xFFFF_FFFF]
    cycles: list[Cycle] = []
    for place in range(3000):
        access = None
        if rng.random() < (0.1, 0.3, 0.5)[seed % 3]:
            offset = rng.choice([*REGISTERS, PortRegister.EXTENDED_LOW, rng.choice([*PortRegister])])
            access = offset, rng.choice(edges) if rng.random() < 0.3 else None
        likely = (0.02, 0.4, 0.9)[place // 300 % 3]
        counted = {counter: 1 for counter in ALL if rng.random() < likely}
        counted |= {counter: rng.randrange(1 << VARYING[counter]) for counter in counted if counter in VARYING}
        cycles.append((access, counted))
    reference = Reference()
    assert counter_bench.run(PortCounters(), cycles) == [0, *(reference.cycle(*cycle) for cycle in cycles)]
