"""First blocks of heads: each is there two cycles after the one before its head appears."""

import random
from typing import Any

import pytest

from rtl.crossing.first_blocks import FirstBlocks
from tests.campaigns import first_of
from tests.rtl.simulation import Simulation

OUTPUTS = 3
QUEUES = 5
NONE = {"to": 0}


@pytest.mark.parametrize("seed", first_of(range(2), 1))
def test_heads_that_appear_together_are_there_in_time(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    dut = FirstBlocks(OUTPUTS, QUEUES, 7)
    given: list[dict[tuple[int, int], int]] = [{}, {}]  # by cycle: first blocks of heads by (output, queue)
    loads: list[bool] = []
    together = 0

    async def bench(ctx: Any) -> None:
        nonlocal together
        known: dict[tuple[int, int], int] = {}
        starts = False
        for cycle in range(3000):
            # What was given in the cycle before may be there or not: nobody asks for it.
            known.update(given[cycle])
            unsettled = {place for heads in given[cycle + 1 :] for place in heads}
            asked = [rng.randrange(QUEUES) for _ in range(OUTPUTS)]
            for output, queue in enumerate(asked):
                ctx.set(dut.queues[output], queue)
            for output, queue in enumerate(asked):
                if (output, queue) in known and (output, queue) not in unsettled:
                    assert ctx.get(dut.firsts[output]) == known[output, queue], f"cycle {cycle}"

            starts = not starts and rng.random() < 0.8
            loads.append(sum(loads[-3:]) < 2 and rng.random() < 0.8)
            together += starts and loads[-1]
            heads: dict[tuple[int, int], int] = {}
            queues = rng.sample(range(QUEUES), 2)
            for place, comes, queue in ((dut.starting, starts, queues[0]), (dut.loading, loads[-1], queues[1])):
                to, first = rng.randrange(1, 1 << OUTPUTS), rng.randrange(128)
                ctx.set(place, {"to": to, "queue": queue, "first": first} if comes else NONE)
                if comes:
                    heads |= {(output, queue): first for output in range(OUTPUTS) if to >> output & 1}
            given.append(heads)
            await ctx.tick()

    Simulation(dut).run(bench)
    assert together > 300
