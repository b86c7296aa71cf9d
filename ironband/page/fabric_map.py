"""Where the nodes of a fabric are on its map: hosts below their switches, switches above by rank."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cosim.topology.topology import neighbours
from wire.codes import LinkWidth
from wire.parameters import FabricParameters, SwitchParameters, node_text

__all__ = ["fabric_head", "place_nodes"]

_RANK_HEIGHT: Final = 160.0
_HOST_STEP: Final = 26.0
"""Between hosts, as between all that is on the map in units of its own."""
_FEW_HOSTS: Final = 8
"""Up to so many hosts of a switch stand in one row, further apart as their names are readable then."""
_FEW_STEP: Final = 84.0
_GROUP_GAP: Final = 30.0
_LEAST_GROUP: Final = 96.0
_WIDE_BY_HIGH: Final = 3.0
_RING_ROOM: Final = 150.0


def fabric_head(fabric: FabricParameters, widths: Sequence[int]) -> dict[str, Any]:
    """What a page needs to know of a fabric: nodes with their places, links with their widths; as JSON.

    Link i's ends are the ports 2 i and 2 i + 1.
    """
    places = place_nodes(fabric)
    nodes = []
    for name, node in fabric.nodes.items():
        is_switch = isinstance(node, SwitchParameters)
        x, y = places[name]
        nodes.append(
            {
                "name": name,
                "text": node_text(name),
                "kind": "switch" if is_switch else "host",
                "x": round(x, 1),
                "y": round(y, 1),
                "ports": fabric.port_count(node),
                "vls": node.vls,
                "mtu": node.mtu,
                "blocks": (node.buffer_blocks if isinstance(node, SwitchParameters) else node.receive_blocks)
                * node.vls,
            }
        )
    index = {name: number for number, name in enumerate(fabric.nodes)}
    links = [
        {
            "a": [index[link.a], link.a_port],
            "b": [index[link.b], link.b_port],
            "width": "1X" if width == LinkWidth.X1 else "4X",
            "flight": link.flight,
        }
        for link, width in zip(fabric.links, widths, strict=True)
    ]
    return {"nodes": nodes, "links": links}


def place_nodes(fabric: FabricParameters) -> dict[str, tuple[float, float]]:
    """Where each node stands, x to the right and y down.

    The rank of a switch is the number of links to the nearest host. Where all have the same and are joined to each
    other, as in a ring, they stand in a circle, their hosts outside.
    """
    near = neighbours(fabric)
    beside = {name: [other for _, other in sorted(ends)] for name, ends in near.items()}
    ranks = _ranks(fabric, beside)
    switches = list(ranks)
    hosts: dict[str, list[str]] = defaultdict(list)
    alone = []
    for name, node in fabric.nodes.items():
        if not isinstance(node, SwitchParameters):
            above = next((other for other in beside[name] if other in ranks), None)
            if above is None:
                alone.append(name)
            else:
                hosts[above].append(name)
    flat = len(set(ranks.values())) == 1 and len(switches) > 2
    if flat and all(any(other in ranks for other in beside[name]) for name in switches):
        places = _circle(switches, hosts, beside)
    else:
        places = _layers(ranks, hosts, beside)
    right = max((x for x, _ in places.values()), default=0.0)
    top = 0.0 if not places else max(y for _, y in places.values())
    for number, name in enumerate(alone):
        x = number * _FEW_STEP if not places else right + _FEW_STEP * (1 + number)
        places[name] = x, top
    return places


def _ranks(fabric: FabricParameters, beside: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Links from each switch to its nearest host; those that no host reaches are above all."""
    found: dict[str, int] = {name: 0 for name, node in fabric.nodes.items() if not isinstance(node, SwitchParameters)}
    queue = deque(found)
    while queue:
        name = queue.popleft()
        for other in beside[name]:
            if other not in found:
                found[other] = found[name] + 1
                queue.append(other)
    highest = max(found.values(), default=0) + 1
    return {name: found.get(name, highest) for name, node in fabric.nodes.items() if isinstance(node, SwitchParameters)}


def _block(count: int) -> tuple[int, float]:
    """Columns of a switch's block of hosts, and the step between them."""
    if count <= _FEW_HOSTS:
        return max(1, count), _FEW_STEP
    return math.ceil(math.sqrt(count / 2)), _HOST_STEP


def _layers(
    ranks: Mapping[str, int], hosts: Mapping[str, Sequence[str]], beside: Mapping[str, Sequence[str]]
) -> dict[str, tuple[float, float]]:
    places: dict[str, tuple[float, float]] = {}
    highest = max(ranks.values(), default=0)
    wide = sum(_LEAST_GROUP + _GROUP_GAP for rank in ranks.values() if rank == 1)
    # A wide map is a high one, too: links to all sides are told apart then.
    height = max(_RANK_HEIGHT, wide / _WIDE_BY_HIGH)
    left = 0.0
    for switch in (name for name, rank in ranks.items() if rank == 1):
        columns, step = _block(len(hosts[switch]) if switch in hosts else 0)
        width = max(_LEAST_GROUP if columns <= 2 else 0.0, columns * step)
        middle = left + width / 2
        places[switch] = middle, highest * height
        for number, host in enumerate(hosts.get(switch, ())):
            row, column = divmod(number, columns)
            x = middle + (column - (columns - 1) / 2) * step
            places[host] = x, highest * height + 0.62 * _RANK_HEIGHT + row * _HOST_STEP
        left += width + _GROUP_GAP
    whole = max(left - _GROUP_GAP, _LEAST_GROUP)
    for rank in range(2, highest + 1):
        row_of = [name for name, own in ranks.items() if own == rank]

        def middle_of(name: str) -> float:
            below = [places[other][0] for other in beside[name] if other in places]
            return sum(below) / len(below) if below else 0.0

        row_of.sort(key=middle_of)
        for number, name in enumerate(row_of):
            places[name] = (number + 0.5) * whole / len(row_of), (highest + 1 - rank) * height
    return places


def _circle(
    switches: Sequence[str], hosts: Mapping[str, Sequence[str]], beside: Mapping[str, Sequence[str]]
) -> dict[str, tuple[float, float]]:
    places: dict[str, tuple[float, float]] = {}
    order = _walk(switches, beside)
    radius = max(_RING_ROOM, len(order) * _RING_ROOM / (2 * math.pi))
    for number, switch in enumerate(order):
        angle = 2 * math.pi * number / len(order) - math.pi / 2
        outward = math.cos(angle), math.sin(angle)
        places[switch] = radius * outward[0], radius * outward[1]
        columns, step = _block(len(hosts.get(switch, ())))
        for place, host in enumerate(hosts.get(switch, ())):
            row, column = divmod(place, columns)
            away = radius + 0.62 * _RANK_HEIGHT + row * _HOST_STEP
            across = (column - (columns - 1) / 2) * step
            places[host] = (
                away * outward[0] - across * outward[1],
                away * outward[1] + across * outward[0],
            )
    return places


def _walk(switches: Sequence[str], beside: Mapping[str, Sequence[str]]) -> list[str]:
    """The switches so that neighbours come one after another, as far as that goes."""
    left, order = dict.fromkeys(switches), []
    while left:
        name: str | None = next(iter(left))
        while name is not None:
            del left[name]
            order.append(name)
            name = next((other for other in beside[name] if other in left), None)
    return order
