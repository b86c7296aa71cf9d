"""Writes to P_Key tables take their turns (docs/pipeline.md, section 3.6), in every input's tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module

from rtl.switch.p_key_tables import PKeyTables
from rtl.switch.p_key_turns import PKeyTurns, p_key_words
from tests.campaigns import some_of
from tests.rtl.simulation import Simulation
from tests.rtl.switch.written_tables import ENTRIES, WAITING, WrittenTables, access_of

APART = 10
DONE = 12
"""Cycles behind its turn in which a write has taken effect."""

ANY_MEMBER = 0x8000
"""Of a P_Key looked for: it finds limited members too."""

Lookup = tuple[int, int]
"""Port and P_Key."""


class _Design:
    """What takes the writes, and one input's tables."""

    def __init__(self, ports: int) -> None:
        m = Module()
        m.domains.sync = self.sync = ClockDomain()
        m.submodules.turns = self.turns = PKeyTurns(ports)
        m.submodules.tables = self.tables = PKeyTables(ports)
        m.d.comb += self.tables.change.eq(self.turns.change)
        self.simulation = Simulation(m)

    async def cycle(self, ctx: Any, access: dict[str, int], lookup: Lookup) -> bool:
        """What is found of what was looked for in the cycle before; then the next cycle."""
        ctx.set(self.turns.access, access)
        ctx.set(self.tables.table_number, lookup[0] - 1)
        ctx.set(self.tables.key, lookup[1])
        found = bool(ctx.get(self.tables.has))
        await ctx.tick()
        return found


_design = cache(_Design)


def found(ports: int, accesses: dict[int, dict[str, int]], lookups: Callable[[int], Lookup], cycles: int) -> list[bool]:
    """What is found in the tables by each cycle's look-up."""
    design, seen = _design(ports), []

    async def bench(ctx: Any) -> None:
        seen.extend([await design.cycle(ctx, accesses.get(cycle, {}), lookups(cycle)) for cycle in range(cycles + 1)])

    design.simulation.run(bench)
    return seen[1:]


def check_turns(ports: int, tables: WrittenTables, lookups: dict[int, Lookup]) -> list[bool]:
    """Each look-up finds what is visible in its cycle."""
    last = max(lookups)
    seen = found(ports, tables.accesses, lambda cycle: lookups.get(cycle, (1, 0)), last + 1)
    expected = {cycle: tables.has(*lookup, cycle, departs=True) for cycle, lookup in lookups.items()}
    assert {cycle: seen[cycle] for cycle in lookups} == expected
    return list(expected.values())


@pytest.mark.parametrize(
    ("ports", "seed"), some_of(product((2, 3, 8), range(4)), {(2, 3), (3, 0), (3, 3), (8, 1), (8, 2), (8, 3)})
)
def test_in_every_cycle_a_table_has_what_is_visible(ports: int, seed: int) -> None:
    """Of few keys that have chunks in common, so that words are read while they are written."""
    print(f"seed {seed}")
    rng = random.Random(f"{seed}/{ports}")
    chunks = (0, 1, 0x10, 0x1F)
    keys = [
        first | second << 5 | third << 10 | full
        for first in chunks[:2]
        for second in chunks[1:3]
        for third in chunks[::3]
        for full in (0, 0x8000)
    ]
    rng.shuffle(keys)
    keys = [0, 0x8000, 0xFFFF, 0x7FFF, *keys[:4]]
    tables = WrittenTables()
    for cycle in range(3000):
        if rng.random() < (0.03, 0.1, 0.2, 1)[seed] and tables.waiting(cycle) < WAITING:
            tables.write(cycle, rng.randint(1, min(ports, 2)), rng.choice((0, 1, 31)), rng.choice(keys))
    lookups = {cycle: (rng.randint(1, min(ports, 2)), rng.choice(keys)) for cycle in range(3400)}
    values = check_turns(ports, tables, lookups)
    assert min(map(values.count, (False, True))) > 300


CHANGES = [
    (0x9234, 0x1235), (0x9234, 0x9254), (0x9234, 0x9634), (0x9234, 0x1234), (0x1234, 0x9234),
    (0x9234, 0), (0, 0x9234), (0x9234, 0x8000), (0x9234, 0xEDCB),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), CHANGES, ids=lambda key: f"{key:04x}")
def test_an_entry_is_the_old_one_then_0_and_then_the_new_one(old: int, new: int) -> None:
    """Looked into in one cycle at a time, and in all; the entries beside it are there all the time."""
    beside = {1: old | 0x8000, 2: new | 0x8000}
    for port, keys in (
        (3, {key for key in (old, new, old | ANY_MEMBER, new | ANY_MEMBER) if key & 0x7FFF}),
        (2, {key | 0x8000 for key in (old, new) if key & 0x7FFF}),
    ):
        tables = WrittenTables()
        for given, write in enumerate(((3, 7, old), (2, 7, old), *((2, entry, key) for entry, key in beside.items()))):
            tables.write(given, *write)
        tables.write(80, port, 7, new)
        assert tables.turns[-1] == 82
        for key in keys:
            values = check_turns(3, tables, dict.fromkeys(range(78, 82 + DONE + 4), (port, key)))
            if port == 2:
                assert all(values)
            else:
                was, becomes = values[0], values[-1]
                assert values == [was] * 8 + [False] * 7 + [becomes] * (len(values) - 15)


def test_turns_are_ten_cycles_apart_whichever_port_s_they_are() -> None:
    tables = WrittenTables()
    turns = [
        tables.write(given, port, 5, 0x8000 + port) for given, port in ((10, 1), (11, 2), (25, 3), (60, 1), (70, 2))
    ]
    assert turns == [12, 22, 32, 62, 72]
    for port in (1, 2, 3):
        check_turns(3, tables, dict.fromkeys(range(10, 90), (port, 32768 + port)))
    assert {after - before for before, after in pairwise(turns[:3])} == {APART}


def test_32_writes_wait() -> None:
    """A block of a table is written at once, and as soon as a turn has come there is room again."""
    tables, rng = WrittenTables(), random.Random(3)
    given, most = [], 0
    for cycle in range(10, 120):
        if tables.waiting(cycle) < WAITING:
            number = len(given)
            tables.write(cycle, 1 + number // ENTRIES, number % ENTRIES, 0x8100 + number)
            given.append(number)
        most = max(most, tables.waiting(cycle))
    assert (most, len(given)) == (WAITING, 43)
    last = tables.turns[-1] + DONE
    lookups = {last + number: (1 + number // ENTRIES, 0x8100 + number) for number in given}
    assert all(check_turns(2, tables, lookups))
    meanwhile = {cycle: (1, 0x8100 + rng.choice(given)) for cycle in range(10, last)}
    check_turns(2, tables, meanwhile)


def test_what_comes_when_all_32_wait_harms_none_of_them() -> None:
    accesses = {
        10 + number: access_of(1 + number // ENTRIES, number % ENTRIES, 0x8100 + number) for number in range(64)
    }
    waiting = 32 + 1 + 3  # four have had their turns when the 36th comes
    last = 10 + 64 * APART + DONE

    def lookup(cycle: int) -> Lookup:
        number = max(0, cycle - last)
        return 1 + number // ENTRIES, 0x8100 + number

    seen = found(2, accesses, lookup, last + 64)[last:]
    assert all(seen[: waiting - 1])
    assert not all(seen)


@pytest.mark.parametrize("key", [0xFFFF, 0x1234])
def test_what_is_written_anew_is_there_all_the_time(key: int) -> None:
    tables = WrittenTables()
    tables.write(0, 2, 0, key)
    for given in range(30, 300, 3):
        if tables.waiting(given) < WAITING:
            tables.write(given, 2, 0, key)
    assert all(check_turns(3, tables, dict.fromkeys(range(30, 700), (2, key | ANY_MEMBER))))


@pytest.mark.parametrize("ports", [2, 5])
def test_after_a_reset_tables_have_the_default_partition_and_nothing_waits(ports: int) -> None:
    design = _design(ports)
    ports_with: dict[str, list[list[int]]] = {}

    async def look(ctx: Any, when: str) -> None:
        ports_with[when] = []
        for key in (0xFFFF, 0x7FFF, 0x9234, 0x9235, 0x8000):
            having = []
            for port in range(1, ports + 1):
                await design.cycle(ctx, {}, (port, key))
                if await design.cycle(ctx, {}, (port, key)):
                    having.append(port)
            ports_with[when].append(having)

    async def bench(ctx: Any) -> None:
        await look(ctx, "at power-up")
        for port in range(1, ports + 1):
            for entry in range(ENTRIES):
                await design.cycle(ctx, access_of(port, entry, 0x9234 + entry % 2), (1, 0))
                for _cycle in range(APART):
                    await design.cycle(ctx, {}, (1, 0))
        await look(ctx, "written")
        for entry in range(WAITING):
            await design.cycle(ctx, access_of(1, entry, 0x9236), (1, 0))
        ctx.set(design.sync.rst, 1)
        for _word in range(p_key_words(ports)):
            await design.cycle(ctx, {}, (1, 0))
        ctx.set(design.sync.rst, 0)
        await look(ctx, "reset")
        for _cycle in range(APART * WAITING + DONE):
            assert not await design.cycle(ctx, {}, (1, 0x9236))
        # What a table had before is in none of the words by which it would come back.
        await design.cycle(ctx, access_of(1, 1, 0x9234), (1, 0))
        for _cycle in range(APART + DONE):
            await design.cycle(ctx, {}, (1, 0))
        await look(ctx, "written again")

    design.simulation.run(bench)
    every = list(range(1, ports + 1))
    assert ports_with == {
        "at power-up": [every, every, [], [], []],
        "written": [[], [], every, every, []],
        "reset": [every, every, [], [], []],
        "written again": [every, every, [1], [], []],
    }
