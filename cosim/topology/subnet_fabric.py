"""Fabrics built after a topology file: the parameters of its nodes and links, under names that all engines take."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal

from cosim.topology.link_rates import built_width
from cosim.topology.topology import hops_to, neighbours
from cosim.topology.topology_file import TopologyError, TopologyFile
from sm.subnet import MANAGEMENT_PORT, Node
from wire.codes import LinkWidth
from wire.node_info import NodeType
from wire.parameters import (
    AdapterParameters,
    FabricParameters,
    LinkParameters,
    NodeIdentity,
    NodeParameters,
    SwitchParameters,
    adapter_port,
    adapter_port_name,
)

__all__ = ["SubnetFabric", "fabric_of", "out_of_reach"]

_MAX_NAME = 31
"""Most characters of a node's name in a fabric."""


@dataclass(frozen=True)
class SubnetFabric:
    """A fabric after a topology file."""

    fabric: FabricParameters
    """Switches, then hosts, each in the order of the file; links in the order of their lower ends. GUIDs and
    descriptions are the file's."""
    names: dict[int, str]
    """Of each node GUID, what the node is called; of an adapter with several ports each is a node of the fabric."""
    widths: tuple[LinkWidth, ...]
    """Of each link: the widest that is built and not wider than the file's."""


def fabric_of(
    topology: TopologyFile, switch: SwitchParameters | None = None, host: AdapterParameters | None = None
) -> SubnetFabric:
    """The fabric to build; `switch` and `host` are the nodes' parameters, but for a switch's number of ports.

    Raises:
        TopologyError: nodes or links that Ironband does not have.
    """
    switch, host = switch or SwitchParameters(), host or AdapterParameters()
    subnet = topology.subnet
    names = _names(topology)
    nodes: dict[str, NodeParameters] = {}
    identities: dict[str, NodeIdentity] = {}
    for node in sorted(subnet.nodes.values(), key=lambda node: not node.is_switch):
        parameters = _switch(topology, node, switch) if node.is_switch else host
        for number in node.end_ports:
            name, _port = _end(names, node, number)
            nodes[name], identities[name] = parameters, _identity(topology, node, number)
    links = []
    for link in subnet.links:
        a, b = (_end(names, subnet.nodes[end.guid], end.port) for end in (link.a, link.b))
        links.append(LinkParameters(*a, *b))
    fabric = FabricParameters(nodes, tuple(links), identities)
    return SubnetFabric(fabric, names, tuple(built_width(link.width) for link in subnet.links))


def out_of_reach(fabric: FabricParameters, host: str) -> list[str]:
    """Names of the nodes that a host is not connected with, in the fabric's order.

    A port without a link is none of them if its adapter has another port that is in reach.
    """
    near = neighbours(fabric)
    reach = hops_to(host, fabric, near)
    met = {adapter_port(name)[0] for name in reach}
    return [name for name in fabric.nodes if name not in reach and (near[name] or adapter_port(name)[0] not in met)]


def _end(names: dict[int, str], node: Node, number: int) -> tuple[str, int]:
    """The node of the fabric, and its port, that a port of a node is."""
    name = names[node.guid]
    return (name, number) if node.is_switch or node.ports == 1 else (adapter_port_name(name, number), 1)


def _switch(topology: TopologyFile, node: Node, switch: SwitchParameters) -> SwitchParameters:
    try:
        return replace(switch, ports=node.ports)
    except ValueError as wrong:
        raise _error(topology, node, f"cannot be built: {wrong}") from None


def _identity(topology: TopologyFile, node: Node, number: int) -> NodeIdentity:
    guid = node.end_ports[number].guid
    try:
        if number == MANAGEMENT_PORT:
            return NodeIdentity(node.guid, guid, node.description)
        kind: Literal[NodeType.CA, NodeType.ROUTER] = NodeType.ROUTER if node.type is NodeType.ROUTER else NodeType.CA
        return NodeIdentity(node.guid, guid, node.description, node.ports, number, kind)
    except ValueError as wrong:
        raise _error(topology, node, f"cannot be built: {wrong}") from None


def _error(topology: TopologyFile, node: Node, reason: str) -> TopologyError:
    return topology.places[node.guid].error(f'"{topology.ids[node.guid]}" {reason}')


def _names(topology: TopologyFile) -> dict[int, str]:
    """A name for each node: its description if no other node has it, else its id in the file, in plain characters."""
    descriptions = Counter(node.description for node in topology.subnet.nodes.values())
    names: dict[int, str] = {}
    used: set[str] = set()
    for guid, node in topology.subnet.nodes.items():
        called = node.description if descriptions[node.description] == 1 else topology.ids[guid]
        plain = re.sub(r"[^A-Za-z0-9_]", "_", called)
        plain = (plain if plain[:1].isalpha() else f"N{plain}")[:_MAX_NAME]
        name, number = plain, 1
        while name in used:
            number += 1
            name = f"{plain[: _MAX_NAME - 1 - len(str(number))]}_{number}"
        used.add(name)
        names[guid] = name
    return names
