"""A port's counters, those of up to 32 bits above all."""

import random
from collections.abc import Sequence

import pytest

from rtl.registers.counter_places import COUNTED_TWICE, amounts_layout, most_counted, most_violations, vls_of_slots
from tests.rtl.registers import counter_bench
from tests.rtl.registers.counter_bench import ERRORS, OTHERS, Access, Counted, Cycle, counter_name, read, write
from wire.registers import (
    COUNTER_WIDTHS,
    DETAIL_BITS,
    HIGH_OF_COUNTER,
    VL_XMIT_WAIT,
    Counter,
    CounterHigh,
    Detail,
    PortRegister,
)


def widths(vls: int) -> dict[int, int]:
    """The bits of each counter of up to 32."""
    return {
        **{counter: width for counter, width in COUNTER_WIDTHS.items() if counter not in HIGH_OF_COUNTER},
        **dict.fromkeys(Detail, DETAIL_BITS),
        **{VL_XMIT_WAIT + vl: 16 for vl in vls_of_slots(vls)},
    }


VLS = 2
WIDTHS = widths(VLS)
AMOUNTS = amounts_layout(VLS, OTHERS).members
MOST = {
    counter: 2 if (name := counter_name(counter)) in COUNTED_TWICE else (1 << AMOUNTS[name]) - 1
    for counter in WIDTHS
    if counter_name(counter) in AMOUNTS
}
"""Of those that do not move by 1, by how much at most."""
REST: Cycle = (None, {})
LATER = pytest.mark.parametrize("later", [0, 1, 2, 13, 14, 15, 16, 40])
"""Cycles between what is counted and what looks at it: fewer than a round of turns, as many, more."""


def answers(cycles: Sequence[Cycle]) -> list[int]:
    return counter_bench.answers(VLS, cycles)


def count(*counters: int) -> Cycle:
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
    for counter, step in MOST.items():
        top = (1 << WIDTHS[counter]) - 1
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
    elsewhere += [VL_XMIT_WAIT + vl for vl in range(16) if VL_XMIT_WAIT + vl not in WIDTHS]
    elsewhere += [counter | 0x80 for counter in WIDTHS]
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
    ours = (*WIDTHS, *HIGH_OF_COUNTER, *CounterHigh, PortRegister.EXTENDED_LOW, ERRORS)
    offsets = [offset for offset in range(0x90) if offset not in ours]
    offsets += [register | 0x80 for register in WIDTHS]
    found = answers([*(write(counter, 3) for counter in WIDTHS), *map(read, offsets), *map(read, WIDTHS)])
    assert found == [0] * len(offsets) + [3] * len(WIDTHS)


def often(counter: int) -> bool:
    """It may count in each cycle, not in every other one."""
    return most_counted(counter, 1, OTHERS, 10) >= 10


@pytest.mark.parametrize("vls", [1, 4, 15])
def test_all_may_count_for_ever(vls: int) -> None:
    """Longer than any of them can wait for its turn."""
    bits = widths(vls)
    cycles = [count(*(counter for counter in bits if often(counter) or cycle % 2)) for cycle in range(100)]
    found = counter_bench.answers(vls, [*cycles, *map(read, bits)])
    assert found == [min(100 if often(counter) else 50, (1 << width) - 1) for counter, width in bits.items()]


@pytest.mark.parametrize("vls", [1, 4, 15])
@pytest.mark.parametrize("burst", [1, 5, 15])
def test_half_of_the_cycles_may_have_accesses(vls: int, burst: int) -> None:
    """All to the same counter."""
    bits = widths(vls)
    expected, cycles = dict.fromkeys(bits, 0), []
    for cycle in range(200):
        counted = [counter for counter in bits if often(counter) or cycle % 2]
        expected |= {counter: expected[counter] + 1 for counter in counted}
        cycles.append((None if cycle // burst % 2 else (Counter.VL15_DROPPED, None), dict.fromkeys(counted, 1)))
    found = counter_bench.answers(vls, [*cycles, *map(read, bits)])[-len(bits) :]
    assert found == [min(counted, (1 << bits[counter]) - 1) for counter, counted in expected.items()]


def test_all_are_written_while_all_count() -> None:
    """As an agent clears them, one after the other."""
    often_counted = [counter for counter in WIDTHS if often(counter)]
    clears: list[Cycle] = []
    for counter in WIDTHS:
        clears += [((counter, 0), dict.fromkeys(WIDTHS, 1)), count(*often_counted)]
    found = answers([*[count(*often_counted)] * 20, *clears, *map(read, WIDTHS)])
    last = len(WIDTHS) - 1
    assert found == [
        min(2 * (last - place) + 1 if often(counter) else last - place, (1 << WIDTHS[counter]) - 1)
        for place, counter in enumerate(WIDTHS)
    ]


@pytest.mark.parametrize("vls", [1, 2, 15])
def test_flow_control_errors_of_each_vl_stop_at_3(vls: int) -> None:
    every = (1 << vls) - 1
    found = counter_bench.answers(vls, [cycle for _ in range(5) for cycle in ((None, {ERRORS: every}), read(ERRORS))])
    assert found == [sum(min(times, 3) << 30 - 2 * vl for vl in range(vls)) for times in (1, 2, 3, 4, 5)]


def test_flow_control_errors_show_in_the_next_cycle() -> None:
    cycles: list[Cycle] = [read(ERRORS), ((ERRORS, None), {ERRORS: 2}), read(ERRORS), ((ERRORS, None), {ERRORS: 1})]
    assert answers(cycles) == [0, 1 << 28, 1 << 28, 1 << 28 | 1 << 30]


@pytest.mark.parametrize("named", range(4))
def test_flow_control_errors_of_the_vls_that_extended_low_names_are_written(named: int) -> None:
    low = write(PortRegister.EXTENDED_LOW, named | 0xFFFC)
    cycles: list[Cycle] = [(None, {ERRORS: 3}), low, ((ERRORS, 0xFFFF_FFFF), {ERRORS: 3}), read(ERRORS)]
    assert answers(cycles) == [sum((3 if named >> vl & 1 else 2) << 30 - 2 * vl for vl in range(2))]


def test_a_read_that_keeps_a_lower_half_names_vls_a_cycle_later() -> None:
    kept = [
        write(PortRegister.EXTENDED_LOW, 3),
        write(CounterHigh.RCV_PKTS_HIGH, 0),
        write(PortRegister.EXTENDED_LOW, 0),
    ]
    for rest, expected in (0, 0), (1, 0xF000_0000):
        cycles = [*kept, read(CounterHigh.RCV_PKTS_HIGH), *[REST] * rest, write(ERRORS, 0xFFFF_FFFF), read(ERRORS)]
        assert answers(cycles) == [0, expected]


class Reference:
    """The contract's words: values as visible in a cycle."""

    def __init__(self, vls: int) -> None:
        self.bits = widths(vls) | dict.fromkeys(HIGH_OF_COUNTER, 64)
        self.values: dict[int, int] = dict.fromkeys(self.bits, 0)
        self.registers: dict[int, tuple[int, bool]] = {
            **{counter: (counter, False) for counter in self.bits},
            **{high: (counter, True) for counter, high in HIGH_OF_COUNTER.items()},
        }
        self.errors = [0] * vls
        self.low = 0
        self.kept: int | None = None

    def cycle(self, access: Access | None, counted: Counted) -> int:
        """Go on to the next cycle; what an access of this one reads in it."""
        before, self.low = self.low, self.low if self.kept is None else self.kept
        self.kept = None
        for counter, amount in counted.items():
            if counter != ERRORS:
                self.values[counter] = min(self.values[counter] + amount, (1 << self.bits[counter]) - 1)
        offset, written = access or (0, None)
        for vl, errors in enumerate(self.errors):
            if offset == ERRORS and written is not None and before >> vl & 1:
                self.errors[vl] = written >> 30 - 2 * vl & 3
            elif counted.get(ERRORS, 0) >> vl & 1:
                self.errors[vl] = min(errors + 1, 3)
        if offset == ERRORS and written is None:
            return sum(errors << 30 - 2 * vl for vl, errors in enumerate(self.errors))
        if offset == PortRegister.EXTENDED_LOW:
            self.low = self.low if written is None else written
            return self.low if written is None else 0
        if offset not in self.registers:
            return 0
        counter, is_high = self.registers[offset]
        if written is not None:
            value = written << 32 | before if is_high else written
            if value < 1 << self.bits[counter]:
                self.values[counter] = value
            return 0
        if is_high:
            self.kept = self.values[counter] & 0xFFFF_FFFF
            return self.values[counter] >> 32
        return min(self.values[counter], 0xFFFF_FFFF)


class Counting:
    """What may be counted, cycle by cycle."""

    def __init__(self, rng: random.Random, vls: int) -> None:
        self._rng = rng
        self._vls = vls
        self._since = dict.fromkeys(Reference(vls).bits, 4000)

    def cycle(self, likely: float) -> dict[int, int]:
        """In the next one."""
        rng = self._rng
        counted: dict[int, int] = {ERRORS: rng.getrandbits(self._vls)}
        for counter, since in self._since.items():
            self._since[counter] += 1
            if rng.random() > likely or not (often(counter) or since):
                continue
            if counter in (Counter.XMIT_DATA, Counter.RCV_DATA):
                # A long packet, or as many words as there were cycles.
                counted[counter] = rng.randint(0, min(since, 2047))
            elif counter == Counter.LINK_ERROR_RECOVERY:
                counted[counter] = rng.randint(1, self._vls)
            elif counter == Counter.XMIT_CONSTRAINT_ERRORS:
                if since < 5:
                    continue
                counted[counter] = rng.randint(1, OTHERS)
            elif counter == Detail.P_KEY_VIOLATIONS:
                if since < 5:
                    continue
                counted[counter] = rng.randint(1, most_violations(OTHERS))
            elif counter in (Counter.RCV_ERRORS, Detail.LOCAL_PHYSICAL_ERRORS):
                counted[counter] = 1 if rng.random() < 0.99 else 0
            else:
                counted[counter] = 1
            self._since[counter] = 0
        return counted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("vls", [1, 15])
def test_counters_under_random_accesses(seed: int, vls: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    edges = [0, 1, 14, 15, 254, 255, 256, 0xF000, 0xFFF0, 0xFFFE, 0xFFFF, 0x1_0000]
    edges += [0xFFFF_0000, 0xFFFF_F000, 0xFFFF_FFFE, 0xFFFF_FFFF]
    cycles: list[Cycle] = []
    reference, counting = Reference(vls), Counting(rng, vls)
    for place in range(2000):
        access = None
        recent = sum(before is not None for before, _ in cycles[-29:])
        if recent < 15 and rng.random() < (0.1, 0.3, 0.8)[seed % 3]:
            others = [PortRegister.EXTENDED_LOW, ERRORS, rng.choice([*PortRegister]), VL_XMIT_WAIT + rng.randrange(16)]
            offset = rng.choice([*reference.registers, *others])
            access = offset, rng.choice(edges) if rng.random() < 0.3 else None
        cycles.append((access, counting.cycle((0.02, 0.4, 1)[place // 200 % 3])))
    assert counter_bench.run(vls, cycles) == [0, 0, *(reference.cycle(*cycle) for cycle in cycles)]
