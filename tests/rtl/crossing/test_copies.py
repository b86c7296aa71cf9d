"""Multicast packets in an input: heads for each copy that is left, turns, and blocks that return once."""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from amaranth.sim import Simulator

from rtl.crossing.copies import CopyReturns
from rtl.crossing.fifo import FifoQueues
from rtl.crossing.store import PacketStore
from rtl.crossing.voq import VirtualOutputQueues
from tests.rtl.quick_engine import QuickEngine
from wire.packet import blocks_of_words

VLS = 2
VL15 = VLS
OUTPUTS = 4
CREDITED = 3
BLOCKS = 24
BLOCK_BITS = 5
AMPLE = 128
"""Room for a head of any size."""

Place = tuple[int, int]
"""An output and a slot there."""

Queue = tuple[str, int, int]


def run(dut: Any, bench: Any) -> None:
    simulator = Simulator(dut, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


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
    ended: int = 10**9

    def may_go(self, output: int, facts: Facts, last: "Packet", cycle: int) -> bool:
        """In the cycle after one with these facts; the packet that joined the same queue last has to be there."""
        slot = self.left[output]
        if output >= CREDITED:
            return True
        swallowed = facts.swallows[slot] or (slot != VL15 and output in self.oversize)
        if slot != VL15 and facts.blocked:
            return False
        if swallowed:
            return last.ended < cycle
        return slot == VL15 or (facts.room[slot] - self.need) % 256 <= 128


class Reference:
    """Sections 4 and 7 of docs/pipeline.md, for one input."""

    def __init__(self, queueing: str) -> None:
        self.queueing = queueing
        self.queues: dict[Queue, list[Packet]] = defaultdict(list)
        self.last: dict[Queue, Packet] = {}
        self.emptied: dict[Queue, int] = defaultdict(lambda: -10)  # when the packet before was granted
        self.turn: dict[Place, int] = defaultdict(int)
        self.queue_ptr = 0

    def join(self, packet: Packet) -> None:
        if self.queueing == "fifo" or packet.multicast:
            queue = ("of VL", packet.pool, 0)
        else:
            queue = ("of output", *next(iter(packet.left.items())))
        self.queues[queue].append(packet)
        self.last[queue] = packet

    def heads(self, cycle: int, place: Place) -> list[Queue]:
        output, slot = place
        found = []
        for queue, packets in self.queues.items():
            if packets and packets[0].left.get(output) == slot:
                joined, emptied = packets[0].joined, self.emptied[queue]
                if cycle >= (joined + 1 if emptied < joined else emptied + 3):
                    found.append(queue)
        return found

    def eligible(self, cycle: int, place: Place, facts: list[Facts]) -> list[Queue]:
        def may_go(queue: Queue) -> bool:
            of_output = facts[place[0]] if place[0] < CREDITED else Facts()
            return self.queues[queue][0].may_go(place[0], of_output, self.last[queue], cycle)

        return [queue for queue in self.heads(cycle, place) if may_go(queue)]

    def grant(self, cycle: int, place: Place, eligible: list[Queue]) -> Packet:
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
            self.emptied[queue] = cycle
        return packet


def some_packet(rng: random.Random, first: int, cycle: int) -> Packet:
    pool, need = rng.choice((0, 0, 1, 1, VL15)), rng.choice((1, 2, 40))
    multicast = pool != VL15 and rng.random() < 0.5
    outputs = rng.sample(range(OUTPUTS), rng.randrange(1, OUTPUTS + 1) if multicast else 1)
    slots = {o: pool if o >= CREDITED or pool == VL15 else rng.randrange(VLS) for o in outputs}
    oversize = {o for o in outputs if o < CREDITED and rng.random() < 0.2}
    return Packet(first, pool, need, multicast, slots, oversize, cycle)


def other_facts(rng: random.Random) -> list[Facts]:
    found = []
    for _ in range(CREDITED):
        swallows = [rng.random() < 0.1 for _ in range(VLS + 1)]
        room = [AMPLE if swallows[vl] else rng.choice((AMPLE, AMPLE, 1, 0)) for vl in range(VLS)]
        found.append(Facts(rng.random() < 0.1, swallows, room))
    return found


@pytest.mark.parametrize(("queueing", "seed"), [("voq", 0), ("voq", 1), ("fifo", 2)])
def test_each_copy_left_is_a_head_and_kinds_and_queues_take_turns(queueing: Literal["voq", "fifo"], seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    kind = VirtualOutputQueues if queueing == "voq" else FifoQueues
    dut = kind(BLOCK_BITS, BLOCKS, OUTPUTS, CREDITED, VLS, multicast=True)
    reference = Reference(queueing)
    places = [(o, slot) for o in range(OUTPUTS) for slot in range(VLS + 1)]
    seen: Counter[str] = Counter()

    async def bench(ctx: Any) -> None:
        port, heads = dut.queueing, dut.queueing.heads
        free, leaving = list(range(BLOCKS)), []
        coming: Packet | None = None
        facts = [Facts() for _ in range(CREDITED)]
        granted: tuple[Packet, int, int] | None = None
        not_available: dict[int, int] = defaultdict(lambda: -10)
        for cycle in range(1200):
            # What was granted in the cycle before.
            if granted is not None:
                packet, output, slot = granted
                shows = port.granted
                assert (ctx.get(shows.first), ctx.get(shows.slot)) == (packet.first, 1 << slot)
                has_queue = (packet.multicast or queueing == "fifo") and slot != VL15
                assert ctx.get(shows.shared) == (has_queue and 1 << packet.pool)
                assert ctx.get(shows.more) == bool(packet.left)
                assert not has_queue or ctx.get(shows.oversize) == (output in packet.oversize)
                if not packet.left:
                    leaving.append((cycle + 3, packet.first))

            # What is visible, and what could go by the facts of the cycle before.
            choices = []
            for output, slot in places:
                expected = reference.heads(cycle, (output, slot))
                assert ctx.get(heads.visible[slot]) >> output & 1 == bool(expected), (cycle, output, slot)
                eligible = reference.eligible(cycle, (output, slot), facts)
                if not_available[output] < cycle - 1:
                    assert ctx.get(heads.requests[slot]) >> output & 1 == bool(eligible), (cycle, output, slot)
                if eligible and not_available[output] < cycle - 2:
                    choices.append((output, slot, eligible))
                    seen["several"] += len(eligible) > 1

            ctx.set(heads.grant_output, 0)
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
                for o in range(CREDITED):
                    ctx.set(port.copies.slots[o], joins.left.get(o, 0) % VLS)
            granted = None
            if choices and rng.random() < 0.5:
                output, slot, eligible = rng.choice(choices)
                packet = reference.grant(cycle, (output, slot), eligible)
                granted = packet, output, slot
                not_available[output] = cycle
                seen["last" if not packet.left else "copy"] += 1
                ctx.set(heads.grant_output, 1 << output)
                for o in range(OUTPUTS):  # of the others anything
                    ctx.set(heads.grant_slots[o], 1 << (slot if o == output else rng.randrange(VLS + 1)))
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
                    ctx.set(heads.facts[o].room[vl], of_output.room[vl])
            await ctx.tick()

    run(dut, bench)
    assert min(seen["several"], seen["copy"]) > 30, seen


@dataclass
class Copy:
    packet: list[int]  # when its copies were granted, and how many there are to be
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
        taken: tuple[int, bool] | None = None
        returned = 0
        for cycle in range(2500):
            ctx.set(dut.shared, 0 if taken is None else 1 << taken[0])
            ctx.set(dut.more, taken is not None and taken[1])
            busy = [copy for copy in reading if copy is not None]
            over = [copy for copy in busy if copy.done == cycle]
            ctx.set(dut.done, sum(1 << copy.reader for copy in over))
            asks = []
            for copy in over:
                before = [granted for granted in copy.packet if granted < cycle]
                others = [other for other in busy if other is not copy and other.packet is copy.packet]
                later = [other for other in others if other.done > cycle]
                lower = [other for other in others if other.done == cycle and other.reader < copy.reader]
                asks.append(len(before) == copy.of and not later and not lower)
                seen["together"] += bool(others)
                seen["both done"] += bool(lower)
            await ctx.delay(0)
            for copy, expected in zip(over, asks, strict=True):
                assert ctx.get(dut.returns) >> copy.reader & 1 == expected, cycle
                returned += expected
                reading[copy.reader] = None
            idle = [number for number in range(readers) if reading[number] is None]
            ctx.set(dut.grant, 0)
            taken = None
            if idle and rng.random() < 0.6:
                ctx.set(dut.grant, 1 << idle[0])
                queue = rng.randrange(VLS + 1)
                done = cycle + rng.choice((2, 3, 4, rng.randrange(5, 20)))
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

    run(dut, bench)
    assert readers == 1 or min(seen["together"], 4 * seen["both done"]) > 20, seen


def test_a_stored_packet_gives_back_its_blocks_once_behind_its_last_copy() -> None:
    n, pool = 20, 10
    need = blocks_of_words(n)
    dut = PacketStore((pool, 6), OUTPUTS, CREDITED, "voq", 2, multicast=True)
    grants = {5: 0, 8: 2, 60: 1}  # by cycle: output, two at a time
    rows: dict[int, list[int]] = defaultdict(list)

    async def bench(ctx: Any) -> None:
        crossing, fill = dut.crossing, dut.fill
        due = [0, 0]
        ctx.set(crossing.wide, 0b1111)
        for output in range(CREDITED):
            ctx.set(crossing.heads.facts[output].room[0], AMPLE)
        for cycle in range(100):
            for reader, to in enumerate(due):
                if to and ctx.get(crossing.rows[reader].valid):
                    rows[to].append(ctx.get(crossing.rows[reader].data))
            due = [ctx.get(to) for to in crossing.to_output]
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
            ctx.set(crossing.heads.grant_output, 0 if to is None else 1 << to)
            ctx.set(crossing.granted, to is not None)
            for output in range(OUTPUTS):
                ctx.set(crossing.heads.grant_slots[output], 1)
            # x_n = g + 1 + n; the release, asked for at x_n + 1, shows in the cycle after.
            assert ctx.get(fill.free[0]) == (pool - need if 1 < cycle < 60 + 1 + n + 2 else pool), cycle
            await ctx.tick()

    run(dut, bench)
    whole = [need << 24, *range(1, n + 1)]
    assert rows == {1 << output: whole for output in grants.values()}
