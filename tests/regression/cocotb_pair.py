"""Regressions on two hosts at one switch, packet by packet."""

import random

import cocotb

from cosim.drivers import FabricDriver
from tests.regression.subnet import PATIENCE, bring_up, counter, how_many, port_state, set_state, ud_packet
from wire.codes import PortState
from wire.registers import Counter, PortRegister, port_address
from wire.stimulus import Injection, Trigger
from wire.trace import Kind, LinkResult, Verdict
from wire.trace_layout import RxData, RxFcp

LONG = 256


async def active_needs_flow_control_of_the_other_end(fabric: FabricDriver) -> None:
    await fabric.cycles(50)
    await set_state(fabric, "sw0", 2, PortState.ARMED)
    await set_state(fabric, "sw0", 2, PortState.ACTIVE)
    assert await port_state(fabric, "sw0", 2) == PortState.ARMED


async def port_without_a_link_stays_down(fabric: FabricDriver) -> None:
    await fabric.control.link_down(1)
    await fabric.cycles(20)
    assert await port_state(fabric, "sw0", 2) == PortState.DOWN
    await set_state(fabric, "sw0", 2, PortState.ARMED)
    assert await port_state(fabric, "sw0", 2) == PortState.DOWN
    await fabric.control.link_up(1)
    await fabric.cycles(20)
    assert await port_state(fabric, "sw0", 2) == PortState.INITIALIZE


async def link_comes_up_state_by_state(fabric: FabricDriver) -> None:
    states = fabric.monitor(kinds=[Kind.STATE], ports=[("sw0", 1)])
    assert await port_state(fabric, "sw0", 1) == PortState.INITIALIZE
    await bring_up(fabric)
    states.poll()
    assert [record.a for record in states.seen] == [PortState.ARMED, PortState.ACTIVE]


async def unplugged_cable_comes_back(fabric: FabricDriver) -> None:
    await fabric.control.write("sw0", port_address(1, PortRegister.LINK_DOWN_TIMEOUT), 100)
    await fabric.control.link_down(0)
    await fabric.cycles(40)
    assert await port_state(fabric, "sw0", 1) == PortState.ACTIVE_DEFER
    await fabric.control.link_up(0)
    await fabric.cycles(40)
    assert await port_state(fabric, "sw0", 1) == PortState.ACTIVE
    assert await counter(fabric, "sw0", 1, Counter.LINK_ERROR_RECOVERY) == 1
    await fabric.control.link_down(0)
    await fabric.cycles(150)
    assert await port_state(fabric, "sw0", 1) == PortState.DOWN
    assert await counter(fabric, "sw0", 1, Counter.LINK_DOWNED) == 1


@cocotb.test()
async def port_states(dut):
    """One after the other in one simulation, which takes longer to start than these take.

    Port 2 is in Initialize again after the second, port 1 Active after the third.
    """
    fabric = await FabricDriver.start(dut)
    await active_needs_flow_control_of_the_other_end(fabric)
    await port_without_a_link_stays_down(fabric)
    await link_comes_up_state_by_state(fabric)
    await unplugged_cable_comes_back(fabric)


async def packet_without_credits_waits(fabric: FabricDriver) -> list[bytes]:
    """As the host at the other end takes none on VL0. The packets, which wait still."""
    left_host, left_switch = [fabric.monitor(kinds=[Kind.TX_DATA], ports=[port]) for port in (("h0", 1), ("sw0", 2))]
    await fabric.control.stall("h1", {0})
    # More than all buffers on the path hold, so VL0 is full back to the host.
    packets = [ud_packet("h0", "h1", LONG, psn=psn) for psn in range(how_many(24, on_icarus=10))]
    for packet in packets:
        await fabric.adapters["h0"].send(packet.data, vl=0)
    # The time of more than eight packets.
    await fabric.cycles(700)
    in_a_buffer = 16 // packets[0].blocks
    # 16 blocks of buffer at the host, and what it has begun to take; and as much at the switch.
    for monitor, buffers in ((left_switch, 1), (left_host, 2)):
        monitor.poll()
        assert len(monitor.seen) == buffers * in_a_buffer
    assert fabric.adapters["h1"].count() == 0
    assert await counter(fabric, "sw0", 2, Counter.XMIT_WAIT) > 0
    return [packet.data for packet in packets]


async def blocked_vl_never_stops_another(fabric: FabricDriver, on_vl0: list[bytes]) -> None:
    """VL0 is blocked by these packets."""
    on_vl1 = [ud_packet("h0", "h1", LONG, sl=1, vl=1, psn=psn).data for psn in range(len(on_vl0))]
    for packet in on_vl1:
        await fabric.adapters["h0"].send(packet, vl=1)
    assert [await fabric.adapters["h1"].recv(1000) for _packet in on_vl1] == on_vl1
    assert fabric.adapters["h1"].count() == 0
    await fabric.control.stall("h1", set())
    assert [await fabric.adapters["h1"].recv(PATIENCE) for _packet in on_vl0] == on_vl0


async def packets_go_both_ways(fabric: FabricDriver) -> None:
    sent = {"h0": [], "h1": []}
    for psn in range(how_many(20, on_icarus=10)):
        for source, to in (("h0", "h1"), ("h1", "h0")):
            packet = ud_packet(source, to, random.randrange(0, LONG + 1), psn=psn)
            await fabric.adapters[source].send(packet.data)
            sent[to].append(packet.data)
    for to, packets in sent.items():
        assert [await fabric.adapters[to].recv(PATIENCE) for _packet in packets] == packets


@cocotb.test()
async def packets_and_credits(dut):
    fabric = await FabricDriver.start(dut)
    await bring_up(fabric)
    on_vl0 = await packet_without_credits_waits(fabric)
    await blocked_vl_never_stops_another(fabric, on_vl0)
    await packets_go_both_ways(fabric)


async def damaged_packet_is_never_delivered_as_good(fabric: FabricDriver) -> None:
    verdicts = fabric.monitor(kinds=[Kind.RX_DATA], ports=[("sw0", 1)])
    good = []
    received = []
    damaged = how_many(20, on_icarus=10)
    for psn in range(0, 2 * damaged, 2):
        pair = [ud_packet("h0", "h1", random.randrange(LONG + 1), psn=psn + number).data for number in range(2)]
        # The error is armed for the next packet on the link: of two that follow each other closely, the first.
        row, bit = random.randrange(1, len(pair[0]) // 4), random.randrange(32)
        await fabric.control.inject(0, 0, Injection(Trigger.DATA, first=row, last=row, flip=1 << bit))
        for packet in pair:
            await fabric.adapters["h0"].send(packet)
        good.append(pair[1])
        received += [await verdicts.recv(PATIENCE) for _packet in pair]
    assert [await fabric.adapters["h1"].recv(PATIENCE) for _packet in good] == good
    # Longer than a packet takes to the host.
    await fabric.cycles(100)
    assert fabric.adapters["h1"].count() == 0
    verdicts.poll()
    received += verdicts.seen
    assert sum(RxData.verdict.read(record) != Verdict.GOOD for record in received) == damaged
    errors = [Counter.RCV_ERRORS, Counter.RCV_SWITCH_RELAY_ERRORS]
    assert sum([await counter(fabric, "sw0", 1, which) for which in errors]) == damaged


async def lost_flow_control_heals(fabric: FabricDriver) -> None:
    for node, port in (("sw0", 1), ("sw0", 2), ("h0", 1), ("h1", 1)):
        await fabric.control.write(node, port_address(port, PortRegister.FCP_PERIOD), 200)
    received = fabric.monitor(kinds=[Kind.RX_FCP], ports=[("h0", 1), ("sw0", 2)])
    packets = [ud_packet("h0", "h1", LONG, psn=psn).data for psn in range(how_many(30, on_icarus=16))]
    for packet in packets:
        await fabric.adapters["h0"].send(packet)
    for _damage in range(30):
        # One bit of the credit limit sent to a sender, on both hops.
        await fabric.control.inject(0, 1, Injection(Trigger.LINK, first=0, last=0, flip=1 << 3))
        await fabric.control.inject(1, 0, Injection(Trigger.LINK, first=0, last=0, flip=1 << 3))
        await fabric.cycles(random.randrange(10, 60))
    assert [await fabric.adapters["h1"].recv(PATIENCE) for _packet in packets] == packets
    received.poll()
    lost = [record for record in received.seen if RxFcp.result.read(record) == LinkResult.LPCRC]
    assert len(lost) > 10
    assert await counter(fabric, "h0", 1, Counter.RCV_ERRORS) > 0


@cocotb.test()
async def errors_on_links(dut):
    fabric = await FabricDriver.start(dut)
    await bring_up(fabric)
    await damaged_packet_is_never_delivered_as_good(fabric)
    await lost_flow_control_heals(fabric)
