"""A lease, whose period and seconds may be as short as one cycle."""

from collections.abc import Collection
from typing import Any

import pytest

from rtl.management.lease import Lease
from tests.rtl.simulation import Simulation

_PERIOD_BITS = 3
_CYCLES = 40


def expirations(period: int, second: int, violations: set[int], stops: Collection[int] = ()) -> list[int]:
    """The cycles in which a lease is over, if keys are violated and good in these."""
    dut = Lease(_PERIOD_BITS)
    seen = []

    async def bench(ctx: Any) -> None:
        for cycle in range(_CYCLES):
            # What a lease began with stays as it was.
            ctx.set(dut.period, period if cycle in violations else 1)
            ctx.set(dut.second, second if cycle in violations else 1)
            ctx.set(dut.violated, cycle in violations)
            ctx.set(dut.stops, cycle in stops)
            if ctx.get(dut.expired):
                seen.append(cycle)
            await ctx.tick()

    Simulation(dut).run(bench)
    return seen


@pytest.mark.parametrize("second", [1, 2, 3, 5])
@pytest.mark.parametrize("period", [1, 2, 3, 7])
def test_a_lease_is_over_after_as_many_cycles_as_its_seconds_have(period: int, second: int) -> None:
    length = period * second
    assert expirations(period, second, {2}) == [2 + length]
    if length > 1:
        assert expirations(period, second, {2, 3}) == [2 + length]
        assert expirations(period, second, {2}, {1 + length}) == []
    # In the cycle in which one is over the next may begin.
    assert expirations(period, second, {2, 2 + length}) == [2 + length, *([2 + 2 * length] if length < 19 else [])]


def test_without_a_period_there_is_no_lease() -> None:
    assert expirations(0, 1, {2}) == []
