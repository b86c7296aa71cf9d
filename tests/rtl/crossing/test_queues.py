"""Queues of packets: first in, first out, and heads visible in the cycles of docs/pipeline.md, section 4."""

import random
from collections import defaultdict, deque
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import data
from amaranth.lib.wiring import connect

from rtl.crossing.queues import PacketQueues
from rtl.crossing.successors import Successors, packet_layout
from tests.rtl.simulation import Simulation

QUEUES = 6
BLOCKS = 32
PACKET = packet_layout(5, data.StructLayout({"need": 7}))


class Reference:
    """Each queue as a list of packets; a head is granted at g, and leaves at g+1."""

    def __init__(self) -> None:
        self.queues: dict[int, deque[tuple[int, int]]] = defaultdict(deque)  # (packet, joined in cycle)
        self.last_grant: dict[int, int] = defaultdict(lambda: -10)

    def join(self, cycle: int, queue: int, packet: int) -> None:
        self.queues[queue].append((packet, cycle))

    def head(self, cycle: int, queue: int) -> int | None:
        if not self.queues[queue]:
            return None
        packet, joined = self.queues[queue][0]
        granted = self.last_grant[queue]
        visible_from = joined + 1 if granted < joined - 1 else granted + 5
        return packet if cycle >= visible_from else None

    def leave(self, granted_at: int, queue: int) -> int:
        self.last_grant[queue] = granted_at
        return self.queues[queue].popleft()[0]


@pytest.mark.parametrize("seed", range(3))
def test_heads_are_visible_when_the_contract_says(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    m = Module()
    m.submodules.queues = dut = PacketQueues(QUEUES, PACKET)
    m.submodules.successors = successors = Successors(BLOCKS, [PACKET])
    connect(m, dut.link, successors.kind_0)
    reference = Reference()
    free = list(range(BLOCKS))
    gone: deque[tuple[int, int]] = deque()
    takes = 0

    async def bench(ctx: Any) -> None:
        nonlocal takes
        granted: int | None = None
        for cycle in range(1500):
            visible = ctx.get(dut.visible)
            expected = {queue: reference.head(cycle, queue) for queue in range(QUEUES)}
            for queue, head in expected.items():
                assert bool(visible >> queue & 1) == (head is not None), f"cycle {cycle}, queue {queue}"
                if head is not None:
                    assert ctx.get(dut.heads[queue].first) == head
                    assert ctx.get(dut.heads[queue].key.need) == head * 3 & 0x7F

            # Blocks of a packet taken come back a while later, as a release would bring them.
            while gone and gone[0][0] <= cycle:
                free.append(gone.popleft()[1])

            # What was granted in the cycle before is taken, and something is granted.
            take = granted
            ctx.set(dut.take, 0 if take is None else 1 << take)
            heads = [queue for queue, head in expected.items() if head is not None and queue != take]
            granted = rng.choice(heads) if heads and rng.random() < 0.6 else None
            ctx.set(dut.join, 0)
            if free and rng.random() < 0.7:
                first = free.pop(rng.randrange(len(free)))
                queue = rng.choice((0, 1, rng.randrange(QUEUES)))
                ctx.set(dut.join, 1)
                ctx.set(dut.join_queue, queue)
                ctx.set(dut.join_packet.first, first)
                ctx.set(dut.join_packet.key.need, first * 3 & 0x7F)
                reference.join(cycle, queue, first)
            if take is not None:
                takes += 1
                taken = reference.leave(cycle - 1, take)
                ctx.set(successors.taken, taken)
                gone.append((cycle + 4, taken))
            await ctx.tick()

    Simulation(m).run(bench)
    assert takes > 300
