"""Comparison with a constant, against `<`."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal

from rtl.below import below
from tests.rtl.simulation import Simulation

_BITS = 4
_LIMITS = range((1 << _BITS) + 2)


def test_each_value_is_below_the_limits_above_it() -> None:
    m, value, found = Module(), Signal(_BITS), Signal(len(_LIMITS))
    m.d.comb += found.eq(Cat(below(value, limit) for limit in _LIMITS))
    seen = []

    async def bench(ctx: Any) -> None:
        for number in range(1 << _BITS):
            ctx.set(value, number)
            seen.append(ctx.get(found))

    Simulation(m).run(bench)
    assert seen == [sum(1 << limit for limit in _LIMITS if number < limit) for number in range(1 << _BITS)]
