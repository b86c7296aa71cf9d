"""Regressions on a switch port that is driven symbol by symbol.

What a port does in one state is shown one after the other in one simulation: to start one and bring it up costs more
than what is shown. Each behaviour leaves the port as it found it, and has a name that a failure's traceback says.
"""

from typing import NamedTuple

import cocotb

from cosim.drivers import FabricDriver, RowDriver, RowMonitor
from tests.regression.fabrics import OPEN
from tests.regression.subnet import bring_up, counter, port_state, set_state, ud_packet
from wire.codes import PortState
from wire.crc import invert_vcrc
from wire.flow_control import FlowControlOp, FlowControlPacket
from wire.registers import Counter, lft_address
from wire.symbols import Control, Row, frame_data_packet, frame_link_packet
from wire.trace import Kind, LinkResult, Verdict
from wire.trace_layout import RxData, RxFcp, TxData

VLS = OPEN.nodes["sw0"].vls
CREDITS = 40
PATIENCE = 500


def flow_control(op: FlowControlOp, vl: int = 0, fctbs: int = 0, fccl: int = CREDITS) -> list[Row]:
    return frame_link_packet(FlowControlPacket(op, fctbs, vl, fccl).encode())


async def activate(fabric: FabricDriver, driver: RowDriver) -> None:
    """Take the open port to Active, as its neighbour."""
    await bring_up(fabric)
    await set_state(fabric, "sw0", 1, PortState.ARMED)
    await fabric.cycles(10)
    for vl in range(VLS):
        await driver.send(flow_control(FlowControlOp.NORMAL, vl))
    await fabric.cycles(10)
    await set_state(fabric, "sw0", 1, PortState.ACTIVE)
    await fabric.control.write("sw0", lft_address(1), 1)
    assert await port_state(fabric, "sw0", 1) == PortState.ACTIVE


class Port(NamedTuple):
    """The open port and the fabric behind it."""

    fabric: FabricDriver
    driver: RowDriver
    monitor: RowMonitor


async def started(dut) -> Port:
    """A fabric whose open port is in Initialize."""
    fabric = await FabricDriver.start(dut)
    driver, monitor = fabric.open_port("sw0", 1)
    await fabric.cycles(3)
    assert await port_state(fabric, "sw0", 1) == PortState.INITIALIZE
    return Port(fabric, driver, monitor)


async def operations(monitor: RowMonitor) -> list[FlowControlOp]:
    """Of the flow control packets that the open port sent since the last time."""
    return [FlowControlPacket.decode((await monitor.recv()).body).op for _frame in range(monitor.count())]


async def port_in_initialize_offers_its_whole_buffer(port: Port) -> None:
    _fabric, _driver, monitor = port
    for vl in range(VLS):
        frame = await monitor.recv(PATIENCE)
        packet = FlowControlPacket.decode(frame.body)
        assert packet == FlowControlPacket(FlowControlOp.INIT, 0, vl, OPEN.nodes["sw0"].buffer_blocks)


async def armed_port_sends_normal_flow_control(port: Port) -> None:
    fabric, _driver, monitor = port
    await bring_up(fabric)
    await set_state(fabric, "sw0", 1, PortState.ARMED)
    await fabric.cycles(40)
    assert await operations(monitor) == [FlowControlOp.NORMAL] * VLS


async def armed_port_answers_the_first_normal_flow_control(port: Port) -> None:
    fabric, driver, monitor = port
    for expected in (VLS, 0):
        await driver.send(flow_control(FlowControlOp.NORMAL))
        await fabric.cycles(40)
        assert await operations(monitor) == [FlowControlOp.NORMAL] * expected


@cocotb.test()
async def port_from_initialize_to_armed(dut):
    port = await started(dut)
    await port_in_initialize_offers_its_whole_buffer(port)
    await armed_port_sends_normal_flow_control(port)
    await armed_port_answers_the_first_normal_flow_control(port)


async def switch_latency_is_eight_cycles(port: Port) -> None:
    fabric, driver, _monitor = port
    received = fabric.monitor(kinds=[Kind.RX_DATA], ports=[("sw0", 1)])
    sent = fabric.monitor(kinds=[Kind.TX_DATA], ports=[("sw0", 2)])
    packet = ud_packet("h0", "h1", 256)
    driver.send_nowait(frame_data_packet(packet.wire))
    came = await received.recv(PATIENCE)
    start = came.cycle - 2 - RxData.end_row.read(came)
    assert TxData.first_cycle.read(await sent.recv(PATIENCE)) - start == 8
    assert await fabric.adapters["h1"].recv(PATIENCE) == packet.data


async def packet_is_forwarded_as_it_was_sent(port: Port) -> None:
    fabric, driver, monitor = port
    packet = ud_packet("h0", "h1", 100)
    driver.send_nowait(frame_data_packet(packet.wire))
    assert await fabric.adapters["h1"].recv(PATIENCE) == packet.data
    answer = ud_packet("h1", "h0", 256)
    await fabric.adapters["h1"].send(answer.data)
    frame = await monitor.recv_data(PATIENCE)
    assert frame.good
    assert frame.body == answer.wire


async def row_after_row_is_taken_at_full_speed(port: Port) -> None:
    fabric, driver, _monitor = port
    packets = [ud_packet("h0", "h1", 0, psn=psn) for psn in range(10)]
    for packet in packets:
        driver.send_nowait(frame_data_packet(packet.wire))
    assert [await fabric.adapters["h1"].recv(PATIENCE) for _packet in packets] == [p.data for p in packets]


async def symbol_error_is_counted(port: Port) -> None:
    fabric, driver, _monitor = port
    await driver.send([Row(Control.EGP << 16, 0b0100), Row(0, 0), Row(Control.COM << 24, 0b1000)])
    await fabric.cycles(10)
    assert await counter(fabric, "sw0", 1, Counter.SYMBOL_ERROR) == 2
    assert await counter(fabric, "sw0", 1, Counter.RCV_ERRORS) == 0


async def damaged_link_packet_changes_nothing(port: Port) -> None:
    fabric, driver, _monitor = port
    received = fabric.monitor(kinds=[Kind.RX_FCP], ports=[("sw0", 1)])
    rows = flow_control(FlowControlOp.INIT)
    await driver.send([Row(rows[0].data ^ 1, rows[0].k), rows[1]])
    record = await received.recv(PATIENCE)
    assert RxFcp.result.read(record) == LinkResult.LPCRC
    assert await counter(fabric, "sw0", 1, Counter.RCV_ERRORS) == 1
    assert await port_state(fabric, "sw0", 1) == PortState.ACTIVE


async def damaged_packet_leaves_marked_bad_or_not_at_all(port: Port) -> None:
    fabric, driver, _monitor = port
    verdicts = fabric.monitor(kinds=[Kind.RX_DATA], ports=[("sw0", 1), ("h1", 1)])
    packet = ud_packet("h0", "h1", 200)
    rows = frame_data_packet(packet.data + invert_vcrc(packet.wire[-2:]))
    await driver.send(rows)
    at_switch, at_host = [await verdicts.recv(PATIENCE) for _end in range(2)]
    assert RxData.verdict.read(at_switch) == Verdict.PHYSICAL
    assert RxData.verdict.read(at_host) == Verdict.REMOTE
    assert fabric.adapters["h1"].count() == 0


async def packet_cut_short_is_an_error(port: Port) -> None:
    fabric, driver, _monitor = port
    verdicts = fabric.monitor(kinds=[Kind.RX_DATA], ports=[("sw0", 1)])
    rows = frame_data_packet(ud_packet("h0", "h1", 200).wire)
    good = ud_packet("h0", "h1", 64)
    # The next packet begins inside this one: that ends it, and is lost with it.
    driver.send_nowait(rows[:20] + frame_data_packet(good.wire))
    record = await verdicts.recv(PATIENCE)
    assert (RxData.verdict.read(record), RxData.end_row.read(record)) == (Verdict.PHYSICAL, 20)
    await fabric.cycles(100)
    driver.send_nowait(frame_data_packet(good.wire))
    assert await fabric.adapters["h1"].recv(PATIENCE) == good.data


async def neighbour_that_starts_anew_takes_the_port_down(port: Port) -> None:
    fabric, driver, _monitor = port
    await driver.send(flow_control(FlowControlOp.INIT))
    await fabric.cycles(10)
    assert await port_state(fabric, "sw0", 1) == PortState.INITIALIZE
    assert await counter(fabric, "sw0", 1, Counter.LINK_DOWNED) == 0


@cocotb.test()
async def active_port(dut):
    """In this order: errors are counted from 0 on, and the last one takes the port down."""
    port = await started(dut)
    await activate(port.fabric, port.driver)
    await switch_latency_is_eight_cycles(port)
    await packet_is_forwarded_as_it_was_sent(port)
    await row_after_row_is_taken_at_full_speed(port)
    await symbol_error_is_counted(port)
    await damaged_link_packet_changes_nothing(port)
    await damaged_packet_leaves_marked_bad_or_not_at_all(port)
    await packet_cut_short_is_an_error(port)
    await neighbour_that_starts_anew_takes_the_port_down(port)


@cocotb.test()
async def packet_without_credits_waits_for_them(dut):
    fabric, driver, monitor = await started(dut)
    await activate(fabric, driver)
    packet = ud_packet("h1", "h0", 256)
    assert CREDITS // packet.blocks == 8
    for _packet in range(9):
        await fabric.adapters["h1"].send(packet.data)
    for _packet in range(8):
        assert (await monitor.recv_data(5000)).good
    await fabric.cycles(500)
    frames = [await monitor.recv() for _frame in range(monitor.count())]
    assert all(frame.start is Control.SLP for frame in frames)
    await driver.send(flow_control(FlowControlOp.NORMAL, fccl=CREDITS + packet.blocks))
    assert (await monitor.recv_data(PATIENCE)).body == packet.wire
