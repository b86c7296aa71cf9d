"""Whether a head may go by its output's credits (docs/pipeline.md, section 7)."""

from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from rtl.crossing.eligibility import data_eligible, room_of
from rtl.widths import CREDIT_BITS, NEED_BITS
from wire.flow_control import CREDIT_WINDOW


@pytest.mark.parametrize("need", [1, 2, 33, 126, 127])
@pytest.mark.slow
def test_a_head_may_go_if_what_it_leaves_is_at_most_half_of_the_range(need: int) -> None:
    credit, swallow, oversize = Signal(CREDIT_BITS), Signal(), Signal()
    may_go = Signal()
    m = Module()
    m.d.comb += may_go.eq(data_eligible(room_of(credit, swallow), Signal(NEED_BITS, init=need), oversize))

    async def bench(ctx: Any) -> None:
        for value in range(1 << CREDIT_BITS):
            ctx.set(credit, value)
            assert ctx.get(may_go) == ((value - need) % (1 << CREDIT_BITS) <= CREDIT_WINDOW), f"credit {value}"
        for exception in (swallow, oversize):
            ctx.set(exception, 1)
            for value in range(1 << CREDIT_BITS):
                ctx.set(credit, value)
                assert ctx.get(may_go), "needs no credits"
            ctx.set(exception, 0)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
