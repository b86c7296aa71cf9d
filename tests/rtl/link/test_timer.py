"""Timers: docs/pipeline.md, sections 5, 6 and 8.3, count with them."""

from typing import Any

import pytest

from rtl.link.timer import Timer
from tests.rtl.simulation import Simulation


def last_cycles(cycles: int, length: int, restarts: tuple[int, ...] = (), stops: tuple[int, ...] = ()) -> list[int]:
    dut = Timer(8)
    found = []

    async def drive(ctx: Any) -> None:
        ctx.set(dut.length, length)
        for cycle in range(cycles):
            ctx.set(dut.run, cycle not in stops)
            ctx.set(dut.restart, cycle in restarts)
            if ctx.get(dut.last):
                found.append(cycle)
            await ctx.tick()

    Simulation(dut).run(drive)
    return found


@pytest.mark.parametrize(("length", "expected"), [(1, [0, 1, 2, 3]), (2, [1, 3]), (4, [3]), (5, [])])
def test_a_round_lasts_its_length(length: int, expected: list[int]) -> None:
    assert last_cycles(4, length) == expected


def test_a_restart_makes_the_next_cycle_the_first() -> None:
    assert last_cycles(20, 5, restarts=(7,)) == [4, 12, 17]


def test_cycles_that_do_not_run_do_not_count() -> None:
    assert last_cycles(12, 5, stops=(2, 3, 8, 9, 10)) == [6]
    assert last_cycles(6, 5, stops=(4,)) == [5]
