"""What a Subnet Manager would do, in a few lines, for the regressions."""

from __future__ import annotations

import random

import cocotb

from cosim.drivers import FabricDriver
from wire.codes import PortState
from wire.packet import Packet, build_ud_send
from wire.registers import Counter, NodeRegister, PortRegister, lft_address, node_address, port_address

__all__ = ["PATIENCE", "bring_up", "counter", "how_many", "lid", "port_state", "set_state", "ud_packet"]

PATIENCE = 20_000
"""Cycles after which a packet that has not come will not come."""

SWITCH = "sw0"
_EXCHANGE_CYCLES = 30
"""More than two flow control packets take to be sent, carried and received."""


def how_many(many: int, on_icarus: int) -> int:
    """How many to send: fewer on Icarus, which is hundreds of times slower."""
    return on_icarus if cocotb.SIM_NAME.startswith("Icarus") else many


def lid(host: str) -> int:
    """The LID of host `h<number>`."""
    return int(host.removeprefix("h")) + 1


async def set_state(fabric: FabricDriver, node: str, port: int, state: PortState) -> None:
    await fabric.control.write(node, port_address(port, PortRegister.STATE), state)


async def port_state(fabric: FabricDriver, node: str, port: int) -> PortState:
    return PortState(await fabric.control.read(node, port_address(port, PortRegister.STATE)))


async def counter(fabric: FabricDriver, node: str, port: int, which: Counter) -> int:
    return await fabric.control.read(node, port_address(port, which))


async def bring_up(fabric: FabricDriver) -> None:
    """LIDs and routes, then both ends of every link to Armed and to Active."""
    ends = []
    for host in fabric.adapters:
        await fabric.control.write(host, node_address(NodeRegister.LID), lid(host))
        await fabric.control.write(SWITCH, lft_address(lid(host)), lid(host))
        ends += [(host, 1), (SWITCH, lid(host))]
    await fabric.cycles(_EXCHANGE_CYCLES)
    for state in (PortState.ARMED, PortState.ACTIVE):
        for node, port in ends:
            await set_state(fabric, node, port, state)
        await fabric.cycles(_EXCHANGE_CYCLES)
    for node, port in ends:
        assert await port_state(fabric, node, port) == PortState.ACTIVE


def ud_packet(source: str, to: str, payload_bytes: int, *, sl: int = 0, vl: int = 0, psn: int = 0) -> Packet:
    """A UD packet with random payload from one host to another."""
    return build_ud_send(
        slid=lid(source),
        dlid=lid(to),
        sl=sl,
        vl=vl,
        dest_qp=2,
        src_qp=2,
        q_key=0x1234,
        psn=psn,
        payload=random.randbytes(payload_bytes),
    )
