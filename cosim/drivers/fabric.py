"""A running fabric, from inside a cocotb test."""

from __future__ import annotations

import atexit
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Timer

from cosim.drivers.adapter import AdapterDriver
from cosim.drivers.control import ControlDriver
from cosim.drivers.description import Description
from cosim.drivers.link_partner import LinkPartner
from cosim.drivers.mailbox import Mailbox
from cosim.drivers.monitor import TraceMonitor
from cosim.drivers.row import RowDriver, RowMonitor
from cosim.harness.stream_files import DELIVERY_FILE, TRACE_FILE, DeliveryReader, TraceReader
from cosim.harness.top import CYCLE_NS
from wire.codes import PortState
from wire.registers import Counter, PortRegister, port_address
from wire.trace import Kind, port_source

__all__ = ["FabricDriver"]


class FabricDriver:
    """All drivers of a fabric. Made by `start`.

    Attributes:
        adapters: by name.
        control: registers, links, errors and stalls.
    """

    def __init__(self, dut: Any, description: Description) -> None:
        self._dut = dut
        self._description = description
        self._mailbox = Mailbox(dut, description.ports)
        self._monitors: list[TraceMonitor] = []
        self._trace = TraceReader(Path(TRACE_FILE))
        self._deliveries = DeliveryReader(Path(DELIVERY_FILE))
        for file in (self._mailbox.outbox, self._trace, self._deliveries):
            atexit.register(file.close)
        self._by_node = {
            index: AdapterDriver(self._mailbox, name, index, description.vls[name])
            for index, name in enumerate(description.nodes)
            if name in description.adapters
        }
        self.adapters = {adapter.name: adapter for adapter in self._by_node.values()}
        self.control = ControlDriver(self._mailbox, description.nodes)

    @classmethod
    async def start(cls, dut: Any) -> FabricDriver:
        """Let the fabric run from cycle 0.

        Args:
            dut: the top that cosim/harness/top.py wrote, as cocotb gives it to a test.

        Raises:
            RuntimeError: the fabric runs already. It is reset at power-up only: each test has a simulation for itself.
        """
        if int(dut.stop.value) != 0:
            raise RuntimeError("the fabric runs already: expected one test in a simulation")
        # The top opens its files at time 0.
        await Timer(1, "ps")
        fabric = cls(dut, Description.read())
        fabric._mailbox.start()
        cocotb.start_soon(fabric._deliver())
        return fabric

    @property
    def cycle(self) -> int:
        """The current cycle."""
        return self._mailbox.read("cycle")

    async def cycles(self, count: int) -> None:
        """Wait so many cycles."""
        await Timer(count * CYCLE_NS, "ns")

    def monitor(
        self, kinds: Iterable[Kind] | None = None, ports: Iterable[tuple[str, int]] | None = None
    ) -> TraceMonitor:
        """Watch the trace from now on: records of some kinds (all) at some (node name, port) places (all)."""
        nodes = self._description.nodes
        sources = None if ports is None else [port_source(nodes.index(name), port) for name, port in ports]
        self._poll_trace()
        monitor = TraceMonitor(self._mailbox, self._poll_trace, kinds, sources)
        self._monitors.append(monitor)
        return monitor

    def open_port(self, name: str, port: int) -> tuple[RowDriver, RowMonitor]:
        """The rows into and out of a port that was left open. To be asked for once.

        Raises:
            ValueError: the port is not an open one.
        """
        index = self._description.ports.open.index((self._description.nodes.index(name), port))
        return RowDriver(self._dut, index), RowMonitor(self._dut, index, lambda: self.cycle)

    def partner(self, name: str, port: int) -> LinkPartner:
        """What speaks the link protocol at a port that was left open, before `bring_up`. To be asked for once.

        Raises:
            ValueError: the port is not an open one.
        """
        index = self._description.ports.open.index((self._description.nodes.index(name), port))
        return LinkPartner(self._dut, index, self._description.vls[name], lambda: self.cycle)

    async def bring_up(self) -> None:
        """Takes all links to Active, those of open ports with partners among them, over the register bus; at once
        after `start`.

        Raises:
            RuntimeError: it comes too late, or the test was not started with what brings its fabric up.
        """
        controls = self._description.bring_up
        if not controls or self.cycle >= controls[0].cycle:
            late = f"in cycle {self.cycle}: expected before cycle {controls[0].cycle}" if controls else "is not known"
            raise RuntimeError(f"bring-up {late}")
        await self._mailbox.control(*controls)
        await self.cycles(self._description.up - self.cycle)

    def lid(self, host: str) -> int:
        """The LID of a host after `bring_up`; of one that was left out for an open port, too.

        Raises:
            KeyError: it has none.
        """
        lids = self._description.lids
        if host not in lids:
            raise KeyError(f"{host}: no such host; there are {', '.join(lids)}")
        return lids[host]

    async def counter(self, name: str, port: int, which: Counter) -> int:
        """Reads a counter of a port."""
        return await self.control.read(name, port_address(port, which))

    async def state(self, name: str, port: int) -> PortState:
        """Reads the state of a port."""
        return PortState(await self.control.read(name, port_address(port, PortRegister.STATE)))

    def _poll_trace(self) -> None:
        for record in self._trace.new():
            for monitor in self._monitors:
                monitor.take(record)

    async def _deliver(self) -> None:
        """Hand deliveries to their adapters as they come."""
        while True:
            known = self._mailbox.read("delivered")
            for delivery in self._deliveries.new():
                self._by_node[delivery.node].deliver(delivery)
            await self._mailbox.changed("delivered", known)
