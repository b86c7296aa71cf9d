"""Forwarding tables from next hops: each LID has one of them at each switch, and the load is shared evenly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Final

from sm.lids import LidRange
from sm.routing.graph import SwitchGraph
from sm.subnet import MANAGEMENT_PORT
from wire.forwarding_tables import LFT_NO_ROUTE

__all__ = ["NextHops", "Place", "Routes", "no_routes", "places", "spread"]

NextHops = Sequence[Sequence[tuple[int, ...]]]
"""[home][switch]: the ports, ascending, by which `switch` may send to what is at the switch `home`."""

Place = tuple[int, int, LidRange]
"""The number of a switch, the port of it behind which an end port is, and that one's LIDs."""


_LID_BITS: Final = 16
"""Loads are numbers of routes above those of LIDs."""

_IMPROVEMENTS: Final = 2
"""Rounds in which each LID's routes are chosen anew. More make little difference."""


@dataclass(frozen=True)
class Routes:
    """Linear forwarding tables, the SLs of paths, and what else the routing engine would have allowed."""

    tables: dict[int, bytearray]
    """Switch GUID to port by LID, from LID 0 to the highest LID in use."""
    next_hops: NextHops
    homes: dict[int, int]
    """Number of the switch where each LID is."""
    _numbers: dict[int, int]
    """Number of each switch GUID."""
    layers: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """SL of the paths between two switches, by their numbers, the lower first, if it is not 0."""
    remark: str = ""
    """What somebody should know of how they were found, one line."""

    @property
    def vls_needed(self) -> int:
        """Data VLs that links between switches need to keep the layers apart."""
        return 1 + max(self.layers.values(), default=0)

    def backups(self, switch: int, lid: int) -> tuple[int, ...]:
        """The other ports, ascending, by which the switch of this GUID might also send to a LID."""
        home = self.homes.get(lid)
        if home is None:
            return ()
        chosen = self.tables[switch][lid]
        return tuple(port for port in self.next_hops[home][self._numbers[switch]] if port != chosen)

    def service_level(self, slid: int, dlid: int) -> int:
        """The SL of packets from one LID to another, and back: paths are reversible."""
        one, other = sorted((self.homes.get(slid, 0), self.homes.get(dlid, 0)))
        return self.layers.get((one, other), 0)


def places(graph: SwitchGraph, lids: Mapping[int, LidRange]) -> list[Place]:
    """Where LIDs are, by switch and port; `lids` by PortGUID."""
    return sorted((home, port, lids[guid]) for guid, (home, port) in graph.homes.items() if guid in lids)


def no_routes(graph: SwitchGraph, ends: Sequence[Place], next_hops: NextHops) -> Routes:
    """Tables in which only the ports are at which something is."""
    size = max((found.last for _home, _port, found in ends), default=0) + 1
    tables = {guid: bytearray([LFT_NO_ROUTE]) * size for guid in graph.guids}
    for home, port, found in ends:
        tables[graph.guids[home]][found.first : found.last + 1] = bytes([port]) * len(found.lids)
    homes = {lid: home for home, _port, found in ends for lid in found.lids}
    return Routes(tables, next_hops, homes, {guid: number for number, guid in enumerate(graph.guids)})


def spread(
    graph: SwitchGraph,
    next_hops: NextHops,
    lids: Mapping[int, LidRange],
    previous: Mapping[int, bytearray] | None = None,
) -> Routes:
    """Chooses among next hops.

    A LID's routes, one from each host, go where the fullest link on the way has the fewest already, then where all
    of them have few, then by the port that has the fewest LIDs, then by the lowest. When all are chosen, those of each
    LID are chosen anew, twice. Routes to switches are counted separately, as they bring only management. The several
    LIDs of a port go to different neighbours as long as there are any, then by different ports. Entries of `previous`,
    tables by switch GUID, stay where they are among the next hops; LIDs that are gone lose theirs.
    """
    # In the order of switches and ports: all leaves of a fat tree then come to the same spine for a host, and no link
    # down carries more hosts than its share, however LIDs were given out.
    ends = places(graph, lids)
    routes = no_routes(graph, ends, next_hops)
    spreading = _Spreading(graph, routes, previous or {})
    # What stays comes first: what is to be chosen goes where the rest leaves room.
    todo = [(end, lid) for end in ends for lid in end[2].lids]
    todo.sort(key=lambda item: not spreading.stays(item[0][0], item[1]))
    for end, lid in todo:
        spreading.choose(end, lid)
    for _ in range(_IMPROVEMENTS):
        for end, lid in todo if spreading.uneven else ():
            spreading.take_back(end, lid)
            spreading.choose(end, lid)
    return routes


class _Spreading:
    """Entries of tables being chosen, and the loads of ports that they make."""

    def __init__(self, graph: SwitchGraph, routes: Routes, previous: Mapping[int, bytearray]) -> None:
        self._graph = graph
        self._next_hops = routes.next_hops
        self._tables = [routes.tables[guid] for guid in graph.guids]
        self._previous = [previous.get(guid, bytearray()) for guid in graph.guids]
        self._outwards = [_outwards(row, graph.far) for row in routes.next_hops]
        self._loads = [[dict.fromkeys(ports, 0) for ports in graph.far] for _kind in range(2)]
        """Of hosts' LIDs and of switches', by switch and port."""

    @property
    def uneven(self) -> bool:
        """Whether some ports between switches have more routes to hosts than others."""
        return len({load >> _LID_BITS for loads in self._loads[False] for load in loads.values()}) > 1

    def stays(self, home: int, lid: int) -> bool:
        """Whether all entries of a LID do."""
        return all(self._kept(home, switch, lid) is not None for switch in self._outwards[home])

    def choose(self, end: Place, lid: int) -> None:
        """A next hop for each switch, the nearest to the home first."""
        home, place, found = end
        loads = self._loads[place == MANAGEMENT_PORT]
        # Of the way from each switch: routes on the link that has the most, then how full all of them are.
        ways = [(0, 0)] * len(self._tables)
        for switch in self._outwards[home]:
            load, far = loads[switch], self._graph.far[switch]
            kept = self._kept(home, switch, lid)
            choices = self._next_hops[home][switch] if kept is None else (kept,)
            if len(choices) > 1 and len(found.lids) > 1:
                choices = _unlike(choices, self._tables[switch][found.first : found.last + 1], far)
            ways[switch], _load, port = min([(_longer(ways[far[one]], load[one]), load[one], one) for one in choices])
            self._tables[switch][lid] = port
        self._count(home, lid, loads, 1)

    def take_back(self, end: Place, lid: int) -> None:
        """As if nothing had been chosen for a LID."""
        home, place, _found = end
        self._count(home, lid, self._loads[place == MANAGEMENT_PORT], -1)
        for switch in self._outwards[home]:
            self._tables[switch][lid] = LFT_NO_ROUTE

    def _kept(self, home: int, switch: int, lid: int) -> int | None:
        """The entry of the previous tables, if it is still a next hop."""
        old = self._previous[switch]
        return old[lid] if lid < len(old) and old[lid] in self._next_hops[home][switch] else None

    def _count(self, home: int, lid: int, loads: list[dict[int, int]], sign: int) -> None:
        routes = list(self._graph.hosts)
        for switch in reversed(self._outwards[home]):
            port = self._tables[switch][lid]
            loads[switch][port] += sign * ((routes[switch] << _LID_BITS) + 1)
            routes[self._graph.far[switch][port]] += routes[switch]


def _longer(way: tuple[int, int], load: int) -> tuple[int, int]:
    """The same of a way with one link more, of this load."""
    most, fullness = way
    routes = load >> _LID_BITS
    return max(most, routes), fullness + routes * routes


def _outwards(row: Sequence[tuple[int, ...]], far: Sequence[Mapping[int, int]]) -> list[int]:
    """The switches that have next hops, each after those that it may send to."""
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for switch, ports in enumerate(row):
        for port in ports:
            sorter.add(switch, far[switch][port])
    return [switch for switch in sorter.static_order() if row[switch]]


def _unlike(choices: Iterable[int], taken: bytearray, neighbour: Mapping[int, int]) -> tuple[int, ...]:
    """Those of `choices` that the other LIDs of a port, whose entries are `taken`, use least.

    First come the ports to neighbours that the fewest of them go to, then of those the ports of the fewest.
    """
    by_neighbour = dict.fromkeys((neighbour[port] for port in choices), 0)
    for port in taken:
        if port != LFT_NO_ROUTE:
            by_neighbour[neighbour[port]] += 1
    fewest = min(by_neighbour.values())
    ports = [port for port in choices if by_neighbour[neighbour[port]] == fewest]
    uses = {port: taken.count(port) for port in ports}
    fewest = min(uses.values())
    return tuple(port for port in ports if uses[port] == fewest)
