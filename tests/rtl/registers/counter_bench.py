"""Counters of a port in a simulation of their own: what is counted and accessed cycle by cycle, and what is read."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.lib import wiring
from amaranth.sim import Simulator

from wire.registers import Counter, Detail, PacketCounter

__all__ = ["Access", "Counted", "Cycle", "answers", "read", "run", "write"]

Access = tuple[int, int | None]
"""A register's offset and the value written, None of a read."""
Counted = Mapping[Counter | PacketCounter | Detail, int]
"""By how much counters move."""
Cycle = tuple[Access | None, Counted]

_NO_AMOUNT = 9
"""On the wires of a counter that does not move."""


def run(dut: wiring.Component, cycles: Sequence[Cycle]) -> list[int]:
    """What is read in each cycle, and in one more."""
    counters: Any = dut
    found = []

    async def drive(ctx: Any) -> None:
        for access, counted in [*cycles, (None, {})]:
            by_name = {counter.name: amount for counter, amount in counted.items()}
            ctx.set(counters.reg, _wires(access))
            ctx.set(counters.counts, {name: name in by_name for name, _ in counters.counts.shape()})
            ctx.set(
                counters.amounts,
                {name: by_name.get(name, _NO_AMOUNT % (1 << field.width)) for name, field in counters.amounts.shape()},
            )
            found.append(ctx.get(counters.value))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return found


def _wires(access: Access | None) -> dict[str, int]:
    if access is None:
        return {}
    offset, value = access
    return {"select": 1, "offset": offset, "read": value is None, "write": value is not None, "wdata": value or 0}


def answers(dut: wiring.Component, cycles: Sequence[Cycle]) -> list[int]:
    """What the reads among these cycles give."""
    found = run(dut, cycles)
    return [found[at + 1] for at, (access, _) in enumerate(cycles) if access is not None and access[1] is None]


def read(offset: int) -> Cycle:
    """A cycle that reads a register."""
    return (offset, None), {}


def write(offset: int, value: int) -> Cycle:
    """A cycle that writes one."""
    return (offset, value), {}
