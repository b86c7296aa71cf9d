"""cocotb tests of the drivers on the stand-in fabric, run by test_drivers.py inside the simulators."""

import os

import cocotb
import pytest

from cosim.drivers import FabricDriver
from wire.stimulus import Injection, Operation, Trigger
from wire.trace import Kind, link_source


@cocotb.test()
async def packets_arrive_in_order(dut):
    fabric = await FabricDriver.start(dut)
    packets = [os.urandom(4 * size) for size in (7, 1055, 2, 40)]
    for packet in packets:
        await fabric.adapters["h0"].send(packet)
    await fabric.adapters["h1"].send(packets[0], vl=15)
    assert [await fabric.adapters["h1"].recv(3000) for _packet in packets] == packets
    delivery = await fabric.adapters["h0"].recv_delivery(10)
    assert delivery.slot == fabric.adapters["h1"].vls
    assert delivery.cycle < fabric.cycle


@cocotb.test()
async def packet_waits_for_its_cycle(dut):
    fabric = await FabricDriver.start(dut)
    sends = fabric.monitor(kinds=[Kind.SEND])
    await fabric.adapters["h0"].send(bytes(40), cycle=500)
    record = await sends.recv(1000)
    assert (record.cycle, record.b) == (501, 10)


@cocotb.test()
async def nothing_arrives_nowhere(dut):
    fabric = await FabricDriver.start(dut)
    with pytest.raises(TimeoutError, match="packet at h1: nothing in 50 cycles"):
        await fabric.adapters["h1"].recv(timeout_cycles=50)
    assert fabric.adapters["h1"].count() == 0
    with pytest.raises(ValueError, match=r"VL 1 of h0: expected 0\.\.0 or 15"):
        await fabric.adapters["h0"].send(bytes(8), vl=1)
    with pytest.raises(ValueError, match="packet of 7 bytes"):
        await fabric.adapters["h0"].send(bytes(7))


@cocotb.test()
async def registers_are_written_and_read(dut):
    fabric = await FabricDriver.start(dut)
    for value in (1, 0xFFFF_FFFF, 0x1234_5678):
        await fabric.control.write("h1", 0x123456, value)
        assert await fabric.control.read("h1", 0x123456) == value


@cocotb.test()
async def operations_reach_their_target(dut):
    fabric = await FabricDriver.start(dut)
    shown = fabric.monitor(ports=None, kinds=[Kind.INJECT])
    await fabric.cycles(10)
    await fabric.control.link_down(0)
    await fabric.control.stall("h1", {0, 2})
    await fabric.control.inject(0, 1, Injection(Trigger.LINK, first=1))
    operations = [await shown.recv(5) for _operation in range(3)]
    assert [record.source for record in operations] == [link_source(0, 0)] * 3
    seen = [(record.c & 0xFFFF, record.c >> 16, record.a) for record in operations]
    head = Injection(Trigger.LINK, first=1).args()[0]
    assert seen == [(0, Operation.LINK_DOWN, 0), (1, Operation.RECV_STALL, 5), (1, Operation.INJECT, head)]
