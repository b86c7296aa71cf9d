"""Inputs and outputs of a crossing number those at the other side without the one of their own number."""

from typing import Any

import pytest
from amaranth.hdl import Module, Signal

from rtl.crossing.others import number_at, of_others, others, others_for, place_for, place_of, turned
from tests.rtl.simulation import Simulation


@pytest.mark.parametrize("count", [2, 3, 4, 9])
def test_each_other_has_a_place_in_order_and_a_number_there(count: int) -> None:
    bits = range(count)
    number, own, mask = Signal(bits), Signal(bits), Signal(count)
    place, of_mask = Signal(bits), Signal(count - 1)
    known = [Signal(count - 1, name=f"known_{i}") for i in bits]
    numbers = [Signal(bits, name=f"number_{i}") for i in bits]
    m = Module()
    m.d.comb += [place.eq(place_for(own, number)), of_mask.eq(others_for(own, mask))]
    m.d.comb += [known[i].eq(of_others(i, mask)) for i in bits]
    m.d.comb += [numbers[i].eq(number_at(place, i)) for i in bits]

    async def bench(ctx: Any) -> None:
        for i in bits:
            ctx.set(own, i)
            assert others(i, count) == [other for other in bits if other != i]
            for at, other in enumerate(others(i, count)):
                ctx.set(number, other)
                ctx.set(mask, 1 << other)
                assert ctx.get(place) == place_of(other, i) == at
                assert ctx.get(numbers[i]) == other
                assert ctx.get(of_mask) == ctx.get(known[i]) == 1 << at
            ctx.set(mask, 1 << i)
            assert ctx.get(of_mask) == ctx.get(known[i]) == 0

    Simulation(m).run(bench)


def test_what_one_side_says_of_others_is_what_these_hear() -> None:
    """Of four inputs, the last of which is an agent's, and three ports."""
    ports, inputs = 3, 4
    masks = [Signal(len(others(i, ports)), name=f"mask_{i}") for i in range(inputs)]
    heard = [Signal(inputs - 1, name=f"heard_{o}") for o in range(ports)]
    m = Module()
    m.d.comb += [place.eq(mask) for place, mask in zip(heard, turned(masks, ports), strict=True)]

    async def bench(ctx: Any) -> None:
        for i in range(inputs):
            for o in others(i, ports):
                ctx.set(masks[i], 1 << place_of(o, i))
                expected = [1 << place_of(i, o) if port == o else 0 for port in range(ports)]
                assert [ctx.get(mask) for mask in heard] == expected
            ctx.set(masks[i], 0)

    Simulation(m).run(bench)
