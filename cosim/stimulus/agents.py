"""Where the agents of a fabric's nodes are: their LIDs, the routes to those of switches, and directed routes."""

from __future__ import annotations

from random import Random
from typing import Final

from cosim.topology.topology import Port, Topology, hops_to, neighbours
from wire.parameters import SwitchParameters

__all__ = ["agent_lid", "agent_lids", "agent_routes", "random_path", "switches_behind"]

_HOPS: Final = (0, 1, 1, 1, 2, 2, 2, 3, 5)
"""Of directed routes at random; a route ends at the first adapter."""


def agent_lid(topology: Topology, switch: str) -> int:
    """A LID that no host has: that of this switch, if it gets one."""
    return topology.lid_top + 1 + topology.index[switch]


def agent_lids(topology: Topology) -> dict[str, int]:
    """By node the LID at which its agent is, of all hosts and switches."""
    nodes = topology.fabric.nodes
    switches = (name for name, node in nodes.items() if isinstance(node, SwitchParameters))
    return {**topology.lids, **{name: agent_lid(topology, name) for name in switches}}


def agent_routes(topology: Topology, switch: str) -> dict[int, int]:
    """By LID of a switch the port by which SWITCH sends what is for its agent; its own is at port 0."""
    near = neighbours(topology.fabric)
    routes = {agent_lid(topology, switch): 0}
    for name, lid in agent_lids(topology).items():
        hops = hops_to(name, topology.fabric, near)
        if name not in topology.lids and name != switch and switch in hops:
            routes[lid] = min(port for port, other in near[switch] if hops.get(other, hops[switch]) < hops[switch])
    return routes


def switches_behind(topology: Topology) -> dict[str, str]:
    """By host the switch that it is linked with, where that is one."""
    far_ends = ((host, topology.far_end(Port(host, 1))) for host in topology.lids)
    nodes = topology.fabric.nodes
    return {host: far.node for host, far in far_ends if far and isinstance(nodes[far.node], SwitchParameters)}


def random_path(topology: Topology, random: Random, host: str, *, to_switch: bool = False) -> tuple[list[int], str]:
    """The ports of a directed route from a host along links, and the node where it ends."""
    path: list[int] = []
    here, fabric = host, topology.fabric
    for _ in range(random.choice(_HOPS)):
        linked = (port for port in topology.linked_ports() if port.node == here)
        ways = [(port, far.node) for port in linked if (far := topology.far_end(port))]
        if to_switch:
            ways = [(port, far) for port, far in ways if isinstance(fabric.nodes[far], SwitchParameters)]
        if not ways or (path and not isinstance(fabric.nodes[here], SwitchParameters)):
            break
        port, here = random.choice(ways)
        path.append(fabric.port_number(port.node, port.number))
    return path, here
