"""The rotating choice, against its definition, for every set and place of five."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.sim import Simulator

from rtl.switch.rotation import behind, first_from, number_of

WIDTH = 5


def values_of(function: Callable[..., Value], *arguments: list[tuple[int, ...]]) -> list[int]:
    (cases,) = arguments
    m = Module()
    inputs = [Signal(WIDTH, name=f"input_{i}") for i in range(len(cases[0]))]
    result = Signal(WIDTH)
    m.d.comb += result.eq(function(*inputs))
    seen = []

    async def bench(ctx: Any) -> None:
        for case in cases:
            for signal, value in zip(inputs, case, strict=True):
                ctx.set(signal, value)
            seen.append(ctx.get(result))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
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
    assert values_of(number_of, [(1 << number,) for number in range(WIDTH)]) == list(range(WIDTH))
    assert values_of(number_of, [(0,)]) == [0]
