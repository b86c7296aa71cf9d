"""Where a received SMP goes, or that it is dropped (docs/pipeline.md, section 3.3)."""

from typing import Any

import pytest

from rtl.switch.route import Route
from tests.rtl.simulation import Simulation
from wire.codes import LID_PERMISSIVE, VL15
from wire.packet import blocks_of_words
from wire.trace import Verdict

VLS = 2
MAD_WORDS = 72
MFT_SIZE = 32
ENTRIES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 200, 255]


@pytest.mark.parametrize(("ports", "lft_size"), [(4, 16), (4, 40), (7, 16), (8, 16)])
def test_the_permissive_lid_leads_to_port_0_whatever_stands_in_the_forwarding_table(ports: int, lft_size: int) -> None:
    dut = Route(ports, VLS, lft_size, MFT_SIZE, 2048, [64] * (VLS + 1))
    need = blocks_of_words(MAD_WORDS)

    async def bench(ctx: Any) -> None:
        header, write = dut.header, dut.routing.forwarding_write
        for member, value in (("valid", 1), ("slot", VLS), ("vl", VL15), ("n", MAD_WORDS), ("need", need)):
            ctx.set(header[member], value)
        ctx.set(header.dlid, LID_PERMISSIVE)
        ctx.set(dut.routing.forwarding_top, lft_size - 1)
        ctx.set(dut.routing.lookup_dlid, LID_PERMISSIVE)
        ctx.set(dut.routing.concerned, 1)
        ctx.set(write.valid, 1)
        for entry in ENTRIES:
            ctx.set(write.entry.known, entry <= ports)
            ctx.set(write.entry.output, (entry - 1) % (ports + 1))
            for lid in range(lft_size):
                ctx.set(write.lid, lid)
                await ctx.tick()
            for port in (1, ports):
                ctx.set(dut.routing.input, port - 1)
                await ctx.tick()
                for free, verdict in ((need, Verdict.GOOD), (need - 1, Verdict.VL15_DROPPED)):
                    ctx.set(dut.free[VLS], free)
                    seen = (ctx.get(dut.relay), bool(ctx.get(dut.refused)), ctx.get(dut.output), ctx.get(dut.slot))
                    assert seen == (verdict, verdict != Verdict.GOOD, ports, VLS), (entry, port, free)

    Simulation(dut).run(bench)
