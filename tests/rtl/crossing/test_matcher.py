"""Matching, against section 7 of docs/pipeline.md written down once more."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from amaranth.hdl import Module

from rtl.crossing.matcher import Matcher
from rtl.crossing.others import others, place_of
from rtl.rotation import RotatingChoice
from tests.rtl.simulation import Simulation

Move = tuple[list[int], int, int]
"""Of the pointer at this place of a list to this value."""

PACKET_CYCLES = 6
"""From a grant to the next of the same output, if its packet is sent."""


@dataclass
class Reference:
    count: int
    ports: int
    vls: int
    in_ptr: list[list[int]] = field(init=False)
    out_ptr: list[int] = field(init=False)
    vl_ptr: list[int] = field(init=False)
    offers: dict[int, dict[int, int]] = field(default_factory=dict)
    """Of the cycle before: by input the slot of each output that made it one."""
    vl_ptr_before: list[list[int]] = field(init=False)
    """In the cycles before, the earlier first: what lists are made from at ports."""
    moves: list[list[Move]] = field(default_factory=lambda: [[], []])
    """Of pointers, that are visible in the next cycle and in the one after."""

    def __post_init__(self) -> None:
        self.in_ptr = [[0] * (self.vls + 1) for _ in range(self.count)]
        self.out_ptr = [0] * self.count
        self.vl_ptr = [0] * self.count
        self.vl_ptr_before = [self.vl_ptr.copy() for _ in range(2)]

    def accept(self) -> dict[int, tuple[int, int]]:
        """What inputs accept of the offers of the cycle before, (output, slot) by input; then pointers move."""
        accepted = {}
        soon, later = self.moves
        for i, offered in self.offers.items():
            o = next(o for step in range(self.count) if (o := (self.out_ptr[i] + step) % self.count) in offered)
            slot = offered[o]
            accepted[i] = (o, slot)
            soon.append((self.out_ptr, i, (o + 1) % self.count))
            later.append((self.in_ptr[o], slot, (i + 1) % self.count))
            if slot < self.vls:
                later.append((self.vl_ptr, o, (slot + 1) % self.vls))
        return accepted

    def offer(
        self,
        requests: set[tuple[int, int, int]],
        urgent: set[int],
        changed: set[int],
        free_inputs: set[int],
        free_outputs: set[int],
    ) -> set[int]:
        """Outputs make offers, of requests (input, output, slot). Returns who sends flow control; ends the cycle."""
        eligible = {(i, o, s) for i, o, s in requests if i in free_inputs and o in free_outputs}
        self.offers = {}
        flow_control = set()
        for o in free_outputs:
            slots = {s for _, out, s in eligible if out == o}
            first_vl = (self.vl_ptr_before[0] if o < self.ports else self.vl_ptr)[o]
            data = [vl for step in range(self.vls) if (vl := (first_vl + step) % self.vls) in slots]
            if self.vls in slots:
                slot = self.vls
            elif o in urgent:
                flow_control.add(o)
                continue
            elif data:
                slot = data[0]
            else:
                if o in changed:
                    flow_control.add(o)
                continue
            i = next(
                i
                for step in range(self.count)
                if ((i := (self.in_ptr[o][slot] + step) % self.count), o, slot) in eligible
            )
            self.offers.setdefault(i, {})[o] = slot
        soon, later = self.moves
        self.vl_ptr_before = [self.vl_ptr_before[1], self.vl_ptr.copy()]
        for pointers, place, value in soon:
            pointers[place] = value
        self.moves = [later, []]
        return flow_control


def subset(rng: random.Random, size: int, chance: float) -> set[int]:
    return {number for number in range(size) if rng.random() < chance}


def mask(numbers: set[int]) -> int:
    return sum(1 << number for number in numbers)


async def give(ctx: Any, dut: Matcher, requests: set[tuple[int, int, int]]) -> None:
    for i in range(dut.count):
        for s in range(dut.vls + 1):
            outputs = {place_of(o, i) for in_, o, slot in requests if (in_, slot) == (i, s)}
            ctx.set(dut.requests[i][s], mask(outputs))


def give_readers(ctx: Any, dut: Matcher) -> None:
    """More than each input needs."""
    for free in (dut.some_free, dut.several_free):
        ctx.set(free, mask(set(range(dut.count))))


def result(ctx: Any, dut: Matcher) -> dict[int, tuple[int, int]]:
    accepted = {}
    for i in range(dut.count):
        output = ctx.get(dut.accepted[i])
        if output:
            number = others(i, dut.count)[output.bit_length() - 1]
            slot = ctx.get(dut.slots_offered[number])
            assert output.bit_count() == slot.bit_count() == 1
            accepted[i] = (number, slot.bit_length() - 1)
    return accepted


async def one_pass(ctx: Any, dut: Matcher) -> dict[int, tuple[int, int]]:
    """Offers in a cycle in which all outputs are available, and what is accepted in the next. Then packets go."""
    ctx.set(dut.outputs_available, (1 << dut.count) - 1)
    await ctx.tick()
    ctx.set(dut.outputs_available, 0)
    accepted = result(ctx, dut)
    await ctx.tick().repeat(PACKET_CYCLES - 1)
    return accepted


def simulate(dut: Matcher, bench: Any) -> None:
    """Together with what accepts offers at each input."""
    m = Module()
    m.submodules.matcher = dut
    for i in range(dut.count):
        m.submodules[f"acceptance_{i}"] = acceptance = RotatingChoice(dut.count - 1)
        m.d.comb += [
            acceptance.requests.eq(dut.offers[i]),
            acceptance.serve.eq(dut.offers[i].any()),
            acceptance.served.eq(acceptance.chosen),
            dut.accepted[i].eq(acceptance.chosen),
        ]
    Simulation(m).run(bench)


@pytest.mark.parametrize(("count", "ports", "vls"), [(4, 3, 2), (5, 5, 1), (3, 3, 4), (3, 0, 4), (2, 0, 2)])
def test_every_pass_is_that_of_the_contract(count: int, ports: int, vls: int) -> None:
    """With empty lists; those of ports are in test_vl_arbiter.py."""
    seed = count * 100 + vls
    print(f"seed {seed}")
    rng = random.Random(seed)
    dut = Matcher(count, ports, vls)
    reference = Reference(count, ports, vls)

    async def bench(ctx: Any) -> None:
        matched: list[set[int]] = [set(), set()]  # in the two cycles before
        flow_control: set[int] = set()  # in the cycle before
        for cycle in range(800):
            load = rng.random()
            requests = {
                (i, o, s)
                for i in range(count)
                for o in others(i, count)
                for s in range(vls + 1)
                if rng.random() < (load if s < vls else load / 8)
            }
            urgent, changed = subset(rng, count, 0.1), subset(rng, count, 0.5)
            offered = {o for of_input in reference.offers.values() for o in of_input}
            free_inputs, free_outputs = subset(rng, count, 0.7), subset(rng, count, 0.7)
            free_outputs = free_outputs.difference(offered, *matched)
            await give(ctx, dut, requests)
            ctx.set(dut.urgent, mask(urgent))
            ctx.set(dut.changed, mask(changed))
            # Each input has as many readers free as it must, to be available or not.
            several = {i for i in free_inputs if i in reference.offers or rng.random() < 0.5}
            some = free_inputs | subset(rng, count, 0.5).intersection(reference.offers)
            ctx.set(dut.some_free, mask(some))
            ctx.set(dut.several_free, mask(several))
            ctx.set(dut.outputs_available, mask(free_outputs))
            assert ctx.get(dut.offered) == mask(offered), f"cycle {cycle}"
            assert ctx.get(dut.granted) == mask(matched[0]), f"cycle {cycle}"
            assert ctx.get(dut.flow_control) == mask(flow_control), f"cycle {cycle}"
            accepted = reference.accept()
            assert result(ctx, dut) == accepted, f"cycle {cycle}"
            flow_control = reference.offer(requests, urgent, changed, free_inputs, free_outputs)
            matched = [{o for o, _ in accepted.values()}, matched[0]]
            await ctx.tick()

    simulate(dut, bench)


def test_inputs_that_all_want_one_output_have_it_in_turn() -> None:
    dut = Matcher(5, 5, 1)
    grants: Counter[int] = Counter()

    async def bench(ctx: Any) -> None:
        await give(ctx, dut, {(i, 2, 0) for i in others(2, 5)})
        give_readers(ctx, dut)
        for _ in range(40):
            grants.update(list(await one_pass(ctx, dut)))

    simulate(dut, bench)
    assert grants == dict.fromkeys(others(2, 5), 10)


def test_with_all_requests_every_output_is_matched_after_a_while() -> None:
    """Of inputs for outputs of other numbers."""
    dut = Matcher(8, 8, 1)
    matched = []

    async def bench(ctx: Any) -> None:
        await give(ctx, dut, {(i, o, 0) for i in range(4) for o in range(4, 8)})
        give_readers(ctx, dut)
        matched.extend([len(await one_pass(ctx, dut)) for _ in range(20)])

    simulate(dut, bench)
    assert matched[0] == 1
    assert matched[8:] == [4] * 12


def test_vls_of_an_output_have_it_in_turn() -> None:
    dut = Matcher(3, 3, 4)
    slots: list[int] = []

    async def bench(ctx: Any) -> None:
        await give(ctx, dut, {(0, 1, 0), (0, 1, 1), (2, 1, 3)})
        give_readers(ctx, dut)
        for _ in range(6):
            slots.extend(slot for _, slot in (await one_pass(ctx, dut)).values())

    simulate(dut, bench)
    assert slots == [0, 1, 3, 0, 1, 3]


@pytest.mark.parametrize(("inputs", "vls"), [(2, 2), (4, 2), (3, 4), (4, 4)])
def test_inputs_with_heads_on_every_vl_are_served_alike_on_each(inputs: int, vls: int) -> None:
    """Though VLs and inputs take turns at once."""
    dut = Matcher(inputs + 1, 2, vls)
    grants: Counter[tuple[int, int]] = Counter()
    flows = {(i, vl) for i in others(1, inputs + 1) for vl in range(vls)}

    async def bench(ctx: Any) -> None:
        await give(ctx, dut, {(i, 1, vl) for i, vl in flows})
        give_readers(ctx, dut)
        for _ in range(3 * len(flows)):
            grants.update((i, slot) for i, (_, slot) in (await one_pass(ctx, dut)).items())

    simulate(dut, bench)
    assert grants == dict.fromkeys(flows, 3)
