"""A choice by a code has the value that is chosen, and nothing where none is."""

from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.coded_choice import CodedChoice
from tests.rtl.simulation import Simulation

BITS = 8


class Chosen(wiring.Component):
    """One of so many values."""

    def __init__(self, count: int) -> None:
        self._count = count
        super().__init__({"chosen": In(count), "values": In(data.ArrayLayout(BITS, count)), "value": Out(BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        choice = CodedChoice(m, self.chosen)
        m.d.comb += self.value.eq(choice.of([self.values[number] for number in range(self._count)]))
        return m


@pytest.mark.parametrize("count", [1, 2, 3, 6, 10, 16, 17, 18, 31, 37])
def test_every_value_can_be_chosen(count: int) -> None:
    dut = Chosen(count)

    async def bench(ctx: Any) -> None:
        for chosen in (*range(count), None, *reversed(range(count))):
            ctx.set(dut.chosen, 0 if chosen is None else 1 << chosen)
            values = [(7 * number + count) % 251 + 1 for number in range(count)]
            ctx.set(dut.values, values)
            assert ctx.get(dut.value) == (0 if chosen is None else values[chosen])

    Simulation(dut).run(bench)
