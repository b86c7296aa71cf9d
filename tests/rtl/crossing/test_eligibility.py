"""Whether a head may go by its output's credits (docs/pipeline.md, section 7)."""

from typing import Any

import pytest
from amaranth.hdl import Cat, Module, Signal

from rtl.crossing.eligibility import data_eligible, room_layout, room_of
from rtl.widths import CREDIT_BITS, need_bits
from tests.rtl.simulation import Simulation
from wire.flow_control import CREDIT_WINDOW


@pytest.mark.slow
@pytest.mark.parametrize("mtu", [256, 512, 1024, 2048, 4096])
def test_a_head_may_go_if_what_it_leaves_is_at_most_half_of_the_range(mtu: int) -> None:
    """All credits that there can be, and heads of all sizes."""
    bits, credit, swallowed = need_bits(mtu), Signal(CREDIT_BITS), Signal()
    needs = range(1, 1 << bits)
    room, may_go = Signal(room_layout(bits)), Signal(len(needs))
    m = Module()
    m.d.comb += [
        room.eq(room_of(credit, bits)),
        may_go.eq(Cat(data_eligible(room, Signal(bits, init=need), swallowed) for need in needs)),
    ]

    async def bench(ctx: Any) -> None:
        for value in range(1 << CREDIT_BITS):
            ctx.set(credit, value)
            expected = [(value - need) % (1 << CREDIT_BITS) <= CREDIT_WINDOW for need in needs]
            assert ctx.get(may_go) == sum(goes << place for place, goes in enumerate(expected)), f"credit {value}"
        ctx.set(swallowed, 1)
        for value in range(1 << CREDIT_BITS):
            ctx.set(credit, value)
            assert ctx.get(may_go) == (1 << len(needs)) - 1, "needs no credits"

    Simulation(m).run(bench)
