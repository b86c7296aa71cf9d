"""What an output marks for congestion, packet by packet, against section 7.3 of docs/pipeline.md."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from amaranth.hdl import Module

from rtl.crossing.arrivals import Arrivals
from rtl.crossing.congestion import Congestion
from rtl.crossing.others import others, place_of
from tests.rtl.simulation import Simulation
from wire.codes import LNH
from wire.headers import LRH
from wire.parameters import SwitchParameters

VLS, PORTS, OUT = 2, 2, 1
"""The output is the second port's; behind the ports there is the agent."""
BLOCKS = 9
CYCLES = 3000


class Output:
    """What the contract says of one output, by the cycle in which it is visible."""

    def __init__(self) -> None:
        self.joined: list[tuple[int, int, int]] = []  # e, slot, need
        self.granted: list[tuple[int, int, int]] = []  # g, slot, need
        self.starved: dict[int, set[int]] = defaultdict(set)
        self.threshold: dict[int, int] = {}
        self.countdown = [0] * VLS

    def queued(self, cycle: int, slot: int) -> int:
        come = sum(need for e, of, need in self.joined if of == slot and e + 3 <= cycle)
        return come - sum(need for g, of, need in self.granted if of == slot and g + 2 <= cycle)

    def crowded(self, cycle: int, slot: int) -> bool:
        threshold = self.threshold[cycle]
        return threshold != 0 and self.queued(cycle, slot) > BLOCKS * (16 - threshold) // 16

    def marks(self, g: int, slot: int, need: int, settings: dict[str, int], victim: bool) -> bool:
        """Of a charged packet with a BTH."""
        if need < settings["packet_size"] or not self.crowded(g + 2, slot):
            return False
        if slot in self.starved[g] and not victim:
            return False
        marked = self.countdown[slot] == 0
        self.countdown[slot] = settings["marking_rate"] if marked else self.countdown[slot] - 1
        return marked


def row_0(lnh: int, dlid: int) -> int:
    """As it passes the transmit stage, with something in place of SDP."""
    return 0xA5 << 24 | int.from_bytes(LRH.pack(lnh=lnh, dlid=dlid)[:3])


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.deep), pytest.param(3, marks=pytest.mark.deep)])
def test_packets_are_marked_as_the_contract_says(seed: int) -> None:
    rng = random.Random(seed)
    m = Module()
    parameters = SwitchParameters(ports=PORTS, vls=VLS, mtu=256, buffer_blocks=BLOCKS)
    m.submodules.arrivals = arrivals = Arrivals(PORTS + 1, PORTS, VLS, parameters.mtu)
    m.submodules.congestion = dut = Congestion(parameters, PORTS)
    m.d.comb += dut.arrived.eq(arrivals.arrived[OUT])
    output, expected, found = Output(), [], []

    async def bench(ctx: Any) -> None:
        settings = {"threshold": 15, "packet_size": 0, "marking_rate": 0}
        own, victim = False, False
        waiting: list[tuple[int, int]] = []
        due: dict[int, Any] = {}
        next_grant = 10
        for cycle in range(CYCLES):
            # What is set, visible from this cycle on.
            if rng.random() < 0.01:
                settings = {
                    "threshold": rng.choice((0, 1, 8, 14, 15)),
                    "packet_size": rng.choice((0, 2, 3)),
                    "marking_rate": rng.choice((0, 1, 3)),
                }
                own, victim = rng.random() < 0.5, rng.random() < 0.5
                other = dict.fromkeys(settings, 15)
                ctx.set(dut.own, {"valid": own, "settings": settings if own else other})
                ctx.set(dut.common, other if own else settings)
                ctx.set(dut.victim, victim)
            elif cycle == 0:
                ctx.set(dut.common, settings)
            output.threshold[cycle] = settings["threshold"]

            # Packets join, of one input after the other and of all at once; none goes back to its port.
            for number in range(PORTS + 1):
                joins = rng.random() < (0.4 if len(waiting) < 8 else 0.05)
                to = rng.choice(others(number, PORTS + 1))
                slot, need = rng.randrange(VLS + 1), rng.randint(1, 5)
                joining = {"valid": joins, "need": need, "output": place_of(to, number), "slot": slot}
                ctx.set(arrivals.joining[number], joining)
                if joins and to == OUT and slot < VLS:
                    output.joined.append((cycle, slot, need))
                    waiting.append((slot, need))

            # Heads without credits.
            available = cycle - 1 not in due and rng.random() < 0.3
            starving = rng.randrange(1 << VLS) & rng.randrange(1 << VLS)
            ctx.set(dut.available, available)
            ctx.set(dut.starving, starving)
            for slot in range(VLS):
                granted = cycle - 1 in due and due[cycle - 1][0] == slot  # which ends it, visible two cycles later
                if (slot in output.starved[cycle] and not granted) or (available and starving >> slot & 1):
                    output.starved[cycle + 1].add(slot)

            # A packet is granted, and is at the transmit stage in the third cycle after that.
            ctx.set(dut.granted, 0)
            if cycle - 2 in due:
                ctx.set(dut.granted, 1)
                ctx.set(dut.slot, 1 << due[cycle - 2][0])
            if cycle >= next_grant and (waiting or rng.random() < 0.1):
                next_grant = cycle + rng.choice((4, 4, 5, 9))
                multicast = not waiting or rng.random() < 0.1
                slot, need = (rng.randrange(VLS), rng.randint(1, 5)) if multicast else waiting.pop(0)
                fate = rng.choice(("sent", "sent", "sent", "refused", "swallowed", "scrapped"))
                lnh = rng.choice((LNH.IBA_LOCAL, LNH.IBA_GLOBAL, LNH.RAW))
                due[cycle] = slot, need, multicast, fate, lnh
                if not multicast:
                    output.granted.append((cycle, slot, need))
            begins = due.get(cycle - 3)
            row = {"valid": 0, "first": rng.random() < 0.5, "slot": 0}
            ctx.set(dut.scrapped, 0)
            if begins:
                slot, need, multicast, fate, lnh = begins
                dlid = 0xC003 if multicast else 0xBFFF
                row = {"valid": fate != "scrapped", "first": 1, "last": fate == "swallowed", "slot": slot, "need": need}
                row |= {"data": row_0(lnh, dlid)}
                ctx.set(dut.scrapped, fate == "scrapped")
            ctx.set(dut.send, row)
            if begins:
                could_be = fate == "sent" and not multicast and lnh != LNH.RAW
                expected.append(could_be and output.marks(cycle - 3, slot, need, settings, victim))

            # Whether it was charged, and is marked, is told in the cycle after.
            ctx.set(dut.charged, 0)
            if cycle - 4 in due:
                ctx.set(dut.charged, due[cycle - 4][3] == "sent")
                found.append(bool(ctx.get(dut.marks)))
                assert found == expected, f"cycle {cycle}"
            await ctx.tick()

    Simulation(m).run(bench)
    assert 10 < sum(found) < len(found) - 100
