"""The clock of time limits and the life time, against section 7.2 of docs/pipeline.md."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module, Signal

from rtl.crossing.time_limits import LifeClock, LifeTime, Stamp, Tick, clock_of, is_tick_of, outlived
from tests.campaigns import first_of
from tests.rtl.simulation import Simulation
from wire.time_limits import MAX_EXPONENT, NO_LIMIT, TICK_CYCLES

EXPONENTS = range(NO_LIMIT + 1)


def is_tick(cycle: int, exponent: int) -> bool:
    return exponent <= 19 and cycle % (256 << exponent) == 0


def test_ticks_of_an_exponent_are_256_cycles_shifted_by_it_apart() -> None:
    dut = LifeTime()

    async def bench(ctx: Any) -> None:
        for cycle in range(1, 8 * TICK_CYCLES + 2):
            tick = ctx.get(dut.limit.tick)
            seen = [bool(tick.valid and exponent <= tick.highest) for exponent in EXPONENTS]
            assert seen == [is_tick(cycle, exponent) for exponent in EXPONENTS], f"cycle {cycle}"
            await ctx.tick()

    Simulation(dut).run(bench)


def test_a_tick_is_one_of_every_exponent_up_to_its_highest() -> None:
    m = Module()
    tick, exponent, seen = Signal(Tick), Signal(5), Signal()
    m.d.comb += seen.eq(is_tick_of(tick, exponent))

    async def bench(ctx: Any) -> None:
        for valid in range(2):
            for highest in range(MAX_EXPONENT + 1):
                ctx.set(tick, {"valid": valid, "highest": highest})
                for value in EXPONENTS:
                    ctx.set(exponent, value)
                    assert ctx.get(seen) == (valid and value <= highest)

    Simulation(m).run(bench)


@pytest.mark.parametrize("seed", first_of(range(2), 1))
def test_the_life_clock_counts_ticks_of_what_life_time_is_in_each_cycle(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    dut = LifeTime()
    exponents = [NO_LIMIT]
    while len(exponents) < 60 * TICK_CYCLES:
        exponents += [rng.choice((0, 0, 1, 2, 20, NO_LIMIT))] * rng.choice((1, 300, 3000))

    async def bench(ctx: Any) -> None:
        ticks = 0
        for cycle, exponent in enumerate(exponents):
            follows = exponents[(cycle + 1) % len(exponents)]
            ctx.set(dut.exponent, exponent)
            ctx.set(dut.exponent_follows, follows)
            ticks += is_tick(cycle, exponent)
            assert ctx.get(dut.clock_follows) == clock_of(ticks, limits=follows <= MAX_EXPONENT), f"cycle {cycle}"
            await ctx.tick()
        assert ticks > 32, "it wraps"

    Simulation(dut).run(bench)


def test_a_packet_has_outlived_its_time_from_the_fourth_tick_behind_its_stamp_on() -> None:
    m = Module()
    clock, stamp, too_old = Signal(LifeClock), Signal(Stamp), Signal()
    m.d.comb += too_old.eq(outlived(clock, stamp))

    async def bench(ctx: Any) -> None:
        for limits in (False, True):
            for now in range(32):
                ctx.set(clock, clock_of(now, limits=limits))
                for before in range(32):
                    ctx.set(stamp, before)
                    assert ctx.get(too_old) == (limits and (now - before) % 32 >= 4), f"{before} at {now}"

    Simulation(m).run(bench)
