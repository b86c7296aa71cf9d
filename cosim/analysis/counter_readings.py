"""The counters of every port as read at the end of a run, collected from its trace."""

from __future__ import annotations

from cosim.analysis.observer import Observer
from cosim.stimulus.bus_bring_up import BUS_READ_CYCLES
from cosim.topology.topology import Port, Topology
from wire.registers import Counter, place_of_address
from wire.trace import Kind, Record, port_of_source
from wire.trace_layout import BusRead

__all__ = ["CounterReadings"]


class CounterReadings(Observer):
    """What was read from the cycle `begin` on.

    Attributes:
        values: of the counters, by port.
    """

    def __init__(self, topology: Topology, begin: int) -> None:
        self._nodes = list(topology.fabric.nodes)
        self._from = begin + BUS_READ_CYCLES
        self.values: dict[Port, dict[Counter, int]] = {}

    def observe(self, record: Record) -> None:
        """Take note of a record if it is a reading."""
        if record.kind == Kind.BUS_READ and record.cycle >= self._from:
            page, offset = place_of_address(BusRead.address.read(record))
            port = Port(self._nodes[port_of_source(record.source)[0]], page)
            self.values.setdefault(port, {})[Counter(offset)] = BusRead.value.read(record)
