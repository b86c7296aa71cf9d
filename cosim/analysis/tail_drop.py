"""The same packets through switches without credits: a full buffer drops what arrives.

An estimate at the level of packets, as contrast to a lossless fabric: the same posted packets, links, widths,
cables, buffers, ways and stalls, cut-through switches that serve packets in the order of arrival, and senders
that never wait for anybody.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count

from cosim.stimulus.packet import Packet
from cosim.topology.topology import Port, Topology
from wire.codes import VL15

__all__ = ["TailDrop", "tail_drop"]

_HEADER_ROW = 1
_RELAY_CYCLES = 6
"""From a packet's header row into a switch to its row 0 out of it (docs/pipeline.md, 3.5, 4, 7 and 8.1)."""


@dataclass(frozen=True)
class TailDrop:
    """What became of the packets.

    Attributes:
        sent: packets that hosts sent.
        delivered: packets that arrived.
        dropped: packets that found a buffer full.
    """

    sent: int
    delivered: int
    dropped: int


def tail_drop(
    packets: Iterable[Packet],
    topology: Topology,
    stalls: Mapping[str, Iterable[tuple[int, int]]] | None = None,
) -> TailDrop:
    """Send `packets` (ascending by cycle) through switches that drop what does not fit.

    `stalls` holds, for each host, the (from, to) cycles in which it takes nothing.
    """
    pauses = {host: sorted(times) for host, times in (stalls or {}).items()}
    free_from: Counter[Port] = Counter()  # the cycle from which an output, or a host (port 0), is idle
    used: Counter[tuple[Port, int]] = Counter()  # blocks held behind a port, by VL
    # Blocks return (0) before a header arrives (1) in the same cycle.
    events: list[tuple[int, int, int, Port, int, Packet]] = []
    order = count()
    sent = delivered = dropped = 0

    def leave(packet: Packet, out: Port, ready: int) -> int:
        """Send by `out` from cycle `ready` on; returns the cycle after the last row."""
        start = max(ready, free_from[out])
        pace = topology.pace(out)
        end = start + packet.rows * pace
        free_from[out] = end
        far = topology.far_end(out)
        if far is not None:
            arrival = start + topology.flight(out) + _HEADER_ROW * pace
            heapq.heappush(events, (arrival, 1, next(order), far, end + topology.flight(out), packet))
        return end

    def until(cycle: int) -> None:
        """Handle all that happens before `cycle`."""
        nonlocal delivered, dropped
        while events and events[0][0] < cycle:
            now, kind, _, port, complete, packet = heapq.heappop(events)
            need = packet.blocks
            vl = packet.final_vl
            if kind == 0:
                used[port, vl] -= need
                continue
            if used[port, vl] + need > topology.receive_blocks(port) and vl != VL15:
                dropped += 1
                continue
            used[port, vl] += need
            if port.node == packet.destination:
                host = Port(port.node, 0)
                start = _outside(max(complete, free_from[host]), pauses.get(port.node, []))
                end = free_from[host] = start + packet.rows
                delivered += 1
            else:
                out = topology.tables[port.node].get(topology.lids[packet.destination or ""])
                if out is None:
                    dropped += 1
                    end = now
                else:
                    end = leave(packet, Port(port.node, out), now + _RELAY_CYCLES)
            heapq.heappush(events, (end, 0, next(order), port, end, packet))

    for packet in packets:
        if packet.destination is None:
            continue
        until(packet.cycle)
        sent += 1
        leave(packet, Port(packet.source, 1), packet.cycle)
    until(max((event[0] for event in events), default=0) + (1 << 62))
    return TailDrop(sent, delivered, dropped)


def _outside(cycle: int, pauses: list[tuple[int, int]]) -> int:
    """The first cycle from `cycle` on that is in no pause."""
    for start, end in pauses:
        if start <= cycle < end:
            cycle = end
    return cycle
