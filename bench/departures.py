"""What hosts have sent, and whether it has arrived."""

from __future__ import annotations

from collections import deque

from cosim.analysis.observer import Observer
from cosim.stimulus.packet import Packet
from cosim.topology.topology import Topology
from wire.trace import Kind, Record

__all__ = ["Departures"]

_Identity = tuple[int, int]


class Departures(Observer):
    """Packets that have left their hosts before the cycle `end` and have not arrived; follows a `DeliveryCheck`, too.

    Hosts are on one VL, so they send their packets in the order in which they have got them.
    """

    def __init__(self, topology: Topology, end: int) -> None:
        self._end = end
        self._hosts = {
            topology.source(port): port.node for port in topology.linked_ports() if port.node in topology.lids
        }
        self._offered: dict[str, deque[_Identity]] = {host: deque() for host in self._hosts.values()}
        self._sent: set[_Identity] = set()
        self._arrived: set[_Identity] = set()

    @property
    def under_way(self) -> int:
        """Packets sent that have not arrived."""
        return len(self._sent)

    def observe(self, record: Record) -> None:
        """Follow one record."""
        if record.kind == Kind.TX_DATA and record.source in self._hosts and record.cycle < self._end:
            packet = self._offered[self._hosts[record.source]].popleft()
            if packet in self._arrived:
                self._arrived.remove(packet)
            else:
                self._sent.add(packet)

    def offer(self, packet: Packet) -> None:
        """A host has the packet to send."""
        self._offered[packet.source].append(_identity(packet))

    def delivered(self, packet: Packet, cycle: int) -> None:
        """The packet has arrived; that may be reported before the record in which it was sent."""
        identity = _identity(packet)
        if identity in self._sent:
            self._sent.remove(identity)
        else:
            self._arrived.add(identity)

    def lost(self, packet: Packet) -> None:
        """The packet will not arrive."""
        self.delivered(packet, packet.cycle)


def _identity(packet: Packet) -> _Identity:
    return packet.flow, packet.sequence
