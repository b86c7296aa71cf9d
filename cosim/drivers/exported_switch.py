"""An exported switch (docs/export.md) in anybody's simulation: its clock, register bus, and hosts at its ports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, Self

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import Event, FallingEdge, Lock, Timer
from cocotb.utils import get_sim_time

from cosim.drivers.mailbox import within
from cosim.drivers.row import RowDriver, RowMonitor
from wire.codes import VL15, PortState
from wire.flow_control import CREDIT_MODULUS, FlowControlOp, FlowControlPacket, credit_limit, credit_ok
from wire.packet import Packet, blocks, parse
from wire.registers import Counter, PortRegister, lft_address, port_address
from wire.symbols import Control, frame_data_packet, frame_link_packet

__all__ = ["ExportedSwitch", "LinkPartner"]

_CYCLE_NS: Final = 4
_ROOM_BLOCKS: Final = 256
"""Of each VL, at a link partner, which takes out what comes at once."""

_FCP_CYCLES: Final = 500
"""Between two flow control packets of a VL, at the most."""

_SETTLED_CYCLES: Final = 100
"""More than flow control packets of all VLs take to be sent, received and answered."""


class LinkPartner:
    """The other end of a port's link, packet by packet; below that, its rows.

    It sends flow control packets, with Op 0 as soon as the port does, and a packet of its own only when there are
    credits for the whole of it.

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
        cocotb.start_soon(self._announce())
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

    def _announce_all(self) -> None:
        for vl in range(self._vls):
            self._flow_control(vl)

    async def _announce(self) -> None:
        while True:
            self._announce_all()
            await Timer(_FCP_CYCLES * _CYCLE_NS, "ns")

    async def _take(self) -> None:
        while True:
            frame = await self._monitor.recv()
            if frame.start is Control.SLP:
                credit = FlowControlPacket.decode(frame.body)
                self._limits[credit.vl] = credit.fccl
                self._credited.set()
                if credit.op is not self._op:
                    # As a link's ends do that begin anew.
                    self._op = credit.op
                    self._sent.clear()
                    self._received.clear()
                    self._announce_all()
                continue
            packet = parse(frame.body)
            if packet.lrh.vl != VL15:
                self._received[packet.lrh.vl] += blocks(len(frame.body))
                self._flow_control(packet.lrh.vl)
            if frame.good:
                assert packet.vcrc_good, f"port {self._port}, cycle {frame.cycle}: VCRC is wrong"
                self._packets.put_nowait(packet)


class ExportedSwitch:
    """A switch, or a design with its ports, and a link partner at each port. Made by `start`.

    Attributes:
        ports: the link partners, by the port's number.
    """

    def __init__(self, dut: Any, ports: int, vls: int) -> None:
        self._dut = dut
        self._vls = vls
        self._bus = Lock()
        self.ports = {port: LinkPartner(dut, port, vls, lambda: self.cycle) for port in range(1, ports + 1)}

    @classmethod
    async def start(cls, dut: Any, *, ports: int, vls: int = 1) -> Self:
        """Starts the clock, resets the switch, and lets its links come up: its ports are in Initialize.

        Args:
            dut: has the ports of `ironband_switch`, under their names.
            ports: how many the switch has.
            vls: data VLs.
        """
        inputs = ("up", "bus_addr", "bus_wdata", "bus_write", "bus_read", "description")
        for name in (
            *inputs,
            *(f"rx_{port}_{part}" for port in range(1, ports + 1) for part in ("data", "k", "valid")),
        ):
            getattr(dut, name).value = 0
        dut.node_guid.value = dut.port_guid.value = 1
        dut.rst.value = 1
        Clock(dut.clk, _CYCLE_NS, "ns").start()
        for _cycle in range(2):
            await FallingEdge(dut.clk)
        dut.rst.value = 0
        await FallingEdge(dut.clk)
        while int(dut.resetting.value):
            await FallingEdge(dut.clk)
        switch = cls(dut, ports, vls)
        dut.up.value = (1 << ports) - 1
        await switch.cycles(_SETTLED_CYCLES)
        return switch

    @property
    def cycle(self) -> int:
        """The current cycle, from power-up."""
        return int(get_sim_time("ns")) // _CYCLE_NS

    async def cycles(self, count: int) -> None:
        """Waits so many cycles."""
        await Timer(count * _CYCLE_NS, "ns")

    async def bring_up(self) -> None:
        """Gives the host at port p the LID p, and takes all ports to Active, over the register bus."""
        for port in self.ports:
            await self.write(lft_address(port), port)
        for state in (PortState.ARMED, PortState.ACTIVE):
            for port in self.ports:
                await self.write(port_address(port, PortRegister.STATE), state)
            await self.cycles(_SETTLED_CYCLES)

    async def write(self, address: int, value: int) -> None:
        """Writes a register (`ports.md` of the export, `wire.registers`)."""
        async with self._bus:
            self._dut.bus_addr.value = address
            self._dut.bus_wdata.value = value
            await self._pulse(self._dut.bus_write)

    async def read(self, address: int) -> int:
        """Reads a register."""
        async with self._bus:
            self._dut.bus_addr.value = address
            await self._pulse(self._dut.bus_read)
            while not int(self._dut.bus_rvalid.value):
                await FallingEdge(self._dut.clk)
            return int(self._dut.bus_rdata.value)

    async def counter(self, port: int, which: Counter) -> int:
        """Reads a counter of a port."""
        return await self.read(port_address(port, which))

    async def state(self, port: int) -> PortState:
        """Reads the state of a port."""
        return PortState(await self.read(port_address(port, PortRegister.STATE)))

    async def _pulse(self, signal: Any) -> None:
        """Gives a signal for one cycle, changing it in the middle of one."""
        await FallingEdge(self._dut.clk)
        signal.value = 1
        await FallingEdge(self._dut.clk)
        signal.value = 0
