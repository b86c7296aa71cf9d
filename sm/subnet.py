"""What a Subnet Manager knows of a subnet: its nodes, their ports, and which ports are linked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntFlag
from typing import NamedTuple

from wire.codes import LID_RESERVED, LinkWidth
from wire.node_info import NodeType

__all__ = ["MANAGEMENT_PORT", "MAX_PORTS", "End", "EndPort", "Link", "Node", "Speed", "Subnet", "SubnetError"]

MANAGEMENT_PORT = 0
"""The port of a switch behind which its management agents are (IBTA vol 1, 18.2.4.1)."""

MAX_PORTS = 254
"""Most external ports of a node: 255 in a forwarding table says that there is no route (IBTA vol 1, 14.2.5.10)."""


class SubnetError(ValueError):
    """An impossible subnet; the text is one line."""


class Speed(IntFlag):
    """Of a lane, the slowest first: LinkSpeedActive's bits, FDR10, which is a vendor's, then LinkSpeedExtActive's, four
    places up (IBTA vol 1, 14.2.5.6)."""

    SDR = 1
    DDR = 2
    QDR = 4
    FDR10 = 8
    FDR = 16
    EDR = 32
    HDR = 64
    NDR = 128
    XDR = 512


class End(NamedTuple):
    """A port of a node: the node's GUID and the port's number."""

    guid: int
    port: int

    def __str__(self) -> str:
        return f"0x{self.guid:016x}[{self.port}]"


@dataclass(slots=True)
class EndPort:
    """A port that has LIDs: port 0 of a switch, any port of another node (IBTA vol 1, 4.1.3)."""

    guid: int
    """PortGUID."""
    lid: int = LID_RESERVED
    """Base LID; 0 while it has none."""
    lmc: int = 0
    """The port answers to 2^lmc LIDs."""


@dataclass(slots=True)
class Node:
    """A node, as its NodeInfo and NodeDescription describe it."""

    guid: int
    type: NodeType
    ports: int
    """External ports, 1..ports."""
    end_ports: dict[int, EndPort]
    """By port number."""
    description: str = ""
    enhanced_port_0: bool = False
    """Whether a switch's port 0 is an enhanced one, which may have an LMC (SwitchInfo.EnhancedPort0)."""
    vendor_id: int = 0
    device_id: int = 0
    system_image_guid: int = 0

    @property
    def is_switch(self) -> bool:
        """Whether it relays packets."""
        return self.type is NodeType.SWITCH


@dataclass(frozen=True, slots=True)
class Link:
    """A link that is up, with its active width and speed; `a` is the lower of its ends."""

    a: End
    b: End
    width: LinkWidth = LinkWidth.X4
    speed: Speed = Speed.SDR


@dataclass
class Subnet:
    """Nodes and links. Two are equal if they have the same nodes, ports and links, in whatever order.

    Parallel links, and links between two ports of one switch, are ordinary links.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    """By GUID, in the order in which they were found."""
    _links: dict[End, Link] = field(default_factory=dict)
    """By either end."""

    def add(self, node: Node) -> None:
        """Adds a node.

        Raises:
            SubnetError: there is a node of that GUID, or it has no or too many ports.
        """
        if node.guid in self.nodes:
            raise SubnetError(f"GUID 0x{node.guid:016x} belongs to two nodes, expected one")
        if not 1 <= node.ports <= MAX_PORTS:
            raise SubnetError(f"node 0x{node.guid:016x} has {node.ports} ports, expected 1..{MAX_PORTS}")
        self.nodes[node.guid] = node

    def remove(self, guid: int) -> None:
        """Forgets a node and its links."""
        for link in {self._links[End(guid, port)] for port, _far in self.neighbours(guid)}:
            self.disconnect(link.a)
        del self.nodes[guid]

    def connect(self, one: End, other: End, width: LinkWidth = LinkWidth.X4, speed: Speed = Speed.SDR) -> Link:
        """Links two ports.

        Raises:
            SubnetError: no such node or port, a port that is linked already, or a port linked to itself.
        """
        for end in (one, other):
            node = self.nodes.get(end.guid)
            if node is None:
                raise SubnetError(f"link of {end}: there is no such node")
            if not 1 <= end.port <= node.ports:
                raise SubnetError(f"link of {end}: expected a port of 1..{node.ports}")
            if end in self._links:
                raise SubnetError(f"port {end} is in two links, expected one")
        if one == other:
            raise SubnetError(f"port {one} is linked to itself, expected another port")
        link = Link(min(one, other), max(one, other), width, speed)
        self._links[one] = self._links[other] = link
        return link

    def disconnect(self, end: End) -> None:
        """Removes the link at a port, at both its ends."""
        link = self._links.pop(end)
        del self._links[link.b if end == link.a else link.a]

    def without(self, link: Link) -> Subnet:
        """The same subnet without one link."""
        links = {end: other for end, other in self._links.items() if other != link}
        return Subnet(dict(self.nodes), links)

    def link(self, end: End) -> Link | None:
        """The link at a port, if there is one."""
        return self._links.get(end)

    def peer(self, end: End) -> End | None:
        """The port at the far end of the link at `end`."""
        link = self._links.get(end)
        if link is None:
            return None
        return link.b if end == link.a else link.a

    def neighbours(self, guid: int) -> Iterator[tuple[int, End]]:
        """Each linked port of a node, ascending, with the port at the far end."""
        for port in range(1, self.nodes[guid].ports + 1):
            far = self.peer(End(guid, port))
            if far is not None:
                yield port, far

    @property
    def links(self) -> list[Link]:
        """Every link once, in the order of their lower ends."""
        return [link for end, link in sorted(self._links.items(), key=lambda item: item[0]) if end == link.a]

    @property
    def switches(self) -> list[Node]:
        """The switches, in the order of `nodes`."""
        return [node for node in self.nodes.values() if node.is_switch]

    @property
    def reachable_end_ports(self) -> Iterator[tuple[End, EndPort]]:
        """The ports that take part: port 0 of each switch, and linked ports of other nodes."""
        for node in self.nodes.values():
            for number, port in node.end_ports.items():
                end = End(node.guid, number)
                if node.is_switch or end in self._links:
                    yield end, port
