"""Min-hop routing: every packet takes as few links as it can. Then loops of the fabric can be credit loops."""

from __future__ import annotations

from collections.abc import Mapping

from sm.lids import LidRange
from sm.routing.graph import SwitchGraph
from sm.routing.routes import NextHops, Routes, spread
from sm.subnet import Subnet

__all__ = ["min_hop", "next_hops"]


def min_hop(subnet: Subnet, lids: Mapping[int, LidRange], previous: Mapping[int, bytearray] | None = None) -> Routes:
    """Shortest paths to every LID, balanced over ports; `lids` by PortGUID.

    With `previous`, the tables in force, only those entries change whose port no longer begins a shortest path.
    """
    graph = SwitchGraph.of(subnet)
    return spread(graph, next_hops(graph), lids, previous)


def next_hops(graph: SwitchGraph) -> NextHops:
    """All shortest ways: every port that leads one link nearer."""
    rows = []
    for home in range(len(graph.guids)):
        hops = graph.distances([home])
        rows.append(
            [
                graph.ports_to(switch, [far for far in near if hops[far] < hops[switch]])
                for switch, near in enumerate(graph.ports)
            ]
        )
    return rows
