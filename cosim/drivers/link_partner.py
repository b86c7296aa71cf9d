"""The other end of a port's link, from inside a cocotb test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import cocotb
from cocotb.queue import Queue
from cocotb.triggers import Event, Timer

from cosim.drivers.mailbox import within
from cosim.drivers.row import RowDriver, RowMonitor
from cosim.harness.top import CYCLE_NS
from wire.codes import VL15
from wire.flow_control import CREDIT_MODULUS, FlowControlOp, FlowControlPacket, credit_limit, credit_ok
from wire.packet import Packet, blocks, parse
from wire.symbols import Control, frame_data_packet, frame_link_packet

__all__ = ["LinkPartner"]

_ROOM_BLOCKS: Final = 256
"""Of each VL, at a link partner, which takes out what comes at once."""

_FCP_CYCLES: Final = 500
"""Between two flow control packets of a VL, at the most."""


class LinkPartner:
    """The other end of a port's link, packet by packet; below that, its rows.

    It is initialised when the port is: it answers flow control packets that say Op 1, and sends its own with Op 0 as
    soon as the port does. A packet it sends only when there are credits for the whole of it.

    Attributes:
        rows: drives the rows into the switch's port.
    """

    def __init__(self, dut: Any, port: int, vls: int, cycle: Callable[[], int]) -> None:
        self.rows = RowDriver(dut, port)
        self._op = FlowControlOp.INIT
        self._monitor = RowMonitor(dut, port, cycle)
        self._vls = vls
        self._sent: defaultdict[int, int] = defaultdict(int)
        self._received: defaultdict[int, int] = defaultdict(int)
        self._limits: defaultdict[int, int] = defaultdict(int)
        self._credited = Event()
        self._packets: Queue[Packet] = Queue()
        self._port = port
        cocotb.start_soon(self._repeat())
        cocotb.start_soon(self._take())

    async def send(self, packet: Packet | bytes) -> None:
        """Queues a packet, LRH..ICRC, on the VL that its LRH says, once there are credits for it."""
        parsed = packet if isinstance(packet, Packet) else parse(packet)
        vl, need = parsed.lrh.vl, blocks(len(parsed.wire))
        while vl != VL15 and not credit_ok(self._limits[vl], self._sent[vl], need):
            self._credited.clear()
            await self._credited.wait()
        if vl != VL15:
            self._sent[vl] = (self._sent[vl] + need) % CREDIT_MODULUS
        self.rows.send_nowait(frame_data_packet(parsed.wire))

    async def recv(self, timeout_cycles: int | None = None) -> Packet:
        """Waits for the next packet that is not marked bad, its VCRC included.

        Raises:
            TimeoutError: none came in so many cycles.
        """
        return await within(timeout_cycles, self._packets.get(), f"packet at port {self._port}")

    def count(self) -> int:
        """Packets that came and were not received here."""
        return self._packets.qsize()

    def _flow_control(self, vl: int) -> None:
        packet = FlowControlPacket(self._op, self._sent[vl], vl, credit_limit(self._received[vl], _ROOM_BLOCKS))
        self.rows.send_nowait(frame_link_packet(packet.encode()))

    def _announce(self) -> None:
        for vl in range(self._vls):
            self._flow_control(vl)

    async def _repeat(self) -> None:
        while True:
            await Timer(_FCP_CYCLES * CYCLE_NS, "ns")
            # One with Op 1 that met a port just armed would take it down.
            if self._op is FlowControlOp.NORMAL:
                self._announce()

    async def _take(self) -> None:
        while True:
            frame = await self._monitor.recv()
            if frame.start is Control.SLP:
                self._take_credit(FlowControlPacket.decode(frame.body))
                continue
            vl = frame.body[0] >> 4
            if vl != VL15:
                self._received[vl] += blocks(len(frame.body))
                self._flow_control(vl)
            if frame.good:
                packet = parse(frame.body)
                assert packet.vcrc_good, f"port {self._port}, cycle {frame.cycle}: VCRC is wrong"
                self._packets.put_nowait(packet)

    def _take_credit(self, credit: FlowControlPacket) -> None:
        self._limits[credit.vl] = credit.fccl
        self._credited.set()
        if credit.op is not self._op:
            # As a link's ends do that begin anew.
            self._op = credit.op
            self._sent.clear()
            self._received.clear()
            self._announce()
        elif credit.op is FlowControlOp.INIT:
            self._flow_control(credit.vl)
