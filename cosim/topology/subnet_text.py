"""A subnet in the words of infiniband-diags: ibswitches, ibhosts, iblinkinfo and ibroute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cosim.topology.ibnetdiscover import printable
from sm.discovery import Findings
from sm.lids import LidRange
from sm.subnet import MANAGEMENT_PORT, End, Node, Subnet
from wire.codes import LinkSpeed, LinkWidth, PortPhysicalState, PortState
from wire.meaning import label
from wire.node_info import NodeType

__all__ = ["forwarding_table", "host_line", "link_lines", "switch_line"]

_RATES: Final = {LinkSpeed.SDR: "2.5 Gbps", LinkSpeed.DDR: "5.0 Gbps", LinkSpeed.QDR: "10.0 Gbps"}
"""Of one lane."""

_TYPES: Final = {NodeType.CA: "Channel Adapter", NodeType.SWITCH: "Switch", NodeType.ROUTER: "Router"}


def switch_line(node: Node) -> str:
    """A switch as ibswitches lists it."""
    port = node.end_ports[MANAGEMENT_PORT]
    kind = "enhanced" if node.enhanced_port_0 else "base"
    return f"{_listed('Switch', node)} {kind} port 0 lid {port.lid} lmc {port.lmc}"


def host_line(node: Node) -> str:
    """A channel adapter as ibhosts lists it."""
    return _listed("Ca", node)


def _listed(kind: str, node: Node) -> str:
    return f'{kind}\t: 0x{node.guid:016x} ports {node.ports} "{printable(node.description)}"'


def link_lines(found: Findings, node: Node) -> Iterator[str]:
    """A node and its ports as iblinkinfo shows them: LID, port, its state, and what is at the far end."""
    if node.is_switch:
        yield f"Switch: 0x{node.end_ports[MANAGEMENT_PORT].guid:016x} {printable(node.description)}:"
    else:
        yield f"CA: {printable(node.description)}:"
    for number in range(1, node.ports + 1):
        end = End(node.guid, number)
        if end not in found.ports:
            continue
        port = node.end_ports[MANAGEMENT_PORT if node.is_switch else number]
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
    lid = node.end_ports[MANAGEMENT_PORT if node.is_switch else far.port].lid
    return f'{lid:6} {far.port:4}[  ] "{printable(node.description)}" ( )'


def forwarding_table(
    subnet: Subnet, node: Node, lids: Mapping[int, LidRange], table: bytes | bytearray
) -> Iterator[str]:
    """A switch's linear forwarding table as ibroute and dump_fts show it; `lids` are by PortGUID."""
    owners = {lid: (end, port.guid) for end, port in subnet.reachable_end_ports for lid in lids[port.guid].lids}
    own = node.end_ports[MANAGEMENT_PORT].lid
    name = printable(node.description)
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
            destination = f"({_TYPES[far.type]} portguid 0x{guid:016x}: '{printable(far.description)}')"
        yield f"0x{lid:04x} {out:03} : {destination}"
    yield f"{valid} valid lids dumped"
