"""What each stream of packets got: throughput, waiting, latency; and how evenly equal streams were served.

A packet waits in its host from the cycle in which it is offered until its adapter takes the first word (SEND);
its latency counts from there until the last word is with the host it is for (DELIVER).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from cosim.analysis.latency import Latencies
from cosim.analysis.observer import Observer
from cosim.stimulus.packet import Packet
from cosim.topology.topology import Topology
from wire.trace import Kind, Record, port_source
from wire.trace_layout import Send

__all__ = ["Measurement", "Served", "least_over_mean"]


@dataclass(slots=True)
class Served:
    """What was delivered of a stream within the measured time.

    Attributes:
        packets: how many.
        payload_bytes: their payloads.
        rows: their rows on a link, from SDP to EGP.
        waits: of each packet in its host, in cycles.
        latencies: of each packet in the fabric, in cycles.
        times: of each packet in all, waiting in its host included, in cycles.
    """

    packets: int = 0
    payload_bytes: int = 0
    rows: int = 0
    waits: Latencies = field(default_factory=Latencies)
    latencies: Latencies = field(default_factory=Latencies)
    times: Latencies = field(default_factory=Latencies)


class Measurement(Observer):
    """Follows packets from offer to delivery; what is delivered in the cycles `begin` to `end` - 1 is measured.

    It follows a `DeliveryCheck`, too. Only packets in flight are held; management's, on VL15, are not looked at.

    Attributes:
        offered: packets that hosts offered in these cycles.
        served: by stream (cosim.stimulus.flows.scenario_streams).
    """

    def __init__(self, topology: Topology, streams: int, begin: int, end: int) -> None:
        self._sources = {name: port_source(index, 1) for name, index in topology.index.items()}
        self._begin, self._end = begin, end
        self._vls = {source: topology.fabric.nodes[name].vls for name, source in self._sources.items()}
        self._waiting: defaultdict[tuple[int, int], deque[Packet]] = defaultdict(deque)
        self._sent: dict[tuple[int, int], tuple[int, int]] = {}
        """When a packet was taken, and how many hosts are still to get it."""
        self._arrived: dict[tuple[int, int], Packet] = {}
        self.offered = 0
        self.served = [Served() for _ in range(streams)]

    def offer(self, packet: Packet) -> None:
        """A host has a packet to send."""
        self.offered += self._begin <= packet.cycle < self._end
        self._waiting[self._sources[packet.source], packet.slot].append(packet)

    def delivered(self, packet: Packet, cycle: int) -> None:
        """A packet arrived as it should; called before its DELIVER record is observed."""
        self._arrived[self._sources[packet.destination or ""], cycle] = packet

    def observe(self, record: Record) -> None:
        """Follow one record."""
        if record.kind not in (Kind.SEND, Kind.DELIVER):
            return
        slot = Send.slot.read(record)
        if slot >= self._vls.get(record.source, 0):
            return
        if record.kind == Kind.SEND:
            packet = self._waiting[record.source, slot].popleft()
            hosts = len(packet.copies) or int(packet.destination is not None)
            if hosts:
                self._sent[packet.flow, packet.sequence] = record.cycle, hosts
        elif (arrived := self._arrived.pop((record.source, record.cycle), None)) is not None:
            self._measure(arrived, self._one_less(arrived), record.cycle)

    def _measure(self, packet: Packet, sent: int, cycle: int) -> None:
        if not self._begin <= cycle < self._end:
            return
        served = self.served[packet.flow]
        served.packets += 1
        served.payload_bytes += packet.payload_bytes
        served.rows += packet.rows
        served.waits.add(sent - packet.cycle)
        served.latencies.add(cycle - sent)
        served.times.add(cycle - packet.cycle)

    def lost(self, packet: Packet) -> None:
        """A packet will not be delivered."""
        if (packet.flow, packet.sequence) in self._sent:
            self._one_less(packet)

    def _one_less(self, packet: Packet) -> int:
        """One of the hosts has got the packet, or will not: returns when it was taken."""
        sent, hosts = self._sent.pop((packet.flow, packet.sequence))
        if hosts > 1:
            self._sent[packet.flow, packet.sequence] = sent, hosts - 1
        return sent


def least_over_mean(amounts: Iterable[int]) -> float:
    """Fairness: what the least served got, divided by what all got on the mean; 1 if nobody got anything."""
    given = list(amounts)
    return min(given) * len(given) / sum(given) if any(given) else 1.0
