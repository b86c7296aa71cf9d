"""Fat trees of two levels, for figures and for tests."""

from __future__ import annotations

from sm.subnet import End, EndPort, Node, Subnet
from wire.node_info import NodeType

__all__ = ["HOST_GUID", "SWITCH_GUID", "add_host", "add_switch", "fat_tree"]

SWITCH_GUID = 0x200000
HOST_GUID = 0x100000
"""Of the first of a subnet; the PortGUIDs of a host follow its NodeGUID."""

_HOST_GUIDS = 4
"""Of each host."""


def add_switch(subnet: Subnet, ports: int) -> int:
    """Add a switch; returns its GUID, the next after the switches that are there."""
    guid = SWITCH_GUID + len(subnet.switches)
    subnet.add(Node(guid, NodeType.SWITCH, ports, {0: EndPort(guid)}))
    return guid


def add_host(subnet: Subnet, ports: int = 1) -> int:
    """Add a host; returns its GUID, the next after the hosts that are there."""
    guid = HOST_GUID + _HOST_GUIDS * (len(subnet.nodes) - len(subnet.switches))
    subnet.add(Node(guid, NodeType.CA, ports, {number: EndPort(guid + number) for number in range(1, ports + 1)}))
    return guid


def fat_tree(leaves: int, spines: int, hosts: int, parallel: int = 1) -> Subnet:
    """Leaves with `hosts` each at their first ports, and `parallel` links from each leaf to each spine."""
    subnet = Subnet()
    leaf_guids = [add_switch(subnet, hosts + spines * parallel) for _ in range(leaves)]
    spine_guids = [add_switch(subnet, leaves * parallel) for _ in range(spines)]
    for below, leaf in enumerate(leaf_guids):
        for port in range(1, 1 + hosts):
            subnet.connect(End(leaf, port), End(add_host(subnet), 1))
        for above, spine in enumerate(spine_guids):
            for cable in range(1, 1 + parallel):
                subnet.connect(End(leaf, hosts + above * parallel + cable), End(spine, below * parallel + cable))
    return subnet
