"""How an input inspects guarded packets, against section 3.8 of docs/pipeline.md read plainly."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from rtl.crossing.others import others
from rtl.switch.inspection import Inspection
from tests.campaigns import some_of
from tests.rtl.simulation import Simulation

BLOCK_BITS = 5
BLOCKS = 24


@dataclass
class Packet:
    """A guarded packet, with what is found of it."""

    first: int
    to: int
    raw: bool
    has_p_key: bool
    p_key: int
    slid: int
    dlid: int
    sl: int
    looked: list[bool] = field(default_factory=list)  # port by port, whether that checks packets like this one
    rejected: int = 0


def of_others(mask: int, own: int, ports: int) -> int:
    return sum((mask >> port & 1) << place for place, port in enumerate(others(own, ports)))


def some_packet(rng: random.Random, first: int, ports: int, own: int) -> Packet:
    raw = rng.random() < 0.2
    p_key, slid, dlid = (rng.getrandbits(16) for _ in range(3))
    has_p_key = not raw and rng.random() < 0.9
    return Packet(first, rng.getrandbits(ports) & ~(1 << own), raw, has_p_key, p_key, slid, dlid, rng.randrange(16))


@pytest.mark.parametrize(
    ("seed", "ports", "vls"), some_of(product(range(2), (2, 8, 36), (1, 4)), {(0, 8, 4), (1, 2, 4), (1, 36, 1)})
)
def test_each_port_s_table_is_looked_into_when_it_is_free_and_vls_take_turns(seed: int, ports: int, vls: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(f"{seed}/{ports}/{vls}")
    own = rng.randrange(ports)
    dut = Inspection(ports, vls, BLOCK_BITS, BLOCKS)
    seen: Counter[str] = Counter()

    async def bench(ctx: Any) -> None:
        waiting: dict[int, Packet] = {}  # the first in each VL's queue
        queue, current, begun, idle_from, turn = 0, None, 0, 0, 0
        answered: int | None = None  # the port whose table was looked into in the cycle before
        rejects: dict[int, tuple[int, Packet]] = {}  # what is told of: port and packet, by the cycle
        outbound = raw_outbound = 0
        ctx.set(dut.own, own)
        for cycle in range(6000):
            # The tables may be taken, and Sets change what is checked.
            if rng.random() < 0.1:
                outbound, raw_outbound = rng.getrandbits(ports), rng.getrandbits(ports)
            free, has = rng.random() < 0.7, rng.random() < 0.5
            ctx.set(dut.outbound, outbound)
            ctx.set(dut.raw_outbound, raw_outbound)
            ctx.set(dut.free, free)
            ctx.set(dut.has, has)
            ctx.set(dut.queues.waiting, sum(1 << vl for vl in waiting))

            # One begins, if there is none.
            begins = 0
            if current is None and cycle >= idle_from and waiting:
                queue = min(waiting, key=lambda vl: (vl - turn) % vls)
                current, begun, begins, turn = waiting[queue], cycle, 1 << queue, (queue + 1) % vls
                seen["several"] += len(waiting) > 1
            assert ctx.get(dut.queues.queue) == begins, cycle
            ctx.set(dut.queues.first, current.first if begins and current else 0)
            ctx.set(dut.queues.to, of_others(current.to, own, ports) if begins and current else 0)

            # What was looked for in the cycle before is there or not.
            ends = answered == ports - 1
            found = current is not None and answered is not None and not (has and current.has_p_key)
            if found and current is not None and answered is not None and current.looked[answered]:
                current.rejected |= 1 << answered
                if current.has_p_key and current.to >> answered & 1:
                    rejects[cycle + 1] = answered + 1, current
                    seen["told"] += 1
            assert ctx.get(dut.queues.inspected) == (ends and 1 << queue), cycle
            if ends and current is not None:
                assert ctx.get(dut.queues.rejected) == of_others(current.rejected, own, ports), cycle
                seen["rejected" if current.rejected else "clean"] += 1

            # The next table.
            looks = current is not None and not ends and free and cycle >= begun + 2 and len(current.looked) < ports
            answered = None
            if looks and current is not None:
                answered = len(current.looked)
                assert ctx.get(dut.table_number) == answered, cycle
                assert ctx.get(dut.p_key) == current.p_key, cycle
                current.looked.append(bool((raw_outbound if current.raw else outbound) >> answered & 1))
            if ends:
                del waiting[queue]
                current, idle_from = None, cycle + 1

            assert ctx.get(dut.wrong.valid) == (cycle in rejects), cycle
            if cycle - 1 in rejects:
                port, packet = rejects[cycle - 1]
                told = {name: ctx.get(dut.wrong[name]) for name in ("slid", "dlid", "sl", "p_key", "port")}
                fields = {name: getattr(packet, name) for name in ("slid", "dlid", "sl", "p_key")}
                assert told == fields | {"port": port}, cycle

            # A packet joins an empty queue.
            joins = [vl for vl in range(vls) if vl not in waiting and rng.random() < 0.05][:1]
            ctx.set(dut.join, bool(joins))
            for vl in joins:
                used = {packet.first for packet in waiting.values()}
                packet = some_packet(rng, rng.choice(sorted(set(range(BLOCKS)) - used)), ports, own)
                waiting[vl] = packet
                names = ("raw", "has_p_key", "p_key", "slid", "dlid", "sl")
                ctx.set(dut.first, packet.first)
                ctx.set(dut.packet, {name: int(getattr(packet, name)) for name in names})
            await ctx.tick()

    Simulation(dut).run(bench)
    assert min(seen["told"], seen["rejected"], seen["several"] if vls > 1 else 10) >= 10, seen
    assert seen["clean"] or ports == 36, seen
