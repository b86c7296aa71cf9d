"""The cocotb test that a simulator runs for a session: it does what the session orders, window by window.

An order is a line of JSON: the doorbells to ring, and the cycle to stop at. The answer, once the clock has paused
there, is another: that cycle, and how much the players have read. When the orders end, so does the
simulation.
"""

from __future__ import annotations

import json
import os
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

__all__ = ["ANSWERS", "ORDERS", "session"]

ORDERS = "IRONBAND_ORDERS"
ANSWERS = "IRONBAND_ANSWERS"
"""Environment variables with the numbers of the two pipes' file descriptors."""

_COUNT_MAX = 0xFFFF_FFFF


@cocotb.test()
async def session(dut: Any) -> None:
    """Run windows of cycles until the orders end."""
    with os.fdopen(int(os.environ[ORDERS])) as orders, os.fdopen(int(os.environ[ANSWERS]), "w") as answers:
        for line in orders:
            order = json.loads(line)
            dut.controls_posted.value = order["controls"]
            dut.posted.value = sum(count << 32 * stream for stream, count in enumerate(order["posted"]))
            dut.stop.value = order["stop"]
            # At time 0, the first value of `paused` may look like an edge.
            while int(dut.cycle.value) != order["stop"]:
                await RisingEdge(dut.paused)
            taken = int(dut.taken.value)
            counts = [taken >> 32 * stream & _COUNT_MAX for stream in range(len(order["posted"]))]
            print(json.dumps({"stop": order["stop"], "taken": counts}), file=answers, flush=True)
