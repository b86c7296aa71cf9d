"""Forwarding tables from next hops: each LID has one of them at each switch, and the load is shared evenly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sm.lids import LidRange
from sm.routing.graph import SwitchGraph
from sm.subnet import MANAGEMENT_PORT
from wire.forwarding_tables import LFT_NO_ROUTE

__all__ = ["NextHops", "Routes", "spread"]

NextHops = Sequence[Sequence[tuple[int, ...]]]
"""[home][switch]: the ports, ascending, by which `switch` may send to what is at the switch `home`."""


@dataclass(frozen=True)
class Routes:
    """Linear forwarding tables, and what else the routing engine would have allowed."""

    tables: dict[int, bytearray]
    """Switch GUID to port by LID, from LID 0 to the highest LID in use."""
    _next_hops: NextHops
    _homes: dict[int, int]
    """Number of the switch where each LID is."""
    _numbers: dict[int, int]
    """Number of each switch GUID."""

    def backups(self, switch: int, lid: int) -> tuple[int, ...]:
        """The other ports, ascending, by which the switch of this GUID might also send to a LID."""
        home = self._homes.get(lid)
        if home is None:
            return ()
        chosen = self.tables[switch][lid]
        return tuple(port for port in self._next_hops[home][self._numbers[switch]] if port != chosen)


def spread(
    graph: SwitchGraph,
    next_hops: NextHops,
    lids: Mapping[int, LidRange],
    previous: Mapping[int, bytearray] | None = None,
) -> Routes:
    """Chooses among next hops.

    At each switch a LID goes out by the port that has the fewest LIDs so far, then by the lowest. LIDs of switches
    are counted separately, as they bring only management. The several LIDs of a port go to different neighbours as long
    as there are any, then by different ports. Entries of `previous`, tables by switch GUID, stay where they are
    among the next hops; LIDs that are gone lose theirs.
    """
    # Switch by switch: all leaves of a fat tree then come to the same spine for a host, and no link down carries
    # more hosts than its share, however LIDs were given out.
    ends = sorted((home, port, lids[guid]) for guid, (home, port) in graph.homes.items() if guid in lids)
    size = max((found.last for _home, _port, found in ends), default=0) + 1
    tables = {}
    for switch, guid in enumerate(graph.guids):
        old = (previous or {}).get(guid, b"")
        table = bytearray([LFT_NO_ROUTE]) * size
        tables[guid] = table
        neighbour = {port: far for far, ports in graph.ports[switch].items() for port in ports}
        loads = [dict.fromkeys(neighbour, 0), dict.fromkeys(neighbour, 0)]
        left = []
        for home, port, found in ends:
            if home == switch:
                table[found.first : found.last + 1] = bytes([port]) * len(found.lids)
                continue
            choices = next_hops[home][switch]
            load = loads[port == MANAGEMENT_PORT]
            for lid in found.lids if choices else ():
                if lid < len(old) and old[lid] in choices:
                    table[lid] = old[lid]
                    load[old[lid]] += 1
                else:
                    left.append((lid, found, choices, load))
        for lid, found, choices, load in left:
            if len(found.lids) > 1:
                choices = _unlike(choices, table[found.first : found.last + 1], neighbour)
            port = min(choices, key=load.__getitem__)
            load[port] += 1
            table[lid] = port
    homes = {lid: home for home, _port, found in ends for lid in found.lids}
    return Routes(tables, next_hops, homes, {guid: number for number, guid in enumerate(graph.guids)})


def _unlike(choices: tuple[int, ...], taken: bytearray, neighbour: dict[int, int]) -> tuple[int, ...]:
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
