"""Where the subnet that a Subnet Manager found is not the one that a topology file describes."""

from __future__ import annotations

from collections import deque
from collections.abc import Container

from cosim.topology.link_rates import built_width
from sm.subnet import End, Link, Node, Subnet
from wire.meaning import label

__all__ = ["differences", "in_reach"]


def in_reach(subnet: Subnet, origin: End) -> set[End]:
    """The linked ports that packets from a port can come to, and that port: channel adapters relay nothing."""
    met = {origin}
    to_look_at = deque([origin])
    while to_look_at:
        far = subnet.peer(to_look_at.popleft())
        if far is None or far in met:
            continue
        met.add(far)
        if subnet.nodes[far.guid].is_switch:
            others = {End(far.guid, port) for port, _far in subnet.neighbours(far.guid)} - met
            met |= others
            to_look_at.extend(sorted(others))
    return met


def differences(described: Subnet, found: Subnet, origin: End) -> list[str]:
    """In words, one line each: what is in one of the two alone, as far as it is in reach of `origin`, or differs.

    LIDs, speeds and IDs of vendors, devices and systems do not count: the file does not set them.
    """
    reach = in_reach(described, origin)
    nodes = {end.guid for end in reach}
    said: list[str] = []
    for guid in [
        *(guid for guid in described.nodes if guid in nodes),
        *(guid for guid in found.nodes if guid not in nodes),
    ]:
        if guid not in found.nodes:
            said.append(f"not found: {_node(described.nodes[guid])}")
        elif guid not in nodes:
            said.append(f"found, and not in the file: {_node(found.nodes[guid])}")
        elif _outline(described.nodes[guid], reach) != _outline(found.nodes[guid], reach):
            said.append(f"found to be another than in the file: {_node(found.nodes[guid])}")
    wanted = {_ends(link): link for link in described.links if link.a in reach}
    seen = {_ends(link): link for link in found.links}
    for ends in [*wanted, *(ends for ends in seen if ends not in wanted)]:
        if ends not in seen:
            said.append(f"not found: {_link(wanted[ends])}")
        elif ends not in wanted:
            said.append(f"found, and not in the file: {_link(seen[ends])}")
        elif built_width(wanted[ends].width) != seen[ends].width:
            said.append(f"found to be {label(seen[ends].width)}: {_link(wanted[ends])}")
    return said


def _outline(node: Node, reach: Container[End]) -> tuple[object, ...]:
    """What must be the same; of the ports of an end node, those in reach."""
    guids = {
        number: port.guid
        for number, port in node.end_ports.items()
        if node.is_switch or End(node.guid, number) in reach
    }
    return node.type, node.ports, node.description, guids


def _ends(link: Link) -> tuple[End, End]:
    return link.a, link.b


def _node(node: Node) -> str:
    return f'{label(node.type)} 0x{node.guid:016x} "{node.description}"'


def _link(link: Link) -> str:
    return f"link {link.a} to {link.b}"
