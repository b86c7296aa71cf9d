"""VL arbitration, against section 7.1 of docs/pipeline.md written down once more."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

import pytest

from rtl.crossing.vl_arbiter import VlArbiter
from tests.rtl.simulation import Simulation

LOW, HIGH = 0, 1
NO_LIMIT = 255


@dataclass
class Reference:
    """What is visible in a cycle, and the order that follows from it."""

    vls: int
    entries: int = 0
    lists: tuple[list[tuple[int, int]], list[tuple[int, int]]] = field(init=False)
    place: list[int] = field(init=False)
    remains: list[int] = field(default_factory=lambda: [0, 0])
    limit: int = 0
    left: int = 0
    spent: bool = False
    vl_ptr: int = 0

    def __post_init__(self) -> None:
        self.entries = 8 if self.vls <= 4 else 16
        self.lists = ([(0, 0)] * self.entries, [(0, 0)] * self.entries)
        self.place = [self.entries - 1] * 2

    def of_list(self, which: int) -> dict[int, tuple[int, int]]:
        """The VLs of a list in its order, each with the list and its entry."""
        place = self.place[which]
        sequence = [place] if self.remains[which] else []
        sequence += [(place + step) % self.entries for step in range(1, self.entries + 1)]
        found: dict[int, tuple[int, int]] = {}
        for number in sequence:
            vl, weight = self.lists[which][number]
            if weight and vl < self.vls:
                found.setdefault(vl, (which, number))
        return found

    def order(self) -> dict[int, tuple[int, int] | None]:
        """All VLs in their order, each with the list and the entry that serve it."""
        found: dict[int, tuple[int, int] | None] = {}
        for which in (LOW, HIGH) if self.spent else (HIGH, LOW):
            found = found | {vl: by for vl, by in self.of_list(which).items() if vl not in found}
        turns = ((self.vl_ptr + step) % self.vls for step in range(self.vls))
        return found | {vl: None for vl in turns if vl not in found}

    def turn(self, vl: int) -> None:
        """This VL was granted."""
        self.vl_ptr = (vl + 1) % self.vls

    def charge(self, which: int, number: int, need: int) -> None:
        """A packet of so many blocks was sent, served by this list through this entry."""
        goes_on = number == self.place[which] and self.remains[which]
        weight = self.remains[which] if goes_on else self.lists[which][number][1]
        self.place[which], self.remains[which] = number, max(0, weight - need)
        if which == LOW:
            self.left, self.spent = 64 * self.limit, False
        elif self.limit == NO_LIMIT:
            self.spent = False
        else:
            self.left = max(0, (64 * self.limit if self.spent else self.left) - need)
            self.spent = not self.left


@pytest.mark.parametrize("vls", [2, 4, 8, 15])
def test_every_choice_is_that_of_the_contract(vls: int) -> None:
    print(f"seed {vls}")
    rng = random.Random(vls)
    dut = VlArbiter(vls)
    state = Reference(vls)
    orders = [state.order()] * 2
    served: dict[int, int] = {}
    charged: dict[int, tuple[tuple[int, int] | None, int]] = {}

    async def bench(ctx: Any) -> None:
        free_from = 0
        for cycle in range(2400):
            if cycle % 200 == 0:
                write_chance, weight_chance = rng.choice((0, 0.05, 0.3)), rng.choice((0.05, 0.5, 1))
            orders.append(state.order())
            following: list[Callable[[], None]] = []

            # A choice.
            eligible = rng.getrandbits(vls) | rng.getrandbits(vls)
            ctx.set(dut.eligible, eligible)
            if cycle >= free_from and eligible:
                order = orders[cycle]
                vl = next(vl for vl in order if eligible >> vl & 1)
                assert ctx.get(dut.chosen) == 1 << vl, f"cycle {cycle}"
                if rng.random() < 0.6:
                    served[cycle + 2] = vl
                    is_charged = rng.random() < 0.8
                    free_from = cycle + (6 if is_charged else 4)
                    if is_charged:
                        charged[cycle + 3] = order[vl], rng.choice((1, 5, 33, 66))
            if cycle in served:
                following.append(partial(state.turn, served[cycle]))
            ctx.set(dut.serve, cycle in served)
            ctx.set(dut.served, 1 << served[cycle] if cycle in served else rng.getrandbits(vls))

            # The turn, what is charged, the limit and entries: visible in the next cycle.
            by, need = charged.get(cycle, (None, rng.randrange(128)))
            ctx.set(dut.port.charged, cycle in charged)
            ctx.set(dut.port.blocks, need)
            if by is not None:
                following.append(partial(state.charge, *by, need))
            written = {"write": 0, "number": rng.randrange(16), "weight": 9}
            if rng.random() < write_chance:
                which, number = rng.randrange(2), rng.randrange(state.entries)
                entry = rng.randrange(16), rng.choice((0, 1, 4, 30, 255)) if rng.random() < weight_chance else 0
                following.append(partial(state.lists[which].__setitem__, number, entry))
                written = {"write": 1, "high": which, "number": number, "vl": entry[0], "weight": entry[1]}
            ctx.set(dut.port.entry, written)
            for change in following:
                change()
            await ctx.tick()
            if rng.random() < 0.02:
                state.limit = rng.choice((0, 1, 2, NO_LIMIT))
                ctx.set(dut.port.high_limit, state.limit)

    Simulation(dut).run(bench)
    assert len(charged) > 200


def sent(
    vls: int, low: Iterable[tuple[int, int]], high: Iterable[tuple[int, int]], limit: int, count: int, need: int = 1
) -> list[int]:
    """The VLs of the first packets, all of so many blocks, of an output that has packets for all its VLs."""
    dut = VlArbiter(vls)
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.port.high_limit, limit)
        written = [
            {"write": 1, "high": which, "number": number, "vl": vl, "weight": weight}
            for which, entries in ((LOW, low), (HIGH, high))
            for number, (vl, weight) in enumerate(entries)
        ]
        for entry in written:
            ctx.set(dut.port.entry, entry)
            await ctx.tick()
        ctx.set(dut.port.entry, {})
        ctx.set(dut.eligible, (1 << vls) - 1)
        ctx.set(dut.port.blocks, need)
        await ctx.tick().repeat(2)
        for _ in range(count):
            chosen = ctx.get(dut.chosen)
            found.append(chosen.bit_length() - 1)
            await ctx.tick().repeat(2)
            ctx.set(dut.serve, 1)
            ctx.set(dut.served, chosen)
            await ctx.tick()
            ctx.set(dut.serve, 0)
            ctx.set(dut.port.charged, 1)
            await ctx.tick()
            ctx.set(dut.port.charged, 0)
            await ctx.tick().repeat(2)

    Simulation(dut).run(bench)
    return found


def test_weights_give_shares() -> None:
    vls = sent(2, low=[(0, 30), (1, 10)], high=[], limit=0, count=80, need=2)
    assert Counter(vls) == {0: 60, 1: 20}
    assert [len(list(run)) for _, run in groupby(vls)] == [15, 5] * 4


def test_without_lists_vls_take_turns() -> None:
    assert sent(4, low=[], high=[], limit=0, count=6) == [0, 1, 2, 3, 0, 1]


def test_a_packet_may_overdraw_its_entry() -> None:
    assert sent(2, low=[(0, 5), (1, 5)], high=[], limit=0, count=4, need=66) == [0, 1, 0, 1]


def test_a_vl_in_neither_list_goes_last() -> None:
    assert set(sent(4, low=[(1, 1), (3, 1)], high=[(2, 1)], limit=0, count=12)) == {1, 2, 3}


def test_with_limit_0_the_lists_alternate() -> None:
    assert sent(2, low=[(0, 9)], high=[(1, 9)], limit=0, count=6) == [1, 0, 1, 0, 1, 0]


def test_the_high_list_has_so_much_for_each_low_packet() -> None:
    """The first allowance is that of reset, 0."""
    vls = sent(2, low=[(0, 9)], high=[(1, 255)], limit=1, count=12, need=16)
    assert vls == [1, 0, *[1, 1, 1, 1, 0] * 2]


def test_without_a_limit_the_low_list_waits_for_ever() -> None:
    assert set(sent(2, low=[(0, 255)], high=[(1, 1)], limit=NO_LIMIT, count=20)) == {1}
