"""What a trap about a wrong key tells is the latest event as visible at its step 0, whatever comes after."""

import random
from typing import Any

import pytest

from rtl.management.told_events import LatestEvents, told_layout
from tests.rtl.simulation import Simulation


@pytest.mark.parametrize("is_switch", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_told_is_the_latest_event_before_the_trap_begins(is_switch: bool, seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    traps = 1 if is_switch else 2
    events = LatestEvents(told_layout(is_switch), traps)
    latest: dict[int, int] = {}

    async def bench(ctx: Any) -> None:
        told: int | None = None
        since = 0
        for number in range(1, 400):
            happens = rng.randrange(1 << traps) if rng.random() < (0.1, 0.5, 1)[seed] else 0
            begins = rng.choice([*latest]) if latest and rng.random() < 0.1 else None
            if told is not None and since >= 3:
                assert ctx.get(events.told.slid) == told
            ctx.set(events.happens, happens)
            ctx.set(events.event.slid, number - 1)  # of what happened in the cycle before
            ctx.set(events.begins, 0 if begins is None else 1 << begins)
            since += 1
            if begins is not None:
                told, since = latest[begins], 1
            latest.update({trap: number for trap in range(traps) if happens >> trap & 1})
            await ctx.tick()

    Simulation(events).run(bench)
