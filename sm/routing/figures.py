"""How good routes are: how long paths are, and how evenly they are shared among the links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from sm.lids import LidRange
from sm.routing.graph import SwitchGraph
from sm.routing.routes import places
from sm.subnet import MANAGEMENT_PORT, Subnet
from wire.forwarding_tables import LFT_NO_ROUTE

__all__ = ["RouteFigures", "route_figures"]


@dataclass(frozen=True)
class RouteFigures:
    """Of the routes from every port of a host to every LID of the others that can be reached."""

    missing: int
    """Routes that there ought to be: the two are connected, but tables lead nowhere, or round in circles."""
    mean_hops: float
    """Links of a route, with those of the hosts."""
    max_hops: int
    min_load: int
    """Fewest routes by a link between switches in one direction."""
    mean_load: float
    max_load: int
    load_deviation: float
    """Standard deviation from the mean."""


def route_figures(subnet: Subnet, lids: Mapping[int, LidRange], tables: Mapping[int, bytearray]) -> RouteFigures:
    """Of the forwarding tables by switch GUID; `lids` by PortGUID."""
    graph = SwitchGraph.of(subnet)
    island = {switch: number for number, island in enumerate(graph.islands()) for switch in island}
    loads = {(switch, port): 0 for switch, ports in enumerate(graph.far) for port in ports}
    missing = 0
    hops: list[tuple[int, int]] = []
    """Of routes from a switch to a LID, and how many of them."""
    for home, place, found in places(graph, lids):
        for lid in found.lids if place != MANAGEMENT_PORT else ():
            for source, hosts in enumerate(graph.hosts):
                routes = hosts - (source == home)
                if not routes or island[source] != island[home]:
                    continue
                way = _way(graph, tables, source, lid)
                if way is None:
                    missing += routes
                    continue
                hops.append((2 + len(way), routes))
                for channel in way:
                    loads[channel] += routes
    count = sum(routes for _length, routes in hops)
    mean = sum(loads.values()) / max(len(loads), 1)
    return RouteFigures(
        missing=missing,
        mean_hops=sum(length * routes for length, routes in hops) / max(count, 1),
        max_hops=max((length for length, _routes in hops), default=0),
        min_load=min(loads.values(), default=0),
        mean_load=mean,
        max_load=max(loads.values(), default=0),
        load_deviation=sqrt(sum((load - mean) ** 2 for load in loads.values()) / max(len(loads), 1)),
    )


def _way(graph: SwitchGraph, tables: Mapping[int, bytearray], switch: int, lid: int) -> list[tuple[int, int]] | None:
    """The ports between switches by which packets go; None if they do not arrive."""
    way: list[tuple[int, int]] = []
    while len(way) < len(graph.guids):
        table = tables[graph.guids[switch]]
        port = table[lid] if lid < len(table) else LFT_NO_ROUTE
        if port not in graph.far[switch]:
            return None if port == LFT_NO_ROUTE else way
        way.append((switch, port))
        switch = graph.far[switch][port]
    return None
