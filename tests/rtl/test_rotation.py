"""The rotating choice, against its definition, for every set and place of five."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Signal, Value

from rtl.rotation import RotatingChoice, behind, first_from, how_many, lowest, number_of
from tests.rtl.simulation import Simulation

WIDTH = 5


def values_of(function: Callable[..., Value], cases: list[tuple[int, ...]]) -> list[int]:
    m = Module()
    inputs = [Signal(WIDTH, name=f"input_{i}") for i in range(len(cases[0]))]
    result = Signal(WIDTH)
    m.d.comb += result.eq(function(m, *inputs))
    seen = []

    async def bench(ctx: Any) -> None:
        for case in cases:
            for signal, value in zip(inputs, case, strict=True):
                ctx.set(signal, value)
            seen.append(ctx.get(result))

    Simulation(m).run(bench)
    return seen


def first_cyclic(requests: int, place: int) -> int:
    for step in range(WIDTH):
        number = (place + step) % WIDTH
        if requests >> number & 1:
            return 1 << number
    return 0


def test_the_first_request_from_a_place_on_is_chosen() -> None:
    cases = [(requests, place) for requests in range(1 << WIDTH) for place in range(WIDTH)]
    masks = [(requests, (1 << WIDTH) - (1 << place)) for requests, place in cases]
    assert values_of(first_from, masks) == [first_cyclic(*case) for case in cases]


def test_after_a_choice_the_one_behind_it_is_first() -> None:
    chosen = [(1 << number,) for number in range(WIDTH)]
    place_masks = values_of(behind, chosen)
    everyone = (1 << WIDTH) - 1
    after = values_of(first_from, [(everyone, mask) for mask in place_masks])
    assert after == [1 << (number + 1) % WIDTH for number in range(WIDTH)]


def test_a_one_hot_mask_has_a_number() -> None:
    numbers = values_of(lambda _, chosen: number_of(chosen), [(mask,) for mask in (0, 1, 2, 4, 8, 16)])
    assert numbers == [0, 0, 1, 2, 3, 4]


def test_the_lowest_request_is_found() -> None:
    sets = list(range(1 << WIDTH))
    assert values_of(lowest, [(requests,) for requests in sets]) == [requests & -requests for requests in sets]


def test_all_who_ask_are_served_in_turn() -> None:
    dut = RotatingChoice(WIDTH)
    chosen = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.requests, 0b10110)
        for served in (True, True, False, True, True):
            chosen.append(ctx.get(dut.chosen))
            ctx.set(dut.serve, served)
            ctx.set(dut.served, chosen[-1])
            await ctx.tick()

    Simulation(dut).run(bench)
    assert chosen == [0b00010, 0b00100, 0b10000, 0b10000, 0b00010]


def test_bits_are_counted() -> None:
    masks = [(mask,) for mask in range(1 << WIDTH)]
    assert values_of(lambda _, mask: how_many(mask), masks) == [mask.bit_count() for (mask,) in masks]
