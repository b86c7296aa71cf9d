"""Multicast packets in an input: heads for each copy that is left, turns, and blocks that return once."""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from rtl.crossing.copies import CopyReturns
from rtl.crossing.fifo import FifoQueues
from rtl.crossing.store import PacketStore
from rtl.crossing.voq import VirtualOutputQueues
from rtl.widths import NEED_BITS
from tests.campaigns import some_of
from tests.rtl.simulation import Simulation
from wire.packet import blocks_of_words

VLS = 2
VL15 = VLS
OUTPUTS = 4
CREDITED = 3
BLOCKS = 24
BLOCK_BITS = 5
NEVER = 10**9
AMPLE = (1 << NEED_BITS) - 1
"""Room for a head of any size."""

Place = tuple[int, int]
"""An output and a slot there."""

Queue = tuple[str, int, int]


@dataclass
class Facts:
    """Of an output, as visible in a cycle."""

    blocked: bool = False
    swallows: list[bool] = field(default_factory=lambda: [False] * (VLS + 1))
    room: list[int] = field(default_factory=lambda: [AMPLE] * VLS)


@dataclass
class Packet:
    first: int
    pool: int
    need: int
    multicast: bool
    left: dict[int, int]  # slots of its copies by output
    oversize: set[int]
    joined: int
    ended: int = NEVER
    guarded: bool = False
    open_from: int = 0  # if guarded, the cycle from which on it is a head
    rejected: set[int] = field(default_factory=set)

    def may_go(self, output: int, facts: Facts, last: "Packet", cycle: int) -> bool:
        """In the cycle after one with these facts; if it is swallowed, LAST of its queue has to have ended."""
        slot = self.left[output]
        if output >= CREDITED:
            return True
        swallowed = facts.swallows[slot] or (slot != VL15 and output in self.oversize | self.rejected)
        if slot != VL15 and facts.blocked:
            return False
        if swallowed:
            return last.ended < cycle
        return slot == VL15 or self.need <= facts.room[slot]


class Reference:
    """Sections 4 and 7 of docs/pipeline.md, for one input."""

    def __init__(self, queueing: str) -> None:
        self.queueing = queueing
        self.queues: dict[Queue, list[Packet]] = defaultdict(list)
        self.last: dict[Queue, Packet] = {}
        self.emptied: dict[Queue, int] = defaultdict(lambda: -10)  # g of the packet before
        self.turn: dict[Place, int] = defaultdict(int)
        self.queue_ptr = 0

    def join(self, packet: Packet) -> None:
        if self.queueing == "fifo" or packet.multicast:
            queue = ("of VL", packet.pool, 0)
        else:
            queue = ("of output", *next(iter(packet.left.items())))
        self.queues[queue].append(packet)
        self.last[queue] = packet

    def firsts(self, cycle: int) -> dict[Queue, Packet]:
        """Of each queue what would be a head, guarded or not."""
        found = {}
        for queue, packets in self.queues.items():
            if packets:
                joined, emptied = packets[0].joined, self.emptied[queue]
                if cycle >= (joined + 1 if emptied < joined - 1 else emptied + 5):
                    found[queue] = packets[0]
        return found

    def heads(self, cycle: int, place: Place) -> list[Queue]:
        output, slot = place
        firsts = self.firsts(cycle).items()
        return [queue for queue, first in firsts if first.left.get(output) == slot and cycle >= first.open_from]

    def eligible(self, cycle: int, place: Place, facts: list[Facts]) -> list[Queue]:
        def may_go(queue: Queue) -> bool:
            of_output = facts[place[0]] if place[0] < CREDITED else Facts()
            head, last = self.queues[queue][0], self.last[queue]
            # A packet joins when those before it have ended; in the cycle before it does not count yet.
            return head.may_go(place[0], of_output, last if last.joined < cycle - 1 else head, cycle)

        return [queue for queue in self.heads(cycle, place) if may_go(queue)]

    def accept(self, cycle: int, place: Place, eligible: list[Queue]) -> Packet:
        """In the cycle after the offer, by what was eligible then."""
        output, slot = place
        of_vl = [queue for queue in eligible if queue[0] == "of VL"]
        own = [queue for queue in eligible if queue[0] == "of output"]
        if own and (not of_vl or not self.turn[place]):
            (queue,) = own
            self.turn[place] = 1
        else:
            queue = min(of_vl, key=lambda queue: (queue[1] - self.queue_ptr) % VLS if queue[1] != VL15 else 0)
            self.turn[place] = 0
            if slot != VL15:
                self.queue_ptr = (queue[1] + 1) % VLS
        packet = self.queues[queue][0]
        del packet.left[output]
        if not packet.left:
            self.queues[queue].pop(0)
            self.emptied[queue] = cycle - 1
        return packet


def some_packet(rng: random.Random, first: int, cycle: int) -> Packet:
    pool, need = rng.choice((0, 0, 1, 1, VL15)), rng.choice((1, 2, 40))
    multicast = pool != VL15 and rng.random() < 0.5
    outputs = rng.sample(range(OUTPUTS), rng.randrange(1, OUTPUTS + 1) if multicast else 1)
    slots = {o: pool if o >= CREDITED or pool == VL15 else rng.randrange(VLS) for o in outputs}
    oversize = {o for o in outputs if o < CREDITED and rng.random() < 0.2}
    guarded = multicast and rng.random() < 0.4
    return Packet(first, pool, need, multicast, slots, oversize, cycle, guarded=guarded, open_from=NEVER * guarded)


def other_facts(rng: random.Random) -> list[Facts]:
    found = []
    for _ in range(CREDITED):
        swallows = [rng.random() < 0.1 for _ in range(VLS + 1)]
        room = [AMPLE if swallows[vl] else rng.choice((AMPLE, AMPLE, 1, 0)) for vl in range(VLS)]
        found.append(Facts(rng.random() < 0.1, swallows, room))
    return found


@pytest.mark.parametrize(
    ("queueing", "seed"), some_of([("voq", 0), ("voq", 1), ("fifo", 2)], {("voq", 0), ("fifo", 2)})
)
def test_each_copy_left_is_a_head_and_kinds_and_queues_take_turns(queueing: Literal["voq", "fifo"], seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    kind = VirtualOutputQueues if queueing == "voq" else FifoQueues
    dut = kind(BLOCK_BITS, BLOCKS, OUTPUTS, CREDITED, VLS, NEED_BITS, multicast=True)
    reference = Reference(queueing)
    places = [(o, slot) for o in range(OUTPUTS) for slot in range(VLS + 1)]
    seen: Counter[str] = Counter()

    async def bench(ctx: Any) -> None:
        port, heads = dut.queueing, dut.queueing.heads
        free, leaving = list(range(BLOCKS)), []
        coming: Packet | None = None
        facts = [Facts() for _ in range(CREDITED)]
        taken: Packet | None = None
        rejected = False  # it is a copy that may not leave
        takes: list[bool] = []
        offers: dict[int, tuple[int, list[Queue]]] = {}  # of the cycle before, by output: the slot, eligible queues
        not_available: dict[int, int] = defaultdict(lambda: -10)
        for cycle in range(3000):
            # What was taken in the cycle before.
            if taken is not None:
                has_queue = (taken.multicast or queueing == "fifo") and taken.pool != VL15
                assert ctx.get(port.copy.shared) == (has_queue and 1 << taken.pool)
                assert not has_queue or ctx.get(port.copy.more) == bool(taken.left)
                assert ctx.get(port.copy.rejected) == rejected
                if not taken.left:
                    leaving.append((cycle + 3, taken.first))
            else:
                assert not ctx.get(port.copy.shared)

            # What is visible, and what could go by the facts of the cycle before.
            choices = {}
            for output, slot in places:
                expected = reference.heads(cycle, (output, slot))
                assert ctx.get(heads.visible[slot]) >> output & 1 == bool(expected), (cycle, output, slot)
                eligible = reference.eligible(cycle, (output, slot), facts)
                if not_available[output] < cycle - 2:
                    assert ctx.get(heads.requests[slot]) >> output & 1 == bool(eligible), (cycle, output, slot)
                if eligible and output not in offers and not_available[output] < cycle - 3:
                    choices[output] = slot, eligible
                    seen["several"] += len(eligible) > 1

            # A guarded packet is inspected, two cycles before it is a head.
            firsts = reference.firsts(cycle)
            waiting = [packet for packet in firsts.values() if packet.guarded and packet.open_from == NEVER]
            assert ctx.get(port.inspection.waiting) == sum(1 << packet.pool for packet in waiting)
            ctx.set(port.inspection.inspected, 0)
            if waiting and rng.random() < 0.3:
                inspected = rng.choice(waiting)
                ctx.set(port.inspection.queue, 1 << inspected.pool)
                assert ctx.get(port.inspection.first) == inspected.first
                assert ctx.get(port.inspection.to) == sum(1 << o for o in inspected.left if o < CREDITED)
                inspected.rejected = {o for o in range(CREDITED) if rng.random() < 0.5}
                ctx.set(port.inspection.inspected, 1 << inspected.pool)
                ctx.set(port.inspection.rejected, sum(1 << o for o in inspected.rejected))
                inspected.open_from = cycle + 2

            # An offer is accepted. Slots of outputs that made none are anything.
            for o in range(OUTPUTS):
                ctx.set(heads.slots_offered[o], 1 << (offers[o][0] if o in offers else rng.randrange(VLS + 1)))
            ctx.set(port.accepted, 0)
            taken = None
            if offers:
                output = rng.choice(sorted(offers))
                slot, eligible = offers[output]
                ctx.set(port.accepted, 1 << output)
                taken = reference.accept(cycle, (output, slot), eligible)
                assert ctx.get(port.firsts[output]) == taken.first
                ctx.set(port.taken, taken.first)
                oversize = slot != VL15 and output in taken.oversize
                assert output >= CREDITED or ctx.get(port.oversize) >> output & 1 == oversize
                rejected = slot != VL15 and output in taken.rejected
                seen["rejected"] += rejected
                not_available[output] = cycle - 1
                seen["last" if not taken.left else "copy"] += 1
            offers = {}
            takes.append(taken is not None)
            if choices and sum(takes[-3:]) < 2 and rng.random() < 0.5:  # two readers take up two in four cycles
                offering = rng.sample(sorted(choices), rng.randint(1, len(choices)))
                offers = {output: choices[output] for output in offering}

            # The packet that is coming ends, then the next joins.
            ctx.set(port.ended, 0)
            if coming is not None and rng.random() < 0.3:
                ctx.set(port.ended, 1)
                coming.ended, coming = cycle, None
            joins = None
            if coming is None and free and rng.random() < 0.7 and not ctx.get(port.ended):
                joins = coming = some_packet(rng, free.pop(rng.randrange(len(free))), cycle)
            ctx.set(port.join, joins is not None)
            if joins is not None:
                ctx.set(port.first, joins.first)
                output, slot = next(iter(joins.left.items()))
                members = {"pool": joins.pool, "need": joins.need, "output": output, "slot": slot}
                ctx.set(port.packet, {**members, "oversize": not joins.multicast and output in joins.oversize})
                ctx.set(port.has_copies, joins.multicast)
                ctx.set(port.copies.to, sum(1 << o for o in joins.left))
                ctx.set(port.copies.oversize, sum(1 << o for o in joins.oversize))
                ctx.set(port.copies.guarded, joins.guarded)
                for o in range(CREDITED):
                    ctx.set(port.copies.slots[o], joins.left.get(o, 0) % VLS)
            if joins is not None:
                reference.join(joins)
            free += [first for at, first in leaving if at <= cycle]
            leaving = [one for one in leaving if one[0] > cycle]
            if rng.random() < 0.05:
                facts = other_facts(rng)
            for o, of_output in enumerate(facts):
                ctx.set(heads.facts[o].blocked, of_output.blocked)
                ctx.set(heads.facts[o].swallows, sum(1 << s for s in range(VLS + 1) if of_output.swallows[s]))
                for vl in range(VLS):
                    ctx.set(heads.facts[o].room[vl].limit, of_output.room[vl])
            await ctx.tick()

    Simulation(dut).run(bench)
    assert min(seen["several"], seen["copy"], seen["rejected"]) > 30, seen


@dataclass
class Copy:
    packet: list[int]  # x_0 of its copies, and how many there are to be
    of: int
    reader: int
    done: int


@pytest.mark.parametrize("readers", [1, 2])
def test_the_last_reader_that_is_done_with_a_packet_returns_its_blocks(readers: int) -> None:
    rng = random.Random(readers)
    dut = CopyReturns(readers, VLS)
    seen: Counter[str] = Counter()

    async def bench(ctx: Any) -> None:
        heads: list[tuple[list[int], int]] = [([], 3) for _ in range(VLS)]  # first in each queue
        reading: list[Copy | None] = [None] * readers
        taken: tuple[int, bool] | None = None  # a cycle ago
        grant = 0
        asked: list[tuple[int, bool]] = []  # in the cycle before, of each reader that was done
        for cycle in range(2500):
            # What is seen of the cycles before.
            ctx.set(dut.grant, grant)
            ctx.set(dut.copy, {"shared": 1 << taken[0], "more": taken[1]} if taken else {})
            ctx.set(dut.done, sum(1 << reader for reader, _ in asked))
            await ctx.delay(0)
            for reader, expected in asked:
                assert ctx.get(dut.returns) >> reader & 1 == expected, cycle

            # Who is done in this one, and asks in the next.
            busy = [copy for copy in reading if copy is not None]
            over = [copy for copy in busy if copy.done == cycle]
            asked = []
            for copy in over:
                before = [x_0 for x_0 in copy.packet if x_0 < cycle]
                others = [other for other in busy if other is not copy and other.packet is copy.packet]
                later = [other for other in others if other.done > cycle]
                lower = [other for other in others if other.done == cycle and other.reader < copy.reader]
                asked.append((copy.reader, len(before) == copy.of and not later and not lower))
                seen["together"] += bool(others)
                seen["both done"] += bool(lower)
            idle = [number for number in range(readers) if reading[number] is None]
            for copy in over:
                reading[copy.reader] = None
            grant = 0
            taken = None
            if idle and rng.random() < 0.6:
                grant = 1 << idle[0]
                queue = rng.randrange(VLS + 1)
                done = cycle + rng.choice((1, 2, 3, rng.randrange(5, 20)))
                if queue == VLS:  # not a multicast packet
                    reading[idle[0]] = Copy([cycle], 1, idle[0], done)
                else:
                    packet, of = heads[queue]
                    packet.append(cycle)
                    reading[idle[0]] = Copy(packet, of, idle[0], done)
                    taken = queue, len(packet) < of
                    if len(packet) == of:
                        heads[queue] = [], rng.randrange(1, 4)
            await ctx.tick()

    Simulation(dut).run(bench)
    assert readers == 1 or min(seen["together"], 4 * seen["both done"]) > 20, seen


def test_a_stored_packet_gives_back_its_blocks_once_behind_its_last_copy() -> None:
    n, pool = 20, 10
    need = blocks_of_words(n)
    dut = PacketStore((pool, 6), OUTPUTS, CREDITED, 4096, "voq", 2, multicast=True)
    grants = {5: 0, 8: 2, 60: 1}  # by cycle: output, two at a time
    rows: dict[int, list[int]] = defaultdict(list)

    async def bench(ctx: Any) -> None:
        crossing, fill = dut.crossing, dut.fill
        due = [0, 0]
        ctx.set(crossing.wide, 0b1111)
        for output in range(CREDITED):
            ctx.set(crossing.heads.facts[output].room[0].limit, AMPLE)
        for cycle in range(100):
            ctx.set(fill.write.valid, cycle <= n)
            row = {"data": cycle, "index": cycle, "first": cycle == 0, "last": cycle == n, "n": n, "need": need}
            for member, value in {**row, "accepted": cycle > 1}.items():
                ctx.set(fill.write[member], value)
            ctx.set(fill.accept, cycle == 1)
            ctx.set(fill.accept_need, need)
            ctx.set(dut.join, cycle == 1)
            ctx.set(dut.packet, {"words": n, "need": need})
            ctx.set(dut.has_copies, 1)
            ctx.set(dut.copies, {"to": 0b0111})
            to = grants.get(cycle)
            assert to is None or ctx.get(crossing.heads.requests[0]) >> to & 1
            accepted = grants.get(cycle - 1)
            ctx.set(crossing.offers, 0 if accepted is None else 1 << accepted)
            for output in range(OUTPUTS):
                ctx.set(crossing.heads.slots_offered[output], 1)
            for reader, to in enumerate(due):
                if to and ctx.get(crossing.rows[reader].valid):
                    rows[to].append(ctx.get(crossing.rows[reader].data))
            due = [ctx.get(to) for to in crossing.to_output]
            # x_n = g + 1 + n; the release, asked for at x_n + 1, shows in the cycle after.
            assert ctx.get(fill.free[0]) == (pool - need if 1 < cycle < 60 + 1 + n + 2 else pool), cycle
            await ctx.tick()

    Simulation(dut).run(bench)
    whole = [need << 24, *range(1, n + 1)]
    assert rows == {1 << output: whole for output in grants.values()}
