"""PortXmitWait counts whole ticks of waiting."""

import pytest

from tests.rtl.link.bench import PortBench
from wire.codes import VL15, PortState
from wire.registers import VL_XMIT_WAIT, Counter, PortRegister


def waiting(*, since: int, until: int = 1000) -> PortBench:
    port = PortBench()
    port.activate()
    port.watch = Counter.XMIT_WAIT
    port.at(since, waiting=1)
    port.at(until, waiting=0)
    return port


def test_the_first_tick_starts_with_cycle_0() -> None:
    port = waiting(since=10)
    port.run(150)
    # Ticks of 32 cycles; the first is not all waiting.
    assert port.counts(Counter.XMIT_WAIT) == [(64, 1), (96, 2), (128, 3)]


@pytest.mark.parametrize(("since", "until", "count"), [(32, 64, 1), (33, 64, 0), (32, 63, 0)])
def test_a_tick_counts_only_if_all_of_it_was_waiting(since: int, until: int, count: int) -> None:
    port = waiting(since=since, until=until)
    port.run(120)
    assert port.last_watched() == count


@pytest.mark.parametrize("tick", [0, 1, 9])
def test_writing_the_tick_starts_one(tick: int) -> None:
    port = waiting(since=10)
    port.write(20, PortRegister.TICK, tick)  # visible at 22
    port.run(60)
    expected = [(22 + i * (tick + 1), i) for i in range(1, 40 // (tick + 1)) if 22 + i * (tick + 1) < 58]
    assert [pair for pair in port.counts(Counter.XMIT_WAIT) if pair[0] < 58] == expected


def test_a_port_that_is_not_active_does_not_wait() -> None:
    port = waiting(since=10)
    port.write(90, PortRegister.STATE, PortState.DOWN)
    port.run(200)
    assert port.last_watched() == 1


def test_an_idle_output_does_not_wait() -> None:
    port = waiting(since=1000)
    port.run(100)
    assert port.last_watched() == 0


@pytest.mark.parametrize("vls", [1, 4])
def test_each_slot_waits_for_itself(vls: int) -> None:
    """Whatever of them waits, and whether the output does."""
    for slot in range(vls + 1):
        vl = VL15 if slot == vls else slot
        port = PortBench(vls=vls)
        port.activate()
        port.watch = VL_XMIT_WAIT + vl
        every = (1 << vls + 1) - 1
        port.at(10, slots_waiting=every)
        port.pulse(40, waiting=1)
        # A tick in which this slot alone does not wait all the time, one in which it alone does.
        port.at(70, slots_waiting=every ^ 1 << slot)
        port.at(71, slots_waiting=every)
        port.at(96, slots_waiting=1 << slot)
        port.run(150)
        assert port.counts(VL_XMIT_WAIT + vl) == [(64, 1), (128, 2)]


def test_waiting_of_the_output_is_no_slots() -> None:
    port = PortBench()
    port.activate()
    port.watch = VL_XMIT_WAIT
    port.at(10, waiting=1)
    port.run(100)
    assert port.last_watched() == 0
