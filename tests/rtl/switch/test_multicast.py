"""Where a multicast packet goes, or why nowhere (docs/pipeline.md, sections 3.3 and 3.7)."""

from typing import Any

import pytest

from rtl.switch.route import Route
from tests.rtl.simulation import Simulation
from wire.codes import LID_MULTICAST_MAX, LNH, max_pkt_len, operational_vls
from wire.trace import Verdict

PORTS = 4
VLS = 2
MFT_SIZE = 32
MTU = 2048
POOLS = [100] * (VLS + 1)
OWN = 2
FIRST = 0xC000
KNOWN = FIRST + 5
MTU_256, MTU_512 = 1, 2
ALL = 0b11111
AGENT = 1 << PORTS


def to(*ports: int) -> int:
    """The mask of the outputs of these ports."""
    return sum(1 << (port - 1) % (PORTS + 1) for port in ports)


class Bench:
    """The input of port OWN, in a switch all of whose ports are as good as they can be."""

    def __init__(self, ctx: Any, dut: Route) -> None:
        self._ctx, self._dut = ctx, dut
        ctx.set(dut.routing.input, OWN - 1)
        ctx.set(dut.routing.own_wide_follows, 1)
        for facts in dut.routing.outputs:
            ctx.set(facts.operational, (1 << VLS) - 1)
            ctx.set(facts.mtu, MTU_512)
            ctx.set(facts.wide, 1)
        for slot in range(VLS + 1):
            ctx.set(dut.free[slot], 100)
        self.defaults()

    def defaults(self, top: int = LID_MULTICAST_MAX, primary: int = 0, not_primary: int = 0) -> None:
        missed = not_primary if primary == to(OWN) else primary
        self._ctx.set(self._dut.routing.multicast, {"top": top, "missed": missed})

    async def write(self, dlid: int, ports: int, part: int = 0) -> None:
        """A mask of ports."""
        write = self._dut.routing.multicast_write
        self._ctx.set(write, {"part": 1 << part, "entry": dlid - FIRST, "mask": ports})
        await self._ctx.tick()
        self._ctx.set(write.part, 0)

    async def map(self, port: int, sl: int, vl: int) -> None:
        access = {"write": 1, "outputs": to(port), "sl": sl, "vl": vl}
        self._ctx.set(self._dut.routing.sl_to_vl, access)
        await self._ctx.tick()
        self._ctx.set(self._dut.routing.sl_to_vl.write, 0)

    async def ask(self, dlid: int, sl: int = 0, n: int = 20, vl: int = 0) -> tuple[Verdict, int]:
        """A packet's verdict, and the outputs of its copies."""
        ctx, dut = self._ctx, self._dut
        ctx.set(dut.routing.lookup_dlid, dlid)
        ctx.set(dut.routing.concerned, 1)
        await ctx.tick()
        header = {"valid": 1, "slot": vl, "vl": vl, "sl": sl, "lnh": LNH.IBA_LOCAL, "dlid": dlid, "n": n}
        ctx.set(dut.header, {**header, "need": n // 16 + 1})
        await ctx.delay(0)
        verdict = Verdict(ctx.get(dut.relay))
        assert ctx.get(dut.refused) == (verdict != Verdict.GOOD)
        assert ctx.get(dut.has_copies) == (FIRST <= dlid < 0xFFFF)
        return verdict, ctx.get(dut.copies.to)


def test_a_group_has_the_ports_of_its_entry_but_for_the_one_it_comes_by() -> None:
    dut = Route(PORTS, VLS, 16, MFT_SIZE, MTU, POOLS)
    ports_of = [
        (0b11110, Verdict.GOOD, to(1, 3, 4)),
        (0b00001, Verdict.GOOD, AGENT),
        (0xFFFF, Verdict.GOOD, to(0, 1, 3, 4)),
        (0xFFE0, Verdict.NO_ROUTE, 0),  # ports that the switch does not have
        (0b00100, Verdict.LOOP, 0),
    ]

    async def bench(ctx: Any) -> None:
        it = Bench(ctx, dut)
        assert await it.ask(KNOWN) == (Verdict.NO_ROUTE, 0)
        for ports, *expected in ports_of:
            await it.write(KNOWN, ports)
            assert [*await it.ask(KNOWN)] == expected
        await it.write(KNOWN + 1, 0b01010)
        assert await it.ask(KNOWN + 1) == (Verdict.GOOD, to(1, 3))
        assert await it.ask(0xFFFF) == (Verdict.NO_ROUTE, to())
        await it.write(KNOWN, 0b11110)
        for free, verdict in ((2, Verdict.GOOD), (1, Verdict.OVERRUN)):
            ctx.set(dut.free[0], free)
            assert await it.ask(KNOWN) == (verdict, to(1, 3, 4))

    Simulation(dut).run(bench)


@pytest.mark.parametrize("beyond", ["table", "top"])
def test_what_the_table_has_not_goes_to_a_default_port(beyond: str) -> None:
    dut = Route(PORTS, VLS, 16, MFT_SIZE, MTU, POOLS)
    dlid, top = (FIRST + MFT_SIZE, LID_MULTICAST_MAX) if beyond == "table" else (KNOWN + 1, KNOWN)
    misses = [
        (0, 0, Verdict.NO_ROUTE, 0),
        (to(3), to(4), Verdict.GOOD, to(3)),
        (to(0), to(4), Verdict.GOOD, AGENT),
        (to(OWN), to(4), Verdict.GOOD, to(4)),
        (to(OWN), to(OWN), Verdict.LOOP, 0),
        (to(OWN), 0, Verdict.NO_ROUTE, 0),
        (0, to(4), Verdict.NO_ROUTE, 0),
    ]

    async def bench(ctx: Any) -> None:
        it = Bench(ctx, dut)
        for known in range(FIRST, FIRST + MFT_SIZE):
            await it.write(known, 0b00010)
        for primary, not_primary, *expected in misses:
            it.defaults(top, primary, not_primary)
            assert [*await it.ask(dlid)] == expected
            assert await it.ask(KNOWN) == (Verdict.GOOD, to(1))

    Simulation(dut).run(bench)


def test_each_copy_has_its_vl_and_length_and_none_where_there_is_no_vl() -> None:
    dut = Route(PORTS, VLS, 16, MFT_SIZE, MTU, POOLS)
    sl, n = 3, max_pkt_len(MTU_256) + 1

    async def bench(ctx: Any) -> None:
        it = Bench(ctx, dut)
        await it.write(KNOWN, 0b11011)
        await it.map(1, sl, 0)
        await it.map(3, sl, 1)
        await it.map(4, sl, 5)
        ctx.set(dut.routing.outputs[2].mtu, MTU_256)
        assert await it.ask(KNOWN, sl, n, vl=1) == (Verdict.GOOD, to(0, 1, 3))
        assert [ctx.get(dut.copies.slots[port - 1]) for port in (1, 3)] == [0, 1]
        assert ctx.get(dut.copies.oversize) & to(1, 3) == to(3)
        ctx.set(dut.routing.outputs[2].operational, operational_vls(1))
        assert await it.ask(KNOWN, sl, n, vl=1) == (Verdict.GOOD, to(0, 1))
        await it.write(KNOWN, 0b11100)
        assert await it.ask(KNOWN, sl, n, vl=1) == (Verdict.VL_MAP, 0)

    Simulation(dut).run(bench)


def test_multicast_is_checked_on_arrival_only_and_from_1x_waits_for_what_follows() -> None:
    dut = Route(PORTS, VLS, 16, MFT_SIZE, MTU, POOLS)

    async def bench(ctx: Any) -> None:
        it = Bench(ctx, dut)
        await it.write(KNOWN, 0b11110)
        for facts in dut.routing.outputs:
            ctx.set(facts.outbound, 1)
            ctx.set(facts.wide, 0)
        ctx.set(dut.routing.inbound, 1)
        await it.ask(KNOWN)
        assert [ctx.get(one) for one in (dut.arrival, dut.departure, dut.slower)] == [1, 0, 0]
        ctx.set(dut.routing.own_wide_follows, 0)
        await it.ask(KNOWN)
        assert ctx.get(dut.slower) == 1

    Simulation(dut).run(bench)
