"""A switch whose port is driven row by row: `.venv/bin/python examples/cocotb_open_port.py [SIMULATOR]`.

Host H1 is left out. In its place a partner keeps the link up, and the tests say which rows come over it.
"""

import sys
from typing import Any

import cocotb

import ironband
from ironband.drivers import Counter, FabricDriver, LinkPartner, Packet, Row, build_ud_send, frame_data_packet

PATIENCE = 2_000


async def started(dut: Any) -> tuple[FabricDriver, LinkPartner]:
    """The fabric, up, and what is at port 1 of its switch."""
    fabric = await FabricDriver.start(dut)
    partner = fabric.partner("SW1", 1)
    await fabric.bring_up()
    return fabric, partner


def packet(source: int, destination: int, payload: bytes) -> Packet:
    """From one LID to another."""
    return build_ud_send(slid=source, dlid=destination, dest_qp=2, src_qp=3, q_key=4, payload=payload)


@cocotb.test()
async def rows_are_a_packet_and_a_packet_is_rows(dut: Any) -> None:
    """To the host at port 2, and from it."""
    fabric, partner = await started(dut)
    there = packet(fabric.lid("H1"), fabric.lid("H2"), b"there")
    await partner.rows.send(frame_data_packet(there.wire))
    assert await fabric.adapters["H2"].recv(PATIENCE) == there.data
    back = packet(fabric.lid("H2"), fabric.lid("H1"), b"back")
    await fabric.adapters["H2"].send(back)
    assert (await partner.recv(PATIENCE)).data == back.data


@cocotb.test()
async def packet_that_breaks_off_is_an_error_and_the_next_is_whole(dut: Any) -> None:
    """Idle rows follow its tenth; then comes a row with a symbol that no row has there."""
    fabric, partner = await started(dut)
    whole = packet(fabric.lid("H1"), fabric.lid("H2"), b"whole")
    await partner.rows.send(frame_data_packet(packet(1, 2, bytes(100)).wire)[:10])
    await fabric.cycles(20)
    await partner.rows.send([Row(data=0xFD00_0000, k=0b1000)])
    await fabric.cycles(20)
    await partner.rows.send(frame_data_packet(whole.wire))
    assert await fabric.adapters["H2"].recv(PATIENCE) == whole.data
    assert await fabric.counter("SW1", 1, Counter.RCV_ERRORS) == 1
    assert await fabric.counter("SW1", 1, Counter.SYMBOL_ERROR) == 1


def main(simulator: str = "icarus") -> None:
    """Runs the tests above on a switch of two ports, of which the first is open."""
    fabric = ironband.Fabric(ironband.SwitchParameters(ports=2, mtu=256, buffer_blocks=16, lft_size=16))
    for test in fabric.run_cocotb(__file__, simulator, open_at=["H1"]):
        print(f"{simulator}: {test.name} passed, {test.simulated_ns:,.0f} ns")


if __name__ == "__main__":
    main(*sys.argv[1:])
