"""A design around an exported switch: `.venv/bin/python examples/counted_switch/cocotb_counted_switch.py [SIMULATOR]`.

The tests run inside the simulator, icarus unless another is given. Packets are sent and received, then rows.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cocotb

import ironband
from ironband.drivers import Counter, ExportedSwitch, Packet, PortState, build_ud_send, frame_data_packet

PATIENCE = 2_000


def packet(number: int) -> Packet:
    """From the host at port 1, LID 1, to that at port 2."""
    return build_ud_send(slid=1, dlid=2, dest_qp=16, src_qp=17, q_key=18, psn=number, payload=bytes([number]) * 100)


async def started(dut: Any) -> ExportedSwitch:
    """The switch, brought up."""
    switch = await ExportedSwitch.start(dut, ports=2)
    await switch.bring_up()
    assert await switch.state(1) == await switch.state(2) == PortState.ACTIVE
    return switch


@cocotb.test()
async def packets_cross_in_their_order_and_are_counted(dut: Any) -> None:
    """More than the switch has room for: each waits for its credits."""
    switch = await started(dut)
    for number in range(20):
        await switch.ports[1].send(packet(number))
    for number in range(20):
        assert (await switch.ports[2].recv(PATIENCE)).data == packet(number).data
    await switch.cycles(1)
    assert (int(dut.left_1.value), int(dut.left_2.value)) == (0, 20)
    assert await switch.counter(1, Counter.RCV_PKTS) == 20


@cocotb.test()
async def damaged_packet_is_not_counted(dut: Any) -> None:
    """A port is driven row by row: one bit is not as it was sent."""
    switch = await started(dut)
    rows = frame_data_packet(packet(0).wire)
    rows[9] = rows[9]._replace(data=rows[9].data ^ 1)
    await switch.ports[1].rows.send(rows)
    await switch.ports[1].rows.send(frame_data_packet(packet(1).wire))
    assert (await switch.ports[2].recv(PATIENCE)).data == packet(1).data
    await switch.cycles(1)
    assert int(dut.left_2.value) == 1
    assert await switch.counter(1, Counter.RCV_ERRORS) == 1


def main(simulator: str = "icarus") -> None:
    """Exports a switch of two ports, builds the design around it, and runs the tests above on it."""
    parameters = ironband.SwitchParameters(ports=2, mtu=256, buffer_blocks=16, lft_size=16, mft_size=32)
    with TemporaryDirectory() as folder:
        ironband.export_switch(parameters, folder)
        sources = [Path(__file__).with_name("counted_switch.v"), Path(folder, "ironband_switch.v")]
        for test in ironband.run_cocotb(__file__, simulator, sources=sources, top="counted_switch"):
            print(f"{simulator}: {test.name} passed, {test.simulated_ns:,.0f} ns")


if __name__ == "__main__":
    main(*sys.argv[1:])
