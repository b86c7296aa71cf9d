"""The switches of a subnet as a graph with small numbers for names, as routing engines want it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sm.subnet import MANAGEMENT_PORT, Subnet

__all__ = ["UNREACHABLE", "SwitchGraph", "distances"]

UNREACHABLE: Final = 1 << 30
"""Distance to where no path leads."""


@dataclass(frozen=True)
class SwitchGraph:
    """Switches numbered in the order of the subnet, and what is at their ports."""

    guids: tuple[int, ...]
    """GUID of each switch."""
    ports: tuple[dict[int, tuple[int, ...]], ...]
    """Of each switch: the ports that lead to each neighbouring switch, ascending. It may be its own neighbour."""
    far: tuple[dict[int, int], ...]
    """Of each switch: the neighbour at each of those ports."""
    hosts: tuple[int, ...]
    """Number of ports of each switch at which an end node is."""
    homes: dict[int, tuple[int, int]]
    """Of each PortGUID behind a switch: that switch and the port by which it sends there."""

    @classmethod
    def of(cls, subnet: Subnet) -> SwitchGraph:
        """The switches of a subnet."""
        switches = subnet.switches
        index = {switch.guid: number for number, switch in enumerate(switches)}
        ports: list[dict[int, tuple[int, ...]]] = []
        far_ends: list[dict[int, int]] = []
        hosts = []
        homes = {}
        for number, switch in enumerate(switches):
            homes[switch.end_ports[MANAGEMENT_PORT].guid] = number, MANAGEMENT_PORT
            to: dict[int, list[int]] = {}
            attached = 0
            for port, far in subnet.neighbours(switch.guid):
                if far.guid not in index:
                    attached += 1
                    homes[subnet.nodes[far.guid].end_ports[far.port].guid] = number, port
                else:
                    to.setdefault(index[far.guid], []).append(port)
            ports.append({far: tuple(numbers) for far, numbers in to.items()})
            far_ends.append({port: far for far, numbers in to.items() for port in numbers})
            hosts.append(attached)
        return cls(tuple(index), tuple(ports), tuple(far_ends), tuple(hosts), homes)

    def distances(self, sources: list[int]) -> list[int]:
        """Links between each switch and the nearest of `sources`."""
        return distances(self.ports, sources)

    def islands(self) -> list[list[int]]:
        """The switches in groups between which no links are."""
        left = set(range(len(self.guids)))
        groups = []
        while left:
            hops = self.distances([min(left)])
            groups.append([switch for switch, distance in enumerate(hops) if distance != UNREACHABLE])
            left.difference_update(groups[-1])
        return groups

    def ports_to(self, switch: int, neighbours: list[int]) -> tuple[int, ...]:
        """The ports of a switch, ascending, that lead to some of its neighbours."""
        to = self.ports[switch]
        return tuple(sorted([port for far in neighbours for port in to[far]]))


def distances(neighbours: Sequence[Iterable[int]], sources: Sequence[int]) -> list[int]:
    """Links from the nearest of `sources` to each switch, by way of the `neighbours` of each."""
    hops = [UNREACHABLE] * len(neighbours)
    for source in sources:
        hops[source] = 0
    queue = deque(sources)
    while queue:
        near = queue.popleft()
        for far in neighbours[near]:
            if hops[far] == UNREACHABLE:
                hops[far] = hops[near] + 1
                queue.append(far)
    return hops
