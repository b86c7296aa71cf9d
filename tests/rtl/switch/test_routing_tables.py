"""An input's copies of LFT and MFT: each has its own entries, wherever both are."""

import random
from typing import Any

import pytest

from rtl.switch.routing_tables import RoutingTables
from tests.rtl.simulation import Simulation
from wire.codes import LID_MULTICAST_MIN


@pytest.mark.parametrize(
    ("ports", "lft_size", "mft_size"),
    [(8, 64, 32), (8, 32, 96), (3, 64, 64), (2, 2, 32), (33, 64, 32)],
    ids=["larger LFT", "larger MFT", "as large", "least", "masks in parts"],
)
def test_each_entry_of_both_tables_is_what_was_written_last(ports: int, lft_size: int, mft_size: int) -> None:
    seed = 7
    print(f"seed {seed}")
    rng = random.Random(seed)
    dut = RoutingTables(ports, lft_size, mft_size)
    parts = len(dut.multicast_write.part)
    lft, mft = dict.fromkeys(range(lft_size), 0), dict.fromkeys(range(mft_size), 0)

    async def bench(ctx: Any) -> None:
        for _ in range(3 * (lft_size + mft_size)):
            ctx.set(dut.forwarding_write.valid, 0)
            ctx.set(dut.multicast_write.part, 0)
            if rng.random() < 0.4:
                lid, output = rng.randrange(lft_size), rng.randrange(ports + 1)
                entry = {"known": 1, "output": output}
                ctx.set(dut.forwarding_write, {"valid": 1, "lid": lid, "entry": entry})
                lft[lid] = 1 | output << 1
            elif rng.random() < 0.6:
                group, part, mask = rng.randrange(mft_size), rng.randrange(parts), rng.getrandbits(16)
                mask &= (1 << ports + 1) - 1 >> 16 * part
                ctx.set(dut.multicast_write, {"part": 1 << part, "entry": group, "mask": mask})
                mft[group] = mft[group] & ~(0xFFFF << 16 * part) | mask << 16 * part
            await ctx.tick()
        ctx.set(dut.forwarding_write.valid, 0)
        ctx.set(dut.multicast_write.part, 0)
        for lid, entry in lft.items():
            ctx.set(dut.lid, lid)
            await ctx.tick()
            assert ctx.get(dut.destination.as_value()) == entry, f"LID {lid}"
        for group, by_port in mft.items():
            ctx.set(dut.lid, LID_MULTICAST_MIN + group)
            await ctx.tick()
            assert ctx.get(dut.outputs) == by_port >> 1 | (by_port & 1) << ports, f"group {group}"

    Simulation(dut).run(bench)
