"""Subnets for tests: stars, pairs, rings, fat trees and random ones, and walking their forwarding tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from random import Random

from bench.fat_tree import HOST_GUID as HOST_GUID
from bench.fat_tree import SWITCH_GUID, add_host, add_switch
from bench.fat_tree import fat_tree as fat_tree
from sm.lids import LidRange
from sm.subnet import End, EndPort, Link, Subnet


def free_port(subnet: Subnet, guid: int) -> int | None:
    used = {port for port, _far in subnet.neighbours(guid)}
    return next((port for port in range(1, subnet.nodes[guid].ports + 1) if port not in used), None)


def cable(subnet: Subnet, one: int, other: int) -> bool:
    """Links the lowest free ports of two nodes (of one, if it is the same twice); false if there are none."""
    port = free_port(subnet, one)
    if port is None:
        return False
    taken = {number for number, _far in subnet.neighbours(other)} | ({port} if one == other else set())
    far = next((number for number in range(1, subnet.nodes[other].ports + 1) if number not in taken), None)
    if far is None:
        return False
    subnet.connect(End(one, port), End(other, far))
    return True


def star(hosts: int = 2, ports: int = 8) -> Subnet:
    """One switch, hosts at its lowest ports."""
    subnet = Subnet()
    switch = add_switch(subnet, ports)
    for _ in range(hosts):
        cable(subnet, switch, add_host(subnet))
    return subnet


def parallel_pair(hosts: int = 2, links: int = 2) -> Subnet:
    """Two switches of 8 ports with parallel links between them, and `hosts` each."""
    subnet = Subnet()
    switches = add_switch(subnet, 8), add_switch(subnet, 8)
    for switch in switches:
        for _ in range(hosts):
            cable(subnet, switch, add_host(subnet))
    for _ in range(links):
        cable(subnet, *switches)
    return subnet


def ring(switches: int) -> Subnet:
    """Switches in a ring, a host at port 1 of each; port 2 of the first to port 3 of the last."""
    subnet = Subnet()
    guids = [add_switch(subnet, 3) for _ in range(switches)]
    for guid in guids:
        cable(subnet, guid, add_host(subnet))
    for before, after in zip(guids, guids[1:] + guids[:1], strict=True):
        subnet.connect(End(before, 3), End(after, 2))
    return subnet


def three_level_tree(ports: int, pods: int) -> Subnet:
    """A fat tree of edge, aggregation and core switches, with (ports / 2)^2 hosts in each pod."""
    half = ports // 2
    subnet = Subnet()
    cores = [add_switch(subnet, ports) for _ in range(half * half)]
    for _pod in range(pods):
        edges = [add_switch(subnet, ports) for _ in range(half)]
        for edge in edges:
            for _ in range(half):
                cable(subnet, edge, add_host(subnet))
        for group in range(half):
            aggregation = add_switch(subnet, ports)
            for edge in edges:
                cable(subnet, edge, aggregation)
            for core in cores[group * half : (group + 1) * half]:
                cable(subnet, aggregation, core)
    return subnet


def grid(*sizes: int, torus: bool) -> Subnet:
    """Switches in a mesh or torus, a host at each: dimension d goes on by port 2d + 1 and back by port 2d + 2."""
    subnet = Subnet()
    places = list(product(*map(range, sizes)))
    guids = {place: add_switch(subnet, 2 * len(sizes) + 1) for place in places}
    for place, guid in guids.items():
        subnet.connect(End(guid, 2 * len(sizes) + 1), End(add_host(subnet), 1))
        for dimension, size in enumerate(sizes):
            if torus or place[dimension] + 1 < size:
                on = (*place[:dimension], (place[dimension] + 1) % size, *place[dimension + 1 :])
                subnet.connect(End(guid, 2 * dimension + 1), End(guids[on], 2 * dimension + 2))
    return subnet


def hypercube(dimensions: int) -> Subnet:
    """Switches in a hypercube, a host at each: port d + 1 is dimension d."""
    subnet = Subnet()
    guids = [add_switch(subnet, dimensions + 1) for _ in range(1 << dimensions)]
    for number, guid in enumerate(guids):
        subnet.connect(End(guid, dimensions + 1), End(add_host(subnet), 1))
        for dimension in range(dimensions):
            if not number >> dimension & 1:
                subnet.connect(End(guid, dimension + 1), End(guids[number | 1 << dimension], dimension + 1))
    return subnet


def random_subnet(seed: int, host_ports: Sequence[int] = (1, 1, 1, 2)) -> Subnet:
    """One to nine switches and up to twelve hosts, with parallel links, loops, dual-port hosts and islands."""
    random = Random(seed)
    subnet = Subnet()
    switches = [add_switch(subnet, random.randint(3, 9)) for _ in range(random.randint(1, 9))]
    for number, switch in enumerate(switches[1:]):
        if random.random() < 0.95:
            cable(subnet, switch, random.choice(switches[: number + 1]))
    for _ in range(random.randint(0, 12)):
        host = add_host(subnet, random.choice(host_ports))
        for _port in range(subnet.nodes[host].ports):
            cable(subnet, host, random.choice(switches))
    for _ in range(random.randint(0, 12)):
        cable(subnet, random.choice(switches), random.choice(switches))
    return subnet


def first_host_port(subnet: Subnet) -> End:
    """The lowest linked port of a host, or port 0 of the first switch if there is none."""
    ends = [end for end, _port in subnet.reachable_end_ports if not subnet.nodes[end.guid].is_switch]
    return min(ends, default=End(SWITCH_GUID, 0))


def seen_from(subnet: Subnet, origin: End) -> Subnet:
    """The part that a packet from a port can reach: end nodes relay nothing, so of them only ports that it meets."""
    own = subnet.nodes[origin.guid]
    seen = Subnet()
    ends = [End(own.guid, port) for port in range(1, own.ports + 1)] if own.is_switch else [origin]
    _meet(seen, subnet, origin)
    queue = deque(ends)
    while queue:
        end = queue.popleft()
        far = subnet.peer(end)
        if far is None or seen.link(end):
            continue
        if far.guid not in seen.nodes and subnet.nodes[far.guid].is_switch:
            queue.extend(End(far.guid, port) for port in range(1, subnet.nodes[far.guid].ports + 1))
        _meet(seen, subnet, far)
        link = subnet.link(end)
        seen.connect(end, far, link.width, link.speed)
    return seen


def _meet(seen: Subnet, subnet: Subnet, end: End) -> None:
    node = subnet.nodes[end.guid]
    if end.guid not in seen.nodes:
        seen.add(replace(node, end_ports={}))
    number = 0 if node.is_switch else end.port
    seen.nodes[end.guid].end_ports[number] = EndPort(node.end_ports[number].guid)


def outline(subnet: Subnet) -> tuple[dict[int, tuple[object, ...]], list[Link]]:
    """A subnet without its LIDs, to compare."""
    nodes = {
        node.guid: (
            node.type,
            node.ports,
            node.description,
            node.vendor_id,
            node.device_id,
            {number: port.guid for number, port in node.end_ports.items()},
        )
        for node in subnet.nodes.values()
    }
    return nodes, subnet.links


def lids_behind(subnet: Subnet, lids: Mapping[int, LidRange]) -> dict[int, tuple[int, int]]:
    """Switch GUID and port at which each LID is; LIDs that no switch leads to are not in it."""
    homes = {}
    for end, port in subnet.reachable_end_ports:
        home = end if subnet.nodes[end.guid].is_switch else subnet.peer(end)
        if subnet.nodes[home.guid].is_switch:
            homes |= dict.fromkeys(lids[port.guid].lids, (home.guid, home.port))
    return homes


def links_from(subnet: Subnet, switch: int) -> dict[int, int]:
    """Links from a switch to each switch that can be reached, through switches."""
    links = {switch: 0}
    queue = deque([switch])
    while queue:
        here = queue.popleft()
        for _port, far in subnet.neighbours(here):
            if far.guid not in links and subnet.nodes[far.guid].is_switch:
                links[far.guid] = links[here] + 1
                queue.append(far.guid)
    return links


def walk(subnet: Subnet, tables: Mapping[int, bytearray], switch: int, lid: int) -> list[End] | None:
    """The ports a packet to `lid` leaves by, from a switch to the port of its home; None if a table has no route."""
    way: list[End] = []
    here = switch
    while True:
        port = tables[here][lid]
        if port == 0xFF:
            return None
        way.append(End(here, port))
        far = subnet.peer(way[-1]) if port else None
        if far is None or not subnet.nodes[far.guid].is_switch:
            return way
        here = far.guid
        assert len(way) <= len(subnet.switches), f"LID {lid} goes round in circles: {way}"
