"""A node's own registers on the bus."""

from typing import Any

import pytest

from rtl.registers.node_registers import NodeRegisters
from tests.rtl.simulation import Simulation
from wire.registers import LEASE_SECOND_AT_RESET, NodeRegister

PORTS = 5
OTHERS = {NodeRegister.LID: (16, 0), NodeRegister.LMC: (3, 2)}


def answers(accesses: list[dict[str, int]]) -> list[int]:
    """`rdata` in each cycle from that of the first answer on; the accesses are as given."""
    dut = NodeRegisters(PORTS, OTHERS)
    found = []

    async def drive(ctx: Any) -> None:
        for access in [*accesses, {}, {}, {}]:
            ctx.set(dut.given, {"select": 1, **access} if access else {})
            found.append(ctx.get(dut.rdata))
            await ctx.tick()

    Simulation(dut).run(drive)
    assert found[:3] == [0, 0, 0]
    return found[3:]


def read(register: int, select: int = 1) -> dict[str, int]:
    return {"select": select, "read": 1, "offset": register}


def write(register: int, value: int, select: int = 1) -> dict[str, int]:
    return {"select": select, "write": 1, "offset": register, "wdata": value}


def test_values_at_reset() -> None:
    registers = (NodeRegister.NUM_PORTS, NodeRegister.LID, NodeRegister.LMC, NodeRegister.LEASE_SECOND)
    assert answers([read(register) for register in registers]) == [PORTS, 0, 2, LEASE_SECOND_AT_RESET]


@pytest.mark.parametrize(
    ("register", "value", "after"),
    [
        (NodeRegister.LID, 0xFFFF, 0xFFFF),
        (NodeRegister.LID, 0x10000, 0),
        (NodeRegister.LMC, 7, 7),
        (NodeRegister.LMC, 8, 2),
        (NodeRegister.LEASE_SECOND, 0xFFFFFFFF, 0xFFFFFFFF),
        (NodeRegister.LEASE_SECOND, 0, LEASE_SECOND_AT_RESET),
        (NodeRegister.NUM_PORTS, 9, PORTS),
    ],
)
def test_a_value_that_does_not_fit_is_ignored(register: int, value: int, after: int) -> None:
    assert answers([write(register, value), read(register)]) == [0, after]


def test_a_write_of_another_value_is_seen_in_the_cycle_after_it() -> None:
    dut = NodeRegisters(PORTS, OTHERS)
    accesses = [
        write(NodeRegister.LID, 0),
        write(NodeRegister.LID, 7),
        write(NodeRegister.LMC, 3),
        write(NodeRegister.LMC, 8),
        read(NodeRegister.LID),
    ]
    seen = []

    async def drive(ctx: Any) -> None:
        for access in [*accesses, write(NodeRegister.LID, 1, select=0), {}]:
            ctx.set(dut.given, access)
            seen.append((ctx.get(dut.changed.lid), ctx.get(dut.changed.lmc)))
            await ctx.tick()

    Simulation(dut).run(drive)
    assert seen == [(0, 0), (0, 0), (1, 0), (0, 1), (0, 0), (0, 0), (0, 0)]


def test_accesses_to_other_pages_are_none() -> None:
    lid = NodeRegister.LID
    assert answers([write(lid, 3, select=0), read(lid, select=0), read(lid)]) == [0, 0, 0]
    assert answers([write(lid, 3), read(lid, select=0), read(lid)]) == [0, 0, 3]
