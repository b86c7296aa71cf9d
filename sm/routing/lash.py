"""LASH: every packet takes as few links as it can, and no credit loop can form, as paths are on several VLs."""

from __future__ import annotations

from collections.abc import Mapping

from sm.lids import LidRange
from sm.routing.dor import in_order
from sm.routing.figures import route_figures
from sm.routing.graph import SwitchGraph
from sm.routing.layers import in_layers
from sm.routing.min_hop import next_hops
from sm.routing.routes import Routes, spread
from sm.subnet import Subnet

__all__ = ["lash"]


def lash(subnet: Subnet, lids: Mapping[int, LidRange], previous: Mapping[int, bytearray] | None = None) -> Routes:
    """Shortest paths, and an SL for each, so that those of every SL have no credit loop; `lids` by PortGUID.

    They are those of min-hop or of dimension order, which of the two needs fewer VLs, or else burdens its links less.
    With `previous`, the tables in force, only those entries change that are no longer among the next hops.
    """
    graph = SwitchGraph.of(subnet)
    shortest = next_hops(graph)
    ordered = in_order(graph, shortest)
    hops = [shortest] if ordered == shortest else [shortest, ordered]
    return min(
        (in_layers(graph, spread(graph, one, lids, previous)) for one in hops),
        key=lambda routes: (routes.vls_needed, route_figures(subnet, lids, routes.tables).max_load),
    )
