"""cocotb tests of a switch between two hosts: `.venv/bin/python examples/cocotb_two_hosts.py [SIMULATOR]`.

The tests run inside the simulator, icarus unless another is given, each in a simulation of its own.
"""

import sys
from typing import Any

import cocotb

import ironband
from ironband.drivers import Counter, FabricDriver, Kind, PortState, build_ud_send

PATIENCE = 5_000


@cocotb.test()
async def packets_arrive_in_their_order(dut: Any) -> None:
    """More than the switch has room for."""
    fabric = await FabricDriver.start(dut)
    await fabric.bring_up()
    packets = [
        build_ud_send(slid=fabric.lid("H1"), dlid=fabric.lid("H2"), dest_qp=2, src_qp=3, q_key=4, payload=bytes(size))
        for size in (256, 0, 100, 256, 256, 17)
    ]
    for packet in packets:
        await fabric.adapters["H1"].send(packet)
    for packet in packets:
        assert await fabric.adapters["H2"].recv(PATIENCE) == packet.data
    assert await fabric.counter("SW1", 1, Counter.RCV_PKTS) == len(packets)


@cocotb.test()
async def port_waits_for_its_cable_to_come_back(dut: Any) -> None:
    """It is in ActiveDefer meanwhile, and the port beside it takes no notice."""
    fabric = await FabricDriver.start(dut)
    await fabric.bring_up()
    states = fabric.monitor(kinds=[Kind.STATE], ports=[("SW1", 1)])
    await fabric.control.link_down(0)
    assert PortState((await states.recv(PATIENCE)).a) == PortState.ACTIVE_DEFER
    await fabric.control.link_up(0)
    assert PortState((await states.recv(PATIENCE)).a) == PortState.ACTIVE
    assert await fabric.state("SW1", 2) == PortState.ACTIVE
    assert await fabric.counter("SW1", 1, Counter.LINK_ERROR_RECOVERY) == 1


def main(simulator: str = "icarus") -> None:
    """Runs the tests above on a switch of two ports with a host at each."""
    fabric = ironband.Fabric(ironband.SwitchParameters(ports=2, mtu=256, buffer_blocks=16, lft_size=16))
    for test in fabric.run_cocotb(__file__, simulator):
        print(f"{simulator}: {test.name} passed, {test.simulated_ns:,.0f} ns")


if __name__ == "__main__":
    main(*sys.argv[1:])
