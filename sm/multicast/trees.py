"""A spanning tree for each multicast group, over which its packets find every member once.

The tree is OpenSM's: its root is the switch from which the farthest member is least far, of several the first in
OpenSM's order, and from there it takes the shortest path to each switch with members, of several that with the lowest
ports. Where the switches that multicast packets may pass fall into islands, each of them has a tree.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from sm.routing.graph import UNREACHABLE, distances
from sm.subnet import MANAGEMENT_PORT, End, Subnet
from wire.codes import LID_MULTICAST_MIN

__all__ = ["MulticastTrees"]

_GUID_BYTES: Final = 8


class MulticastTrees:
    """Trees over the links of a subnet; it remembers distances."""

    def __init__(self, subnet: Subnet, caps: Mapping[int, int]) -> None:
        """`subnet` has those links only that packets may take; `caps` is MulticastFDBCap by switch GUID."""
        self._subnet = subnet
        self._caps = caps
        self._graphs: dict[tuple[int, ...], _Graph] = {}
        """By the switches that they are of."""
        self._homes: dict[int, End] = {}
        for end, port in subnet.reachable_end_ports:
            far = subnet.peer(end)
            if end.port != MANAGEMENT_PORT and far is not None:
                self._homes[port.guid] = far

    def masks(self, mlid: int, members: Mapping[int, bool]) -> dict[int, int]:
        """The ports that a group's packets leave by, by switch GUID, bit i for port i; switches without are left out.

        `members` is by PortGUID, and says to whom packets are led: those that only send have a way into the tree. A
        member alone on its island needs no tree, and one behind a switch whose table has no room for the MLID has none.
        """
        index = mlid - LID_MULTICAST_MIN
        passed = tuple(guid for guid, cap in self._caps.items() if index < cap)
        if passed not in self._graphs:
            self._graphs[passed] = _Graph(self._subnet, passed)
        graph = self._graphs[passed]
        at: dict[int, list[tuple[int, bool]]] = {}
        for guid, receives in members.items():
            home = self._homes.get(guid)
            if home is not None and home.guid in graph.numbers:
                at.setdefault(graph.numbers[home.guid], []).append((home.port, receives))
        masks: dict[int, int] = {}
        left = set(at)
        while left:
            hops = graph.hops(min(left))
            island = {switch: at[switch] for switch in left if hops[switch] != UNREACHABLE}
            left -= island.keys()
            if sum(map(len, island.values())) > 1:
                masks |= graph.tree(island)
        return masks


class _Graph:
    """Switches that packets of a group may pass, numbered in OpenSM's order."""

    def __init__(self, subnet: Subnet, guids: tuple[int, ...]) -> None:
        # As a little-endian machine reads the bytes of a GUID on the wire.
        self._guids = sorted(guids, key=lambda guid: int.from_bytes(guid.to_bytes(_GUID_BYTES, "big"), "little"))
        self.numbers = {guid: number for number, guid in enumerate(self._guids)}
        self._ports: list[dict[int, tuple[int, int]]] = []
        """Of each switch: by neighbour, the lowest port that leads there and the port at the far end, by the first."""
        for guid in self._guids:
            to: dict[int, tuple[int, int]] = {}
            for port, far in subnet.neighbours(guid):
                if far.guid in self.numbers:
                    to.setdefault(self.numbers[far.guid], (port, far.port))
            self._ports.append(to)
        self._hops: dict[int, list[int]] = {}

    def hops(self, switch: int) -> list[int]:
        """Links between a switch and each other."""
        if switch not in self._hops:
            self._hops[switch] = distances(self._ports, [switch])
        return self._hops[switch]

    def tree(self, at: Mapping[int, list[tuple[int, bool]]]) -> dict[int, int]:
        """Masks by switch GUID of a tree that connects the switches of `at`, which has the members' ports of each."""
        farthest = [max(hops) for hops in zip(*map(self.hops, at), strict=True)]
        root = min(range(len(farthest)), key=farthest.__getitem__)
        parents = self._parents(root)
        # How many of the members behind each switch are sent to, and that there are members at all.
        receivers = {switch: sum(receives for _port, receives in ports) for switch, ports in at.items()}
        everyone = sum(receivers.values())
        masks = {switch: sum(1 << port for port, receives in ports if receives) for switch, ports in at.items()}
        for switch, parent in reversed(parents.items()):
            if switch not in receivers:
                continue
            receivers[parent] = receivers.get(parent, 0) + receivers[switch]
            up, down = self._link(parent, switch)
            if receivers[switch]:
                masks[parent] = masks.get(parent, 0) | 1 << up
            if receivers[switch] < everyone:
                masks[switch] = masks.get(switch, 0) | 1 << down
        return {self._guids[switch]: mask for switch, mask in masks.items() if mask}

    def _parents(self, root: int) -> dict[int, int]:
        """The switch before each other one on the way from the root, the nearest first."""
        parents: dict[int, int] = {}
        queue = deque([root])
        while queue:
            near = queue.popleft()
            for far in self._ports[near]:
                if far != root and far not in parents:
                    parents[far] = near
                    queue.append(far)
        return parents

    def _link(self, near: int, far: int) -> tuple[int, int]:
        """The ports at both ends of the link that a tree takes from a switch on to its neighbour."""
        return self._ports[near][far]
