"""Time limits at an output, and why packets are swallowed there: sections 7, 7.2 and 8.1 of docs/pipeline.md."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from rtl.crossing.causes import NOT_SWALLOWED, cause_of
from rtl.crossing.output import Output
from rtl.widths import NEED_BITS
from tests.campaigns import first_of
from tests.rtl.simulation import Simulation
from wire.codes import PortState
from wire.time_limits import MAX_EXPONENT, NO_LIMIT
from wire.trace import Discard

VLS = 2
SLOTS = VLS + 1
INPUTS = 3
CYCLES = 8_000
GRANTS_APART = 4
"""A packet that is swallowed has its output for so long, counted from its grant."""


@dataclass
class Cycle:
    """What is visible in a cycle, and the offer and the grant in it."""

    heads: int = 0
    state: PortState = PortState.ACTIVE
    operational: int = (1 << VLS) - 1
    hoq_life: int = NO_LIMIT
    life_time: int = NO_LIMIT
    stall_count: int = 0
    written: bool = False  # one of these is new in this cycle
    highest: int | None = None  # exponent of which it is a tick
    offered: int | None = None
    granted: int | None = None  # what was offered, if it is accepted in the next

    def is_tick(self) -> bool:
        """Of k."""
        return self.highest is not None and min(self.hoq_life, self.life_time) <= self.highest

    def inactive(self, slot: int) -> bool:
        if slot == VLS:
            return self.state in (PortState.DOWN, PortState.ACTIVE_DEFER)
        return self.state != PortState.ACTIVE or not self.operational >> slot & 1


@dataclass
class Contract:
    """The cycles that were, and what follows from them."""

    cycles: list[Cycle] = field(default_factory=list)
    discards: list[int] = field(default_factory=lambda: [0] * VLS)
    stalls: list[list[tuple[int, int]]] = field(default_factory=lambda: [[] for _ in range(VLS)])
    """Of each VL (first cycle, cycle after the last or more than there are)."""

    def stalled(self, cycle: int, vl: int) -> bool:
        return any(first <= cycle < behind for first, behind in self.stalls[vl])

    def expired(self, cycle: int, vl: int) -> bool:
        """By what the cycles before show. Grants do from the second cycle after them on."""
        if self.stalled(cycle, vl):
            return False
        ends = {behind for _, behind in self.stalls[vl]}
        ticks = 0
        for at in range(cycle, -1, -1):
            # Cycle `at` and those behind it count.
            if at < cycle:
                granted = [before.granted for before in self.cycles[max(0, at - 1) : min(at + 1, cycle - 1)]]
                if not self.cycles[at].heads >> vl & 1 or vl in granted:
                    return False
                ticks += self.cycles[at].is_tick()
                if ticks == 4:
                    return True
            if self.cycles[at].written or at in ends:
                return False
        return False

    def cause(self, granted_at: int, slot: int) -> int:
        """Of a packet that is granted there."""
        seen, at = self.cycles[granted_at - 2], self.cycles[granted_at]
        if seen.inactive(slot):
            return cause_of(Discard.INACTIVE)
        if slot == VLS:
            return NOT_SWALLOWED
        if self.stalled(granted_at - 2, slot):
            return cause_of(Discard.STALLED)
        if self.expired(granted_at - 2, slot):
            return cause_of(Discard.HOQ_LIFE if at.hoq_life <= at.life_time else Discard.LIFE_TIME)
        return NOT_SWALLOWED

    def swallows(self, cycle: int, slot: int) -> bool:
        """Heads are told so by what is visible in this cycle."""
        limited = slot < VLS and (self.stalled(cycle, slot) or self.expired(cycle, slot))
        return self.cycles[cycle].inactive(slot) or limited

    def follow(self) -> None:
        """Take the last cycle, and the grant two before it, into account of discards and stalls."""
        cycle = len(self.cycles) - 1
        now = self.cycles[-1]
        if now.written:
            self.discards = [0] * VLS
            self.stalls = [[(first, min(behind, cycle)) for first, behind in stalls] for stalls in self.stalls]
        elif cycle > 3 and not self.cycles[-2].written and (vl := self.cycles[-3].granted) is not None and vl < VLS:
            counts = self.cause(cycle - 2, vl) == cause_of(Discard.HOQ_LIFE)
            self.discards[vl] = self.discards[vl] + 1 if counts else 0
            limited = self.cycles[-2].hoq_life <= 19
            if counts and limited and self.discards[vl] == self.cycles[-2].stall_count:
                self.stalls[vl].append((cycle, 10**9))
        for vl in range(VLS):
            for number, (first, behind) in enumerate(self.stalls[vl]):
                if first <= cycle < behind and sum(past.is_tick() for past in self.cycles[first:]) == 32:
                    self.stalls[vl][number] = (first, cycle + 1)
                    self.discards[vl] = 0


def cycles(rng: random.Random) -> list[Cycle]:
    """Heads that come and stay, now and then a grant, a write, another state."""
    found = [Cycle(hoq_life=0, stall_count=1, written=True)]
    staying, grants = True, 0.02
    for number in range(CYCLES):
        before = found[-1]
        now = Cycle(
            before.heads, before.state, before.operational, before.hoq_life, before.life_time, before.stall_count
        )
        if number % 500 == 0:
            staying, grants = rng.random() < 0.7, rng.choice((0.02, 0.04, 0.5))
        granted = found[-2].granted if number else None
        if granted is not None:
            now.heads &= ~(1 << granted) if rng.random() < 0.4 else -1
        elif rng.random() < (0.05 if staying else 0.3):
            now.heads ^= 1 << rng.randrange(SLOTS)
        if staying and rng.random() < 0.5:
            now.heads |= 1 << rng.randrange(SLOTS)
        if rng.random() < 0.005:
            now.state = rng.choice((*[PortState.ACTIVE] * 9, PortState.ARMED, PortState.ACTIVE_DEFER, PortState.DOWN))
            now.operational = rng.choice((3, 3, 3, 3, 3, 1))
        if rng.random() < (0.002 if staying else 0.01):
            now.written = True
            which = rng.randrange(4)  # the last: as it was
            if which == 0:
                now.hoq_life = rng.choice((0, 0, 1, 1, 2, MAX_EXPONENT, NO_LIMIT))
            elif which == 1:
                now.life_time = rng.choice((0, 0, 1, 2, 20, NO_LIMIT))
            elif which == 2:
                now.stall_count = rng.choice((0, 1, 1, 1, 2, 2, 3, 7))
        if rng.random() < 0.3:
            now.highest = rng.choice((0, 0, 1, 2, 5, MAX_EXPONENT))
        recent = before.offered is not None or any(past.granted is not None for past in found[1 - GRANTS_APART :])
        choices = [slot for slot in range(SLOTS) if now.heads >> slot & 1]
        if choices and not recent and rng.random() < grants:
            now.offered = rng.choice(choices)
            now.granted = now.offered if rng.random() < 0.9 else None
        found.append(now)
    return found


@pytest.mark.parametrize("seed", first_of([3, 6, 8], 1))
def test_what_stands_too_long_is_swallowed_and_then_its_vl_stalls(seed: int) -> None:
    print(f"seed {seed}")
    stimulus = cycles(random.Random(seed))
    dut = Output(VLS, NEED_BITS, limited=INPUTS)
    contract = Contract()
    seen: set[int] = set()

    async def bench(ctx: Any) -> None:
        for number, now in enumerate(stimulus):
            following = stimulus[number + 1] if number + 1 < len(stimulus) else Cycle()
            before = stimulus[number - 1] if number else Cycle()
            ctx.set(dut.port.state, now.state)
            ctx.set(dut.port.operational_follows, following.operational)
            ctx.set(dut.heads, now.heads)
            limits, life = dut.time_limits, dut.life_follows
            ctx.set(limits.hoq_life, now.hoq_life)
            ctx.set(limits.vl_stall_count, now.stall_count)
            of_life_time = following.life_time != now.life_time
            ctx.set(limits.changed, following.written and not of_life_time)
            ctx.set(
                life,
                {
                    "exponent": following.life_time,
                    "changed": following.written and of_life_time,
                    "tick": {"valid": following.highest is not None, "highest": following.highest or 0},
                },
            )
            ctx.set(dut.offered, before.offered is not None)
            ctx.set(dut.slot, 1 << (before.offered or 0))
            ctx.set(dut.accepted, 0 if before.granted is None else 1 << number % INPUTS)

            contract.cycles.append(now)
            if number > 3 and before.offered is not None:
                cause = contract.cause(number - 1, before.offered)
                assert ctx.get(dut.cause) == cause, f"offered at {number - 1}"
                seen.add(cause)
            contract.follow()
            swallows = [contract.swallows(number, slot) for slot in range(SLOTS)]
            assert [bool(ctx.get(dut.facts.swallows) >> slot & 1) for slot in range(SLOTS)] == swallows, (
                f"cycle {number}"
            )
            await ctx.tick()

    Simulation(dut).run(bench)
    whole = [
        sum(now.is_tick() for now in stimulus[slice(*stall)]) == 32 for of_vl in contract.stalls for stall in of_vl
    ]
    assert any(whole), "a stall goes on to its end"
    assert not all(whole), "a write ends one"
    reasons = (Discard.INACTIVE, Discard.LIFE_TIME, Discard.HOQ_LIFE, Discard.STALLED)
    assert seen == {NOT_SWALLOWED, *map(cause_of, reasons)}


def test_an_adapters_output_swallows_for_its_state_only() -> None:
    dut = Output(VLS, NEED_BITS, limited=0)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.heads, 0b111)
        ctx.set(dut.port.state, PortState.ACTIVE)
        ctx.set(dut.port.operational_follows, 0b01)
        ctx.set(dut.offered, 1)
        for _ in range(4):
            await ctx.tick()
        assert ctx.get(dut.facts.swallows) == 0b010
        for slot, cause in enumerate((NOT_SWALLOWED, cause_of(Discard.INACTIVE), NOT_SWALLOWED)):
            ctx.set(dut.slot, 1 << slot)
            assert ctx.get(dut.cause) == cause

    Simulation(dut).run(bench)
