"""Which offer an input accepts (docs/pipeline.md, section 7), and what goes with it."""

import random
from typing import Any

import pytest

from rtl.crossing.acceptance import Acceptance
from tests.rtl.simulation import Simulation

BLOCK_BITS = 4


@pytest.mark.parametrize("outputs", [1, 2, 5, 6])
def test_outputs_are_accepted_in_turn(outputs: int) -> None:
    rng = random.Random(outputs)
    dut = Acceptance(outputs, BLOCK_BITS)

    async def bench(ctx: Any) -> None:
        out_ptr = 0
        for cycle in range(400):
            offers = rng.randrange(1 << outputs) & rng.randrange(1 << outputs)
            firsts = [rng.randrange(1, 1 << BLOCK_BITS) for _ in range(outputs)]
            ctx.set(dut.offers, offers)
            ctx.set(dut.firsts, firsts)
            accepted, first = ctx.get(dut.accepted), ctx.get(dut.first)
            if offers:
                turns = [(out_ptr + step) % outputs for step in range(outputs)]
                output = next(output for output in turns if offers >> output & 1)
                assert (accepted, first) == (1 << output, firsts[output]), f"cycle {cycle}"
                out_ptr = (output + 1) % outputs
            else:
                assert (accepted, first) == (0, 0), f"cycle {cycle}"
            await ctx.tick()

    Simulation(dut).run(bench)
