"""Fat tree routing: the paths of a destination are a tree of its own, as far as there are links.

In k-ary n-trees, and those with fewer spines or links missing, a destination's number says by which link each switch
sends to it upwards: d-mod-k (Zahavi, Johnson, Kerbyson and Lang, 2010). Then no two packets share a link when each
host sends to the one a number of places on, whatever the number, in a tree with as many links up as down.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sm.lids import LidRange
from sm.routing.graph import UNREACHABLE, SwitchGraph, distances
from sm.routing.routes import NextHops, Place, Routes, no_routes, places
from sm.routing.up_down import joined, parted, up_and_down, up_down
from sm.subnet import MANAGEMENT_PORT, Subnet

__all__ = ["fat_tree", "host_order"]

_Link = tuple[int, int, int]
"""Its number among the links up from where it is, how many these are, and for how many destinations in a row the
links of the levels below differ."""


def fat_tree(subnet: Subnet, lids: Mapping[int, LidRange], previous: Mapping[int, bytearray] | None = None) -> Routes:
    """Shortest paths up and then down, `lids` by PortGUID; they depend on the fabric alone, not on `previous`.

    Where a link is missing, the destinations that would take it take the next one. A fabric that is no fat tree is
    routed up/down, and the remark says why.
    """
    graph = SwitchGraph.of(subnet)
    levels = _levels(graph)
    next_hops = up_and_down(graph, [(-level, guid) for level, guid in zip(levels, graph.guids, strict=True)])
    fault = _fault(graph, levels, next_hops)
    if fault:
        return replace(up_down(subnet, lids, previous=previous), remark=f"no fat tree, routed up/down: {fault}")
    next_hops = joined(graph, next_hops)
    ends = _ordered(graph, levels, places(graph, lids))
    routes = no_routes(graph, ends, next_hops)
    links = _links(graph, levels)
    for kind in (True, False):
        of_kind = [end for end in ends if (end[1] == MANAGEMENT_PORT) == kind]
        for number, (home, _port, found) in enumerate(of_kind):
            for switch, choices in enumerate(next_hops[home]):
                for lid in found.lids if choices else ():
                    routes.tables[graph.guids[switch]][lid] = _pick(links[switch], choices, number, lid - found.first)
    return routes


def host_order(subnet: Subnet, lids: Mapping[int, LidRange]) -> list[int]:
    """First LIDs of the ports of hosts in the order in which a shift by any number of places is free of conflicts."""
    graph = SwitchGraph.of(subnet)
    ends = _ordered(graph, _levels(graph), places(graph, lids))
    return [found.first for _home, port, found in ends if port != MANAGEMENT_PORT]


def _levels(graph: SwitchGraph) -> list[int]:
    """Links between each switch and the nearest that has hosts."""
    return graph.distances([switch for switch, hosts in enumerate(graph.hosts) if hosts])


def _fault(graph: SwitchGraph, levels: Sequence[int], next_hops: NextHops) -> str:
    """Why it is no fat tree; empty if it is one."""
    for switch, near in enumerate(graph.ports):
        for far in near:
            if far != switch and levels[far] == levels[switch]:
                return f"switches 0x{graph.guids[switch]:016x} and 0x{graph.guids[far]:016x} are on one level"
    apart = parted(graph, next_hops)
    if apart is None:
        return ""
    one, other = (graph.guids[switch] for switch in apart)
    return f"switch 0x{one:016x} has no way up and down to switch 0x{other:016x}"


def _ordered(graph: SwitchGraph, levels: Sequence[int], ends: Sequence[Place]) -> list[Place]:
    """Those of one subtree together, on every level."""
    tops = sorted({level for level in levels if level != UNREACHABLE}, reverse=True)
    subtrees = [_parts(_among(graph, levels, {level for level in tops if level <= top})) for top in tops]
    return sorted(ends, key=lambda end: ([parts[end[0]] for parts in subtrees], end))


def _links(graph: SwitchGraph, levels: Sequence[int]) -> list[dict[int, _Link]]:
    """Of each switch, by port: links to the same switch above have the same number, wherever they come from.

    So have those to switches above that lead to the same ones further up. Parallel links have others, which come when
    all switches above have had theirs.
    """
    links: list[dict[int, _Link]] = [{} for _ in levels]
    in_a_row = 1
    for level in sorted(set(levels)):
        part = _parts(_among(graph, levels, {level, level + 1}))
        above = _parts(_among(graph, levels, {one for one in levels if one > level}))
        up: dict[int, list[tuple[tuple[int, int, int], int, int, int]]] = {}
        for switch, near in enumerate(graph.ports):
            for far in near if levels[switch] == level else ():
                if levels[far] > level:
                    for parallel, (port, back) in enumerate(zip(near[far], graph.ports[far][switch], strict=True)):
                        up.setdefault(part[switch], []).append(((parallel, above[far], far), switch, port, back))
        most = 1
        for found in up.values():
            numbers = {key: number for number, key in enumerate(sorted({key for key, *_ends in found}))}
            most = max(most, len(numbers))
            for key, switch, port, back in found:
                links[switch][port] = links[key[-1]][back] = numbers[key], len(numbers), in_a_row
        in_a_row *= most
    return links


def _among(graph: SwitchGraph, levels: Sequence[int], some: Collection[int]) -> list[list[int]]:
    """The neighbours of each switch, on some levels only."""
    return [
        [far for far in near if levels[switch] in some and levels[far] in some]
        for switch, near in enumerate(graph.ports)
    ]


def _pick(links: Mapping[int, _Link], choices: Sequence[int], number: int, lid: int) -> int:
    """The port for a destination of this number, and its LID of this one: the next of those there are."""

    def turns(port: int) -> int:
        link, count, in_a_row = links[port]
        return (link - number // in_a_row - lid) % count

    return min(choices, key=turns)


def _parts(near: Sequence[Sequence[int]]) -> list[int]:
    """Of each switch the lowest that it is connected with."""
    part = [UNREACHABLE] * len(near)
    for start in range(len(near)):
        if part[start] == UNREACHABLE:
            for switch, hops in enumerate(distances(near, [start])):
                if hops != UNREACHABLE:
                    part[switch] = start
    return part
