"""The same packets through switches without credits: a full buffer drops what arrives.

An estimate at the level of packets, as contrast to a lossless fabric: the same posted packets, links, widths,
cables, buffers, paths and stalls, cut-through switches that serve packets in the order of arrival, and senders
that never wait for anybody.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count

from cosim.analysis.observer import Observer
from cosim.stimulus.packet import Packet
from cosim.topology.topology import Port, Topology
from wire.codes import VL15
from wire.headers import LRH

__all__ = ["TailDrop"]

_HEADER_ROW = 1
_RELAY_CYCLES = 6
"""From a packet's header row into a switch to its row 0 out of it (docs/pipeline.md, 3.5, 4, 7 and 8.1)."""


class TailDrop(Observer):
    """Sends the packets of a run through switches that drop what does not fit.

    Attributes:
        sent: packets that hosts sent.
        delivered: packets that arrived, each as often as a host got it.
        dropped: packets that found a buffer full, each for all hosts that it was to go on to from there.
    """

    def __init__(self, topology: Topology, stalls: Mapping[str, Iterable[tuple[int, int]]] | None = None) -> None:
        """`stalls` holds, for each host, the (from, to) cycles in which it takes nothing."""
        self.sent = self.delivered = self.dropped = 0
        self._topology = topology
        self._pauses = {host: sorted(times) for host, times in (stalls or {}).items()}
        self._free_from: Counter[Port] = Counter()
        """The cycle from which an output, or a host (port 0), is idle."""
        self._used: Counter[tuple[Port, int]] = Counter()
        """Blocks held behind a port, by VL."""
        self._events: list[tuple[int, int, int, Port, int, Packet]] = []
        """Blocks return (0) before a header arrives (1) in the same cycle."""
        self._order = count()

    def offer(self, packet: Packet) -> None:
        """Send a packet, if it is one that should arrive."""
        if packet.each:
            self._advance(packet.cycle)
            self.sent += 1
            self._leave(packet, Port(packet.source, 1), packet.cycle)

    def finish(self) -> None:
        """Let all that is in flight arrive."""
        self._advance(None)

    def _leave(self, packet: Packet, out: Port, ready: int) -> int:
        """Send by `out` from cycle `ready` on; returns the cycle after the last row."""
        topology = self._topology
        start = max(ready, self._free_from[out])
        pace = topology.pace(out)
        end = start + packet.rows * pace
        self._free_from[out] = end
        far = topology.far_end(out)
        if far is not None:
            arrival = start + topology.flight(out) + _HEADER_ROW * pace
            self._add(arrival, 1, far, end + topology.flight(out), packet)
        return end

    def _add(self, cycle: int, kind: int, port: Port, complete: int, packet: Packet) -> None:
        heapq.heappush(self._events, (cycle, kind, next(self._order), port, complete, packet))

    def _advance(self, cycle: int | None) -> None:
        """Handle all that happens before `cycle`, or all there is."""
        topology, used = self._topology, self._used
        while self._events and (cycle is None or self._events[0][0] < cycle):
            now, kind, _, port, complete, packet = heapq.heappop(self._events)
            need = packet.blocks
            vl = packet.final_vl
            if kind == 0:
                used[port, vl] -= need
                continue
            if used[port, vl] + need > topology.receive_blocks(port) and vl != VL15:
                self.dropped += 1
                continue
            used[port, vl] += need
            if port.node not in topology.tables:
                host = Port(port.node, 0)
                start = _outside(max(complete, self._free_from[host]), self._pauses.get(port.node, []))
                end = self._free_from[host] = start + packet.rows
                self.delivered += 1
            else:
                outs = self._outs(port, packet)
                self.dropped += not outs
                end = max((self._leave(packet, out, now + _RELAY_CYCLES) for out in outs), default=now)
            self._add(end, 0, port, end, packet)

    def _outs(self, port: Port, packet: Packet) -> list[Port]:
        """The ports by which a switch sends on what came by `port`."""
        topology = self._topology
        if packet.destination is None:
            dlid = LRH["dlid"].read(packet.data)
            outs = topology.multicast_tables[port.node].get(dlid, ())
            return [Port(port.node, out) for out in outs if out != port.number]
        out = topology.tables[port.node].get(topology.lids[packet.destination])
        return [] if out is None else [Port(port.node, out)]


def _outside(cycle: int, pauses: list[tuple[int, int]]) -> int:
    """The first cycle from `cycle` on that is in no pause."""
    for start, end in pauses:
        if start <= cycle < end:
            cycle = end
    return cycle
