"""Multicast forwarding tables: for each group a tree of switches, and the ports by which its packets leave them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from wire.parameters import FabricParameters, SwitchParameters

__all__ = ["multicast_tables"]

_End: TypeAlias = tuple[str, int]
"""A node and a port of it."""


def multicast_tables(
    fabric: FabricParameters, groups: Mapping[int, Sequence[str]]
) -> dict[str, dict[int, tuple[int, ...]]]:
    """Switch name to multicast LID to the ports of that group's tree there, ascending; GROUPS are hosts by LID.

    A tree has shortest paths from its first member to the others, by the lowest ports. Members that cannot be reached
    from there are not in it.
    """
    far: dict[_End, _End] = {}
    for link in fabric.links:
        ends = (link.a, link.a_port), (link.b, link.b_port)
        far |= {ends[0]: ends[1], ends[1]: ends[0]}
    tables: dict[str, dict[int, tuple[int, ...]]] = {
        name: {} for name, node in fabric.nodes.items() if isinstance(node, SwitchParameters)
    }
    for mlid, members in groups.items():
        toward = _tree(far, tables, members[0]) if members else {}
        ports: defaultdict[str, set[int]] = defaultdict(set)
        for member in members:
            node = member
            while node in toward:
                up = toward[node]
                down = far[up]
                for end, number in (up, down):
                    ports[end].add(number)
                node = down[0]
        for switch, leaving in ports.items():
            if switch in tables:
                tables[switch][mlid] = tuple(sorted(leaving))
    return tables


def _tree(far: Mapping[_End, _End], switches: Mapping[str, object], root: str) -> dict[str, _End]:
    """Of each node that is reached from ROOT its port on a shortest path there; other hosts relay nothing."""
    near: defaultdict[str, list[int]] = defaultdict(list)
    for node, port in sorted(far):
        near[node].append(port)
    toward: dict[str, _End] = {}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for port in near[node]:
            other = far[node, port]
            if other[0] != root and other[0] not in toward:
                toward[other[0]] = other
                if other[0] in switches:
                    queue.append(other[0])
    return toward
