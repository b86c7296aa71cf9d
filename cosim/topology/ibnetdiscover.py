"""A subnet as infiniband-diags' ibnetdiscover prints it, from which ibsim and others can read it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from sm.subnet import MANAGEMENT_PORT, End, Node, Subnet
from wire.codes import LinkWidth
from wire.node_info import NodeType

__all__ = ["format_topology", "printable"]

_LETTERS: Final = {NodeType.SWITCH: "S", NodeType.CA: "H", NodeType.ROUTER: "R"}
_WORDS: Final = {NodeType.SWITCH: "Switch", NodeType.CA: "Ca", NodeType.ROUTER: "Rt"}
_WIDTHS: Final = {
    LinkWidth.X1: "1x",
    LinkWidth.X2: "2x",
    LinkWidth.X4: "4x",
    LinkWidth.X8: "8x",
    LinkWidth.X12: "12x",
}


def format_topology(subnet: Subnet, origin: End, when: datetime) -> str:
    """ibnetdiscover's output: switches, adapters, then routers, each kind in the order in which they were found.

    `origin` is the port from which the subnet was discovered, at `when`.
    """
    lines = [
        "#",
        f"# Topology file: generated on {when:%a %b} {when.day:2d} {when:%H:%M:%S %Y}",
        "#",
        f"# Initiated from node {origin.guid:016x} port {_port_guid(subnet, origin):016x}",
    ]
    for kind in _WORDS:
        for node in subnet.nodes.values():
            if node.type is kind:
                lines += _record(subnet, node)
    return "\n".join(lines) + "\n"


def _record(subnet: Subnet, node: Node) -> Iterator[str]:
    yield ""
    yield f"vendid=0x{node.vendor_id:x}"
    yield f"devid=0x{node.device_id:x}"
    if node.system_image_guid:
        yield f"sysimgguid=0x{node.system_image_guid:x}"
    head = f'{_WORDS[node.type]}\t{node.ports} {_id(node)}\t\t# "{printable(node.description)}"'
    if node.is_switch:
        port = node.end_ports[MANAGEMENT_PORT]
        yield f"switchguid=0x{node.guid:x}({port.guid:x})"
        yield f"{head} {'enhanced' if node.enhanced_port_0 else 'base'} port 0 lid {port.lid} lmc {port.lmc}"
    else:
        yield f"{_WORDS[node.type].lower()}guid=0x{node.guid:x}"
        yield head
    for number, far in subnet.neighbours(node.guid):
        yield _link(subnet, node, number, far)


def _link(subnet: Subnet, node: Node, number: int, far: End) -> str:
    """The line of a linked port."""
    other = subnet.nodes[far.guid]
    link = subnet.link(far)
    assert link is not None
    far_lid = other.end_ports[MANAGEMENT_PORT if other.is_switch else far.port].lid
    name = f'"{printable(other.description)}" lid {far_lid} {_WIDTHS[link.width]}{link.speed.name}'
    if node.is_switch:
        far_guid = "" if other.is_switch else f"({other.end_ports[far.port].guid:x}) "
        return f"[{number}]\t{_id(other)}[{far.port}]{far_guid}\t\t# {name}"
    port = node.end_ports[number]
    far_guid = "" if other.is_switch else f" ({other.end_ports[far.port].guid:x}) "
    return f"[{number}]({port.guid:x}) \t{_id(other)}[{far.port}]{far_guid}\t\t# lid {port.lid} lmc {port.lmc} {name}"


def _id(node: Node) -> str:
    return f'"{_LETTERS[node.type]}-{node.guid:016x}"'


def printable(description: str) -> str:
    """A description on one line."""
    return re.sub(r"[^ -~]", " ", description)


def _port_guid(subnet: Subnet, end: End) -> int:
    node = subnet.nodes[end.guid]
    return node.end_ports[MANAGEMENT_PORT if node.is_switch else end.port].guid
