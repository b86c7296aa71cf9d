"""Regressions on three hosts at one switch, packet by packet: what two hosts do not show."""

import random

import cocotb

from cosim.drivers import FabricDriver
from tests.regression.subnet import PATIENCE, bring_up, counter, how_many, lid, ud_packet
from wire.packet import parse
from wire.registers import Counter, lft_address

LONG = 256


async def packet_without_a_route_is_dropped_and_counted(fabric: FabricDriver) -> None:
    await fabric.control.write("sw0", lft_address(lid("h2")), 255)
    await fabric.adapters["h0"].send(ud_packet("h0", "h2", 64).data)
    packet = ud_packet("h0", "h1", 64).data
    await fabric.adapters["h0"].send(packet)
    assert await fabric.adapters["h1"].recv(PATIENCE) == packet
    assert fabric.adapters["h2"].count() == 0
    assert await counter(fabric, "sw0", 1, Counter.RCV_SWITCH_RELAY_ERRORS) == 1


async def order_within_a_flow_is_kept(fabric: FabricDriver) -> None:
    # Of either, more than the switch has buffer for.
    count = how_many(40, on_icarus=10)
    for psn in range(count):
        for source in ("h0", "h2"):
            await fabric.adapters[source].send(ud_packet(source, "h1", random.choice([0, 32, LONG]), psn=psn).data)
    arrived: dict[int, list[int]] = {lid("h0"): [], lid("h2"): []}
    for _packet in range(2 * count):
        packet = parse(await fabric.adapters["h1"].recv(PATIENCE))
        assert packet.bth is not None
        arrived[packet.lrh.slid].append(packet.bth.psn)
    assert arrived == {lid("h0"): list(range(count)), lid("h2"): list(range(count))}


@cocotb.test()
async def three_hosts(dut):
    fabric = await FabricDriver.start(dut)
    await bring_up(fabric)
    await packet_without_a_route_is_dropped_and_counted(fabric)
    await order_within_a_flow_is_kept(fabric)
