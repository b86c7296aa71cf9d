"""Up/down routing: no packet goes up after it went down, so no credit loop can form.

The rule is Autonet's (Schroeder et al., 1991): a link's upper end is the one nearer to the roots.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sm.errors import RoutingError
from sm.lids import LidRange
from sm.routing.graph import UNREACHABLE, SwitchGraph, distances
from sm.routing.routes import NextHops, Routes, spread
from sm.subnet import Subnet

__all__ = ["choose_roots", "joined", "parted", "up_and_down", "up_down"]

Rank = tuple[int, int]
"""Links to the nearest root, then the GUID: of two linked switches the one with the lower rank is the upper."""


def up_down(
    subnet: Subnet,
    lids: Mapping[int, LidRange],
    roots: Collection[int] | None = None,
    previous: Mapping[int, bytearray] | None = None,
) -> Routes:
    """Paths up and then down to every LID, as short as one table entry a LID lets them be, balanced over ports.

    A switch that has a LID below it sends down, wherever a packet came from: it may have come from above.
    Between two hosts every packet keeps the rule. Only a switch without hosts may have no such path to or from its
    port 0, as one root to another root that is connected to it only through lower switches. Then its packets, which
    are management and rare, go down and up.

    `roots` are GUIDs of switches, chosen by `choose_roots` unless given; `lids` is by PortGUID. With `previous`,
    the tables in force, only entries change whose port is no longer among the next hops.

    Raises:
        RoutingError: a root that is no switch, or roots by which some hosts cannot reach each other.
    """
    graph = SwitchGraph.of(subnet)
    numbers = {guid: number for number, guid in enumerate(graph.guids)}
    for guid in roots or ():
        if guid not in numbers:
            raise RoutingError(f"root 0x{guid:016x}: no switch has this GUID")
    tops = [numbers[guid] for guid in (choose_roots(subnet) if roots is None else roots)]
    next_hops = up_and_down(graph, _ranks(graph, tops))
    apart = parted(graph, next_hops)
    if apart is not None:
        one, other = (graph.guids[number] for number in apart)
        raise RoutingError(f"roots leave switch 0x{one:016x} no way up and down to switch 0x{other:016x}")
    return spread(graph, joined(graph, next_hops), lids, previous)


def choose_roots(subnet: Subnet) -> list[int]:
    """GUIDs of the switches at the top.

    In a tree these are the switches farthest from the hosts. If through them some hosts could not reach each
    other, or every switch has hosts, it is the one in the middle: the nearest to all switches together.
    """
    graph = SwitchGraph.of(subnet)
    leaves = [switch for switch, hosts in enumerate(graph.hosts) if hosts]
    heights = graph.distances(leaves)
    roots: list[int] = []
    for island in graph.islands():
        top = max(heights[switch] for switch in island)
        highest = [switch for switch in island if heights[switch] == top]
        if 0 < top < UNREACHABLE and parted(graph, up_and_down(graph, _ranks(graph, highest)), island) is None:
            roots += highest
        else:
            roots.append(min(island, key=lambda switch: (_total_distance(graph, switch), graph.guids[switch])))
    return [graph.guids[root] for root in roots]


def _ranks(graph: SwitchGraph, roots: list[int]) -> list[Rank]:
    return list(zip(graph.distances(roots), graph.guids, strict=True))


def _total_distance(graph: SwitchGraph, switch: int) -> int:
    return sum(hops for hops in graph.distances([switch]) if hops != UNREACHABLE)


def up_and_down(graph: SwitchGraph, rank: list[Rank]) -> NextHops:
    """Where a home is below: the ports by which fewest links lead down. Elsewhere: the best ports up."""
    upper = [[far for far in near if rank[far] < rank[switch]] for switch, near in enumerate(graph.ports)]
    lower = [[far for far in near if rank[far] > rank[switch]] for switch, near in enumerate(graph.ports)]
    downwards = sorted(range(len(rank)), key=rank.__getitem__)
    rows = []
    for home in range(len(graph.guids)):
        down = distances(upper, [home])
        # From the top: what is above a switch is known when its turn comes.
        hops = list(down)
        for switch in downwards:
            if down[switch] == UNREACHABLE:
                hops[switch] = min([hops[far] + 1 for far in upper[switch]] + [UNREACHABLE])
        row = []
        for switch in range(len(rank)):
            allowed, left = (upper, hops) if down[switch] == UNREACHABLE else (lower, down)
            row.append(graph.ports_to(switch, [far for far in allowed[switch] if left[far] < left[switch]]))
        rows.append(row)
    return rows


def parted(graph: SwitchGraph, next_hops: NextHops, among: Collection[int] | None = None) -> tuple[int, int] | None:
    """Two switches with hosts, of which the first is connected to the second, but has no next hop to it.

    None if there are none such. `among` are the switches looked at, all unless given.
    """
    for island in graph.islands() if among is None else [among]:
        leaves = [switch for switch in island if graph.hosts[switch]]
        for home in leaves:
            for switch in leaves:
                if switch != home and not next_hops[home][switch]:
                    return switch, home
    return None


def joined(graph: SwitchGraph, next_hops: NextHops) -> NextHops:
    """The same next hops; where there are none, those that lead to the nearest switch that has some."""
    rows = []
    for home, row in enumerate(next_hops):
        away = graph.distances([switch for switch, ports in enumerate(row) if ports or switch == home])
        rows.append(
            [
                ports or graph.ports_to(switch, [far for far in graph.ports[switch] if away[far] < away[switch]])
                for switch, ports in enumerate(row)
            ]
        )
    return rows
