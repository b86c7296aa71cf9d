"""A port's counters of up to 32 bits."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.registers.counters import AMOUNTS, PortCounters
from wire.registers import COUNTER_WIDTHS, HIGH_OF_COUNTER, Counter

COUNTERS = [counter for counter in Counter if counter not in HIGH_OF_COUNTER]
VARYING = dict(iter(AMOUNTS))


def run(steps: list[dict[str, Any]], counter: Counter) -> list[int]:
    """The counter's value after each step: {"add": n} and / or {"write": value, "at": offset}."""
    dut = PortCounters()
    found = []

    async def drive(ctx: Any) -> None:
        for step in steps:
            ctx.set(dut.counts[counter.name], "add" in step)
            if counter.name in VARYING:
                ctx.set(dut.amounts[counter.name], step.get("add", 9))
            ctx.set(dut.reg.select, 1)
            ctx.set(dut.reg.write, "write" in step)
            ctx.set(dut.reg.wdata, step.get("write", 0))
            ctx.set(dut.reg.offset, step.get("at", counter))
            await ctx.tick()
            found.append(ctx.get(dut.values[counter.name]))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return found


@pytest.mark.parametrize("counter", COUNTERS)
def test_a_counter_stops_at_all_ones(counter: Counter) -> None:
    top = (1 << COUNTER_WIDTHS[counter]) - 1
    assert run([{"write": top - 1}, {"add": 1}, {"add": 1}, {"add": 1}], counter) == [top - 1, top, top, top]


@pytest.mark.parametrize("counter", [c for c in COUNTERS if c.name in VARYING])
def test_a_large_step_stops_there_too(counter: Counter) -> None:
    top = (1 << COUNTER_WIDTHS[counter]) - 1
    step = 1 << VARYING[counter.name].width - 1
    assert run([{"write": top - step + 1}, {"add": step}], counter) == [top - step + 1, top]


@pytest.mark.parametrize("counter", COUNTERS)
def test_a_write_sets_the_counter_and_what_is_counted_then_is_lost(counter: Counter) -> None:
    assert run([{"add": 1}, {"write": 7, "add": 1}, {"add": 1}], counter) == [1, 7, 8]


def test_a_write_elsewhere_changes_nothing() -> None:
    assert run([{"write": 7, "at": Counter.RCV_ERRORS}], Counter.SYMBOL_ERROR) == [0]


@pytest.mark.parametrize("counter", [c for c, width in COUNTER_WIDTHS.items() if width < 32])
def test_a_value_too_wide_is_ignored(counter: Counter) -> None:
    assert run([{"write": 3}, {"write": 1 << COUNTER_WIDTHS[counter]}], counter) == [3, 3]
