"""The CC_Key alone: when what shows (docs/management.md, section 7)."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from rtl.management.cc_key import CcKey
from tests.rtl.simulation import Simulation
from wire.congestion_control import CcAttribute
from wire.registers import congestion_address

KEY = 5
SECOND, PERIOD = 3, 4


@cache
def _simulated() -> tuple[CcKey, Simulation]:
    dut = CcKey()
    return dut, Simulation(dut)


def run(script: Any) -> None:
    dut, simulation = _simulated()

    async def bench(ctx: Any) -> None:
        await script(ctx, dut)

    simulation.run(bench)


def access(ctx: Any, dut: CcKey, word: int, **kind: int) -> None:
    offset = congestion_address(CcAttribute.CONGESTION_KEY_INFO, word) & 0xFFFF
    ctx.set(dut.access, {"select": 1, "offset": offset} | kind)


async def write(ctx: Any, dut: CcKey, word: int, value: int) -> None:
    access(ctx, dut, word, write=1, wdata=value)
    await ctx.tick()
    ctx.set(dut.access, {})


async def read(ctx: Any, dut: CcKey, word: int) -> int:
    """What is visible in the next cycle, which this is then."""
    access(ctx, dut, word, read=1)
    await ctx.tick()
    ctx.set(dut.access, {})
    return int(ctx.get(dut.shown))


async def judge(ctx: Any, dut: CcKey, key: int, *, get: bool = False) -> bool:
    """The key of a request is here before it is judged; that of the same request again takes no cycle more."""
    if ctx.get(dut.given) != key:
        ctx.set(dut.given, key)
        await ctx.tick()
    ctx.set(dut.get, get)
    ctx.set(dut.check, 1)
    answered = bool(ctx.get(dut.answered))
    await ctx.tick()
    ctx.set(dut.check, 0)
    return answered


async def lock(ctx: Any, dut: CcKey, protect: bool = True, period: int = PERIOD) -> None:
    ctx.set(dut.lease_second, SECOND)
    await write(ctx, dut, 9, KEY)
    await write(ctx, dut, 10, protect << 31 | period)


def test_a_key_counts_from_the_cycle_in_which_it_is_visible() -> None:
    async def script(ctx: Any, dut: CcKey) -> None:
        assert await judge(ctx, dut, 7), "without a key all are good"
        access(ctx, dut, 9, write=1, wdata=KEY)
        assert await judge(ctx, dut, 7)
        ctx.set(dut.access, {})
        assert not await judge(ctx, dut, 7)
        assert await judge(ctx, dut, KEY)
        assert not await judge(ctx, dut, KEY | 1 << 63)
        assert await read(ctx, dut, 11) == 2 << 16

    run(script)


def test_a_lease_is_over_in_the_cycle_that_is_its_period_after_the_violation() -> None:
    async def script(ctx: Any, dut: CcKey) -> None:
        await lock(ctx, dut)
        found = [await judge(ctx, dut, 7, get=True)]
        for _ in range(SECOND * PERIOD + 2):  # each judges in the cycle after the one before
            ctx.set(dut.given, 7)
            ctx.set(dut.get, 1)
            found.append(bool(ctx.get(dut.answered)))
            await ctx.tick()
        assert found == [False] * SECOND * PERIOD + [True] * 3
        assert await read(ctx, dut, 10) == PERIOD, "CC_KeyProtectBit is 0"
        assert not await judge(ctx, dut, 7), "a Set is none the less a violation"

    run(script)


def test_a_good_key_stops_the_lease_and_violations_do_not_begin_it_anew() -> None:
    async def script(ctx: Any, dut: CcKey) -> None:
        await lock(ctx, dut)
        await judge(ctx, dut, 7)
        await judge(ctx, dut, KEY)
        for _ in range(2 * SECOND * PERIOD):
            await ctx.tick()
        assert not await judge(ctx, dut, 7, get=True)
        for _ in range(SECOND * PERIOD - 2):
            await ctx.tick()
        assert not await judge(ctx, dut, 7, get=True)
        assert await judge(ctx, dut, 7, get=True)

    run(script)


@pytest.mark.parametrize("violations", [3, pytest.param((1 << 16) + 3, marks=pytest.mark.deep)])
def test_violations_stop_at_all_ones_and_only_0_clears_them(violations: int) -> None:
    counted = min(violations, 0xFFFF) << 16

    async def script(ctx: Any, dut: CcKey) -> None:
        await lock(ctx, dut, period=0)
        ctx.set(dut.check, 1)
        for _ in range(violations):
            await ctx.tick()
        ctx.set(dut.check, 0)
        assert await read(ctx, dut, 11) == counted
        await write(ctx, dut, 11, 1 << 16)
        assert await read(ctx, dut, 11) == counted
        await write(ctx, dut, 11, 0xFFFF)
        assert await read(ctx, dut, 11) == 0

    run(script)
