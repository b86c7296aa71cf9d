"""A subnet in the words of infiniband-diags: ibnetdiscover, ibswitches, ibhosts, iblinkinfo and ibroute."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from cosim.topology.link_rates import rate_text
from sm.discovery import Findings
from sm.lids import LidRange
from sm.subnet import MANAGEMENT_PORT, End, EndPort, Node, Subnet
from wire.codes import LinkSpeed, LinkWidth, PortPhysicalState, PortState
from wire.meaning import label
from wire.node_info import NodeType

__all__ = ["format_topology", "forwarding_table", "host_line", "link_lines", "switch_line"]

_LETTERS: Final = {NodeType.SWITCH: "S", NodeType.CA: "H", NodeType.ROUTER: "R"}
_WORDS: Final = {NodeType.SWITCH: "Switch", NodeType.CA: "Ca", NodeType.ROUTER: "Rt"}
_TYPES: Final = {NodeType.CA: "Channel Adapter", NodeType.SWITCH: "Switch", NodeType.ROUTER: "Router"}

_RATES: Final = {LinkSpeed.SDR: "2.5 Gbps", LinkSpeed.DDR: "5.0 Gbps", LinkSpeed.QDR: "10.0 Gbps"}
"""Of one lane."""


def format_topology(subnet: Subnet, origin: End, when: datetime) -> str:
    """ibnetdiscover's output: switches, adapters, then routers, each kind in the order in which they were found.

    `origin` is the port from which the subnet was discovered, at `when`. ibsim and others can read it again.
    """
    port = _end_port(subnet.nodes[origin.guid], origin.port)
    lines = [
        "#",
        f"# Topology file: generated on {when:%a %b} {when.day:2d} {when:%H:%M:%S %Y}",
        "#",
        f"# Initiated from node {origin.guid:016x} port {port.guid:016x}",
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
    head = f'{_WORDS[node.type]}\t{node.ports} {_id(node)}\t\t# "{_printable(node)}"'
    if node.is_switch:
        yield f"switchguid=0x{node.guid:x}({node.end_ports[MANAGEMENT_PORT].guid:x})"
        yield f"{head} {_port_0(node)}"
    else:
        yield f"{_WORDS[node.type].lower()}guid=0x{node.guid:x}"
        yield head
    for number, far in subnet.neighbours(node.guid):
        yield _link(subnet, node, number, far)


def _link(subnet: Subnet, node: Node, number: int, far: End) -> str:
    """The line of a linked port."""
    other = subnet.nodes[far.guid]
    far_port = _end_port(other, far.port)
    link = subnet.link(far)
    assert link is not None
    name = f'"{_printable(other)}" lid {far_port.lid} {rate_text(link.width, link.speed)}'
    if node.is_switch:
        far_guid = "" if other.is_switch else f"({far_port.guid:x}) "
        return f"[{number}]\t{_id(other)}[{far.port}]{far_guid}\t\t# {name}"
    port = node.end_ports[number]
    far_guid = "" if other.is_switch else f" ({far_port.guid:x}) "
    return f"[{number}]({port.guid:x}) \t{_id(other)}[{far.port}]{far_guid}\t\t# lid {port.lid} lmc {port.lmc} {name}"


def _id(node: Node) -> str:
    return f'"{_LETTERS[node.type]}-{node.guid:016x}"'


def _printable(node: Node) -> str:
    """A node's description on one line."""
    return re.sub(rb"[^ -~]", b" ", node.description.encode()).decode()


def _end_port(node: Node, number: int) -> EndPort:
    """The one that has the GUID and the LID of a port."""
    return node.end_ports[MANAGEMENT_PORT if node.is_switch else number]


def _port_0(node: Node) -> str:
    port = node.end_ports[MANAGEMENT_PORT]
    return f"{'enhanced' if node.enhanced_port_0 else 'base'} port 0 lid {port.lid} lmc {port.lmc}"


def switch_line(node: Node) -> str:
    """A switch as ibswitches lists it."""
    return f"{_listed('Switch', node)} {_port_0(node)}"


def host_line(node: Node) -> str:
    """A channel adapter as ibhosts lists it, or a router as ibrouters does."""
    return _listed("Router" if node.type is NodeType.ROUTER else "Ca", node)


def _listed(kind: str, node: Node) -> str:
    return f'{kind}\t: 0x{node.guid:016x} ports {node.ports} "{_printable(node)}"'


def link_lines(found: Findings, node: Node) -> Iterator[str]:
    """A node and its ports as iblinkinfo shows them: LID, port, its state, and what is at the far end."""
    if node.is_switch:
        yield f"Switch: 0x{node.end_ports[MANAGEMENT_PORT].guid:016x} {_printable(node)}:"
    else:
        yield f"{'Router' if node.type is NodeType.ROUTER else 'CA'}: {_printable(node)}:"
    for number in range(1, node.ports + 1):
        end = End(node.guid, number)
        if end not in found.ports:
            continue
        port = _end_port(node, number)
        guid = "" if node.is_switch else f"0x{port.guid:016x} "
        yield f"      {guid}{port.lid:6} {number:4}[  ] =={_state(found, end)}==>  {_far_end(found, end)}"


def _state(found: Findings, end: End) -> str:
    info = found.ports[end]
    states = f"{label(PortState(info.port_state)):>6}/{label(PortPhysicalState(info.port_physical_state)):>8}"
    if info.port_state == PortState.DOWN:
        return f"(              {states})"
    width, rate = label(LinkWidth(info.link_width_active)), _RATES[LinkSpeed(info.link_speed_active)]
    return f"({width:>3} {rate:>18} {states})"


def _far_end(found: Findings, end: End) -> str:
    far = found.subnet.peer(end)
    if far is None:
        down = found.state(end) == PortState.DOWN
        return '           [  ] "" ( )' if down else '    "Port not available"'
    node = found.subnet.nodes[far.guid]
    return f'{_end_port(node, far.port).lid:6} {far.port:4}[  ] "{_printable(node)}" ( )'


def forwarding_table(
    subnet: Subnet, node: Node, lids: Mapping[int, LidRange], table: bytes | bytearray
) -> Iterator[str]:
    """A switch's linear forwarding table as ibroute and dump_fts show it; `lids` are by PortGUID."""
    owners = {lid: (end, port.guid) for end, port in subnet.reachable_end_ports for lid in lids[port.guid].lids}
    own = node.end_ports[MANAGEMENT_PORT].lid
    name = _printable(node)
    yield f"Unicast lids [0x0-0x{len(table) - 1:x}] of switch Lid {own} guid 0x{node.guid:016x} ({name}):"
    yield "  Lid  Out   Destination"
    yield "       Port     Info"
    valid = 0
    for lid, out in enumerate(table):
        if out > node.ports:
            continue
        valid += 1
        destination = "(node info not available fabric scan)"
        if lid in owners:
            end, guid = owners[lid]
            far = subnet.nodes[end.guid]
            destination = f"({_TYPES[far.type]} portguid 0x{guid:016x}: '{_printable(far)}')"
        yield f"0x{lid:04x} {out:03} : {destination}"
    yield f"{valid} valid lids dumped"
