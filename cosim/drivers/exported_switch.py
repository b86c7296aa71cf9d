"""An exported switch (docs/export.md) in anybody's simulation: its clock, register bus, and hosts at its ports."""

from __future__ import annotations

from typing import Any, Final, Self

from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Lock, Timer
from cocotb.utils import get_sim_time

from cosim.drivers.link_partner import LinkPartner
from cosim.harness.top import CYCLE_NS
from wire.codes import PortState
from wire.registers import Counter, PortRegister, lft_address, port_address

__all__ = ["ExportedSwitch"]

_ATTEMPTS: Final = 4
_SETTLED_CYCLES: Final = 100
"""More than flow control packets of all VLs take to be sent, received and answered."""


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
        inputs = ("up", "narrow", "bus_addr", "bus_wdata", "bus_write", "bus_read", "description")
        for name in (
            *inputs,
            *(f"rx_{port}_{part}" for port in range(1, ports + 1) for part in ("data", "k", "valid")),
        ):
            getattr(dut, name).value = 0
        dut.node_guid.value = dut.port_guid.value = 1
        dut.rst.value = 1
        Clock(dut.clk, CYCLE_NS, "ns").start()
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
        return int(get_sim_time("ns")) // CYCLE_NS

    async def cycles(self, count: int) -> None:
        """Waits so many cycles."""
        await Timer(count * CYCLE_NS, "ns")

    async def bring_up(self) -> None:
        """Gives the host at port p the LID p, and takes all ports to Active, over the register bus.

        Raises:
            RuntimeError: a port does not become Active.
        """
        for port in self.ports:
            await self.write(lft_address(port), port)
        waiting = list(self.ports)
        for _attempt in range(_ATTEMPTS):
            for state in (PortState.ARMED, PortState.ACTIVE):
                for port in waiting:
                    await self.write(port_address(port, PortRegister.STATE), state)
                await self.cycles(_SETTLED_CYCLES)
            # One that hears an Op 1 packet, which was on its way when it was armed, starts anew.
            waiting = [port for port in waiting if await self.state(port) != PortState.ACTIVE]
            if not waiting:
                return
        raise RuntimeError(f"port {waiting[0]} is {(await self.state(waiting[0])).name}: expected ACTIVE")

    async def write(self, address: int, value: int) -> None:
        """Writes a register (`ironband_switch_ports.md` of the export, `wire.registers`)."""
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
