"""Two masters on a node's register bus: the one outside and the node's agent."""

from typing import Any

from rtl.registers.bus import NodeBus
from tests.rtl.simulation import Simulation

Access = tuple[str, str, int]
"""Master, read or write, address. What is written is the address plus 1."""


def run(given: dict[int, list[Access]], cycles: int = 20) -> dict[str, list[tuple[int, int]]]:
    """What happened, (cycle, address or value) by its name. A read is answered with its address plus 2."""
    dut = NodeBus()
    masters = {"outside": dut.bus, "agent": dut.agent}
    seen: dict[str, list[tuple[int, int]]] = {
        name: []
        for name in (*("read", "write", "wdata", "hold", "record"), *(f"{master} answer" for master in masters))
    }
    read_before: dict[int, int] = {}

    async def bench(ctx: Any) -> None:
        for cycle in range(cycles):
            for bus in masters.values():
                ctx.set(bus.read, 0)
                ctx.set(bus.write, 0)
            for master, kind, address in given.get(cycle, ()):
                ctx.set(masters[master].addr, address)
                ctx.set(masters[master].wdata, address + 1)
                ctx.set(getattr(masters[master], kind), 1)
            access = dut.access
            address = ctx.get(access.page) << 16 | ctx.get(access.offset)
            for kind in ("read", "write"):
                if ctx.get(access[kind]):
                    seen[kind].append((cycle, address))
            if ctx.get(access.write):
                seen["wdata"].append((cycle, ctx.get(access.wdata)))
            if ctx.get(access.read):
                read_before[cycle] = address
            ctx.set(dut.answer, read_before.get(cycle - 2, 0) + 2)
            if ctx.get(dut.hold):
                seen["hold"].append((cycle, 1))
            for master, bus in masters.items():
                if ctx.get(bus.rvalid):
                    seen[f"{master} answer"].append((cycle, ctx.get(bus.rdata)))
            if ctx.get(dut.trace.valid):
                seen["record"].append((cycle, ctx.get(dut.trace.payload[0][0])))
            await ctx.tick()

    Simulation(dut).run(bench)
    return seen


def test_both_masters_reach_the_registers_a_cycle_later() -> None:
    seen = run({3: [("outside", "write", 0x10)], 4: [("agent", "write", 0x20002)], 6: [("agent", "read", 5)]})
    assert seen["write"] == [(4, 0x10), (5, 0x20002)]
    assert seen["wdata"] == [(4, 0x11), (5, 0x20003)]
    assert seen["read"] == [(7, 5)]


def test_each_gets_the_answer_to_its_own_reads_four_cycles_later() -> None:
    seen = run({3: [("agent", "read", 7)], 4: [("outside", "read", 8)], 5: [("agent", "read", 9)]})
    assert seen["agent answer"] == [(7, 9), (9, 11)]
    assert seen["outside answer"] == [(8, 10)]


def test_only_reads_from_outside_are_recorded() -> None:
    seen = run({3: [("agent", "read", 7)], 4: [("outside", "read", 8)]})
    assert seen["record"] == [(8, 8)]


def test_the_agent_stands_back_for_an_access_from_outside() -> None:
    for kind in ("read", "write"):
        given: dict[int, list[Access]] = {3: [("agent", "read", 7), ("outside", kind, 8)], 4: [("agent", "write", 9)]}
        seen = run(given)
        assert seen["hold"] == [(3, 1)]
        assert seen["agent answer"] == []
        accesses = sorted(seen["read"] + seen["write"])
        assert accesses == [(4, 8), (5, 9)]
