"""A port's counters of 64 bits."""

from collections.abc import Sequence

import pytest

from rtl.registers.counter_places import amounts_layout
from tests.rtl.registers import counter_bench
from tests.rtl.registers.counter_bench import OTHERS, Cycle, read, write
from wire.registers import HIGH_OF_COUNTER, Counter, CounterHigh, PacketCounter, PortRegister

VLS = 2
VARYING = [counter for counter in HIGH_OF_COUNTER if counter.name in amounts_layout(VLS, OTHERS).members]
LOW = PortRegister.EXTENDED_LOW
NARROW_TOP, TOP = (1 << 32) - 1, (1 << 64) - 1
EVERY = pytest.mark.parametrize("counter", list(HIGH_OF_COUNTER))


def run(cycles: Sequence[Cycle]) -> list[int]:
    return counter_bench.run(VLS, cycles)


def answers(cycles: Sequence[Cycle]) -> list[int]:
    return counter_bench.answers(VLS, cycles)


def put(counter: Counter | PacketCounter, value: int) -> list[Cycle]:
    """Set all 64 bits."""
    return [write(LOW, value & NARROW_TOP), write(HIGH_OF_COUNTER[counter], value >> 32)]


def whole(counter: Counter | PacketCounter) -> list[Cycle]:
    """Read the counter's register, then all 64 bits of it."""
    return [read(counter), read(HIGH_OF_COUNTER[counter]), read(LOW)]


@EVERY
def test_at_reset_all_is_0(counter: Counter | PacketCounter) -> None:
    assert answers(whole(counter)) == [0, 0, 0]


@EVERY
def test_a_cycle_without_a_read_gives_0(counter: Counter | PacketCounter) -> None:
    cycles = [*put(counter, TOP), write(counter, 7), write(LOW, 7), (None, {})]
    assert run(cycles) == [0] * (len(cycles) + 2)


@EVERY
def test_a_counter_carries_into_its_upper_half(counter: Counter | PacketCounter) -> None:
    value = (3 << 32) - 1
    assert answers([*put(counter, value), (None, {counter: 1}), *whole(counter)]) == [NARROW_TOP, 3, 0]


@EVERY
@pytest.mark.parametrize("upper", [1, 1 << 31, NARROW_TOP])
def test_the_register_of_32_bits_stops_at_all_ones(counter: Counter | PacketCounter, upper: int) -> None:
    assert answers([*put(counter, 5), read(counter)]) == [5]
    assert answers([*put(counter, upper << 32 | 5), read(counter)]) == [NARROW_TOP]


@EVERY
def test_a_counter_stops_at_64_ones(counter: Counter | PacketCounter) -> None:
    count: Cycle = (None, {counter: 1})
    cycles = [*put(counter, TOP - 1), *whole(counter)]
    for _ in range(3):
        cycles += [count, *whole(counter)]
    found = answers(cycles)
    assert found[:3] == [NARROW_TOP, NARROW_TOP, NARROW_TOP - 1]
    assert found[3:] == [NARROW_TOP] * 9


@EVERY
def test_a_counter_that_stops_does_so_in_the_cycle_of_a_read_too(counter: Counter | PacketCounter) -> None:
    for register in (counter, HIGH_OF_COUNTER[counter]):
        cycles: list[Cycle] = [*put(counter, TOP), ((register, None), {counter: 1}), (None, {}), read(LOW)]
        assert answers(cycles) == [NARROW_TOP, NARROW_TOP]


@pytest.mark.parametrize("counter", VARYING)
def test_a_large_step_stops_there_too(counter: Counter | PacketCounter) -> None:
    step: Cycle = (None, {counter: 1000})
    assert answers([*put(counter, TOP - 3), step, *whole(counter), step, *whole(counter)]) == [NARROW_TOP] * 6
    assert answers([*put(counter, TOP - 1000), step, *whole(counter)]) == [NARROW_TOP] * 3


@EVERY
def test_a_write_to_the_register_of_32_bits_sets_all_64(counter: Counter | PacketCounter) -> None:
    assert answers([*put(counter, TOP), write(counter, 9), *whole(counter)]) == [9, 0, 9]


@EVERY
def test_what_is_counted_in_the_cycle_of_a_write_is_lost(counter: Counter | PacketCounter) -> None:
    for access in ((counter, 5), (HIGH_OF_COUNTER[counter], 0)):
        cycles: list[Cycle] = [write(LOW, 5), (access, {counter: 3}), read(counter)]
        assert answers(cycles) == [5]
    full: list[Cycle] = [*put(counter, NARROW_TOP), ((counter, 5), {counter: 3}), *whole(counter)]
    assert answers(full) == [5, 0, 5]


@EVERY
def test_a_carry_that_a_write_overtakes_is_lost(counter: Counter | PacketCounter) -> None:
    count: Cycle = (None, {counter: 1})
    assert answers([*put(counter, NARROW_TOP), count, write(counter, 5), *whole(counter)]) == [5, 0, 5]


@EVERY
def test_a_write_of_the_upper_half_takes_the_lower_from_extended_low(counter: Counter | PacketCounter) -> None:
    high = HIGH_OF_COUNTER[counter]
    assert answers([write(LOW, 6), write(high, 4), write(LOW, 7), read(high), read(LOW)]) == [4, 6]


@EVERY
def test_reading_the_upper_half_keeps_the_lower_of_that_cycle(counter: Counter | PacketCounter) -> None:
    count: Cycle = (None, {counter: 1})
    high = HIGH_OF_COUNTER[counter]
    # Counted in the read's own cycle: it shows in the next, of which the read is.
    cycles: list[Cycle] = [*put(counter, 8 << 32 | 20), ((high, None), {counter: 1}), count, count, read(LOW)]
    assert answers(cycles) == [8, 21]


@EVERY
def test_reading_the_register_of_32_bits_keeps_nothing(counter: Counter | PacketCounter) -> None:
    assert answers([*put(counter, 20), write(LOW, 3), read(counter), read(LOW), read(LOW)]) == [20, 3, 3]


@EVERY
def test_extended_low_shows_what_was_kept_from_the_next_cycle_on(counter: Counter | PacketCounter) -> None:
    high = HIGH_OF_COUNTER[counter]
    assert answers([*put(counter, 20), write(LOW, 3), read(high), read(LOW), read(LOW)]) == [0, 20, 20]


def test_extended_low_is_one_for_all_counters_and_can_be_written() -> None:
    cycles: list[Cycle] = [write(LOW, NARROW_TOP), read(LOW)]
    for value, counter in enumerate(HIGH_OF_COUNTER, start=1):
        cycles += put(counter, value)
    for counter in HIGH_OF_COUNTER:
        cycles += [read(HIGH_OF_COUNTER[counter]), (None, {}), read(LOW)]
    assert answers(cycles) == [NARROW_TOP, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]


@EVERY
def test_a_write_to_extended_low_wins_over_a_read_that_would_be_kept(counter: Counter | PacketCounter) -> None:
    high = HIGH_OF_COUNTER[counter]
    for waits, kept in ((0, 3), (1, 3)):
        cycles = [*put(counter, 20), read(high), *[(None, {})] * waits, write(LOW, 3), read(LOW)]
        assert answers(cycles) == [0, kept]
    assert answers([*put(counter, 20), write(LOW, 3), read(high), (None, {}), read(LOW)]) == [0, 20]


def test_a_write_of_the_upper_half_takes_what_a_read_kept_a_cycle_later() -> None:
    source, target = Counter.RCV_DATA, Counter.XMIT_PKTS
    for waits, lower in ((0, 3), (1, 20)):
        cycles = [*put(source, 20), write(LOW, 3), read(HIGH_OF_COUNTER[source]), *[(None, {})] * waits]
        assert answers([*cycles, write(HIGH_OF_COUNTER[target], 0), read(target)])[-1] == lower


def test_all_counters_carry_at_once() -> None:
    cycles: list[Cycle] = []
    for value, counter in enumerate(HIGH_OF_COUNTER, start=1):
        cycles += put(counter, (value << 32) - 1)
    cycles += [(None, dict.fromkeys(HIGH_OF_COUNTER, 1))]
    for counter in reversed(HIGH_OF_COUNTER):
        cycles += [read(HIGH_OF_COUNTER[counter]), (None, {}), read(LOW)]
    assert answers(cycles) == [8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0]


def test_other_registers_are_none_of_ours() -> None:
    offsets = [
        offset
        for offset in (*range(0x50), *range(0x60, 0x70))
        if offset not in (*Counter, *PacketCounter, *CounterHigh, LOW, PortRegister.FLOW_CTL_UPDATE_ERRORS)
    ]
    offsets += [register | 0x80 for register in (*HIGH_OF_COUNTER, *CounterHigh, LOW)]
    cycles = [cycle for counter in HIGH_OF_COUNTER for cycle in put(counter, TOP)]
    cycles += [write(offset, 1) for offset in offsets]
    found = answers([*cycles, *map(read, offsets), read(LOW), *map(read, HIGH_OF_COUNTER)])
    assert found == [0] * len(offsets) + [NARROW_TOP] * (1 + len(HIGH_OF_COUNTER))
