"""How full links are: rows of data packets against the rows that flow control packets leave free."""

from __future__ import annotations

from collections.abc import Iterable

from cosim.analysis.observer import Observer
from cosim.topology.topology import Port, Topology
from wire.trace import Kind, Record
from wire.trace_layout import TxData

__all__ = ["HostLinks", "LinkUse"]

_FLOW_CONTROL_ROWS = 2


class LinkUse(Observer):
    """Counts what leaves by some ports and ends in the cycles `begin` to `end` - 1.

    Attributes:
        data_rows: rows of data packets, SDP and EGP and VCRC with them.
        flow_control_rows: rows of flow control packets.
        all_rows: rows that the links have in that time.
    """

    def __init__(self, topology: Topology, ports: Iterable[Port], begin: int, end: int) -> None:
        watched = list(ports)
        self._sources = {topology.source(port) for port in watched}
        self._begin, self._end = begin, end
        self.data_rows = 0
        self.flow_control_rows = 0
        self.all_rows = sum((end - begin) // topology.pace(port) for port in watched)

    def add(self, other: LinkUse) -> None:
        """Count another's links, too."""
        self.data_rows += other.data_rows
        self.flow_control_rows += other.flow_control_rows
        self.all_rows += other.all_rows

    def observe(self, record: Record) -> None:
        """Follow one record."""
        if record.source not in self._sources or not self._begin <= record.cycle < self._end:
            return
        if record.kind == Kind.TX_DATA:
            self.data_rows += TxData.end_row.read(record) + 1
        elif record.kind == Kind.TX_FCP:
            self.flow_control_rows += _FLOW_CONTROL_ROWS

    @property
    def of_all(self) -> float:
        """Data's share of all rows: what the load keeps busy."""
        return self.data_rows / self.all_rows

    @property
    def of_capacity(self) -> float:
        """Data's share of the rows that flow control packets leave: the throughput that counts against targets."""
        return self.data_rows / (self.all_rows - self.flow_control_rows)


class HostLinks(Observer):
    """How full the link to each host is.

    Attributes:
        uses: by the port at the far end of a host's link, in the order of the hosts.
    """

    def __init__(self, topology: Topology, begin: int, end: int) -> None:
        ports = [port for host in topology.lids if (port := topology.far_end(Port(host, 1))) is not None]
        self.uses = {port: LinkUse(topology, [port], begin, end) for port in ports}
        self._by_source = {topology.source(port): use for port, use in self.uses.items()}

    def observe(self, record: Record) -> None:
        """Follow one record."""
        if record.source in self._by_source:
            self._by_source[record.source].observe(record)
