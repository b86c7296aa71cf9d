"""Whether a head may go by its output's credits (docs/pipeline.md, section 7)."""

from typing import Any

import pytest
from amaranth.hdl import Cat, Module, Signal

from rtl.crossing.eligibility import ROOM, data_eligible, room_of
from rtl.widths import CREDIT_BITS, NEED_BITS
from tests.rtl.simulation import Simulation
from wire.flow_control import CREDIT_WINDOW

NEEDS = range(1, 1 << NEED_BITS)


@pytest.mark.slow
def test_a_head_may_go_if_what_it_leaves_is_at_most_half_of_the_range() -> None:
    """All credits that there can be, and heads of all sizes."""
    credit, swallowed = Signal(CREDIT_BITS), Signal()
    room, may_go = Signal(ROOM), Signal(len(NEEDS))
    m = Module()
    m.d.comb += [
        room.eq(room_of(credit)),
        may_go.eq(Cat(data_eligible(room, Signal(NEED_BITS, init=need), swallowed) for need in NEEDS)),
    ]

    async def bench(ctx: Any) -> None:
        for value in range(1 << CREDIT_BITS):
            ctx.set(credit, value)
            expected = [(value - need) % (1 << CREDIT_BITS) <= CREDIT_WINDOW for need in NEEDS]
            assert ctx.get(may_go) == sum(goes << place for place, goes in enumerate(expected)), f"credit {value}"
        ctx.set(swallowed, 1)
        for value in range(1 << CREDIT_BITS):
            ctx.set(credit, value)
            assert ctx.get(may_go) == (1 << len(NEEDS)) - 1, "needs no credits"

    Simulation(m).run(bench)
