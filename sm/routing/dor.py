"""Dimension order routing of meshes, tori and hypercubes: a packet goes all its way in one dimension, then the next.

Dimensions are read from the cabling, as OpenSM reads them: in a mesh or torus the links of one dimension all join the
same two port numbers, in a hypercube one port number to itself; the dimension of the lowest port number comes first.
"""

from __future__ import annotations

from collections.abc import Mapping

from sm.lids import LidRange
from sm.routing.graph import SwitchGraph
from sm.routing.layers import in_layers
from sm.routing.min_hop import next_hops
from sm.routing.routes import NextHops, Routes, spread
from sm.subnet import Subnet

__all__ = ["dor", "in_order"]


def dor(subnet: Subnet, lids: Mapping[int, LidRange], previous: Mapping[int, bytearray] | None = None) -> Routes:
    """Shortest paths in the order of dimensions, balanced over the ports of one dimension; `lids` by PortGUID.

    With `previous`, the tables in force, only those entries change that do not keep to that. Paths that go round a
    torus are on SLs of their own, so that no credit loop can form. Where cables know no dimensions, all are of one.
    """
    graph = SwitchGraph.of(subnet)
    return in_layers(graph, spread(graph, in_order(graph, next_hops(graph)), lids, previous))


def in_order(graph: SwitchGraph, next_hops: NextHops) -> NextHops:
    """Of these next hops those of the first dimension in which any is."""
    dimensions = _dimensions(graph)
    ordered = []
    for row in next_hops:
        first = [min((dimensions[port] for port in ports), default=0) for ports in row]
        ordered.append(
            [
                tuple(port for port in ports if dimensions[port] == dimension)
                for ports, dimension in zip(row, first, strict=True)
            ]
        )
    return ordered


def _dimensions(graph: SwitchGraph) -> dict[int, int]:
    """Of each port number between switches the lowest that belongs to its dimension.

    The two ends of a link belong together, and the ports that lead from one switch to the same other.
    """
    lowest: dict[int, int] = {}

    def root(port: int) -> int:
        while lowest.setdefault(port, port) != port:
            port = lowest[port]
        return port

    for switch, near in enumerate(graph.ports):
        for far, ports in near.items():
            for port in (*ports, *graph.ports[far][switch]):
                one, other = sorted((root(ports[0]), root(port)))
                lowest[other] = one
    return {port: root(port) for port in lowest}
