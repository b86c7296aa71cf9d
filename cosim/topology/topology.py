"""What joins what: neighbours, widths, VLs and MTU of each link, shortest paths, forwarding tables."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from cosim.topology.multicast_tables import multicast_tables
from wire.codes import LinkWidth
from wire.parameters import (
    AdapterParameters,
    FabricParameters,
    SwitchParameters,
    adapter_port_name,
    node_text,
    port_text,
)
from wire.trace import port_source
from wire.vl_arbitration import VlArbitration

__all__ = [
    "Port",
    "Topology",
    "forwarding_tables",
    "hops_to",
    "is_end",
    "named",
    "neighbours",
    "no_such_node",
    "parse_end",
    "port_named",
]

_MANY_NAMES = 12

_END = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,30})(?:\[([0-9]{1,3})\])?")


class Port(NamedTuple):
    """A port of a node, by name."""

    node: str
    number: int

    def __str__(self) -> str:
        return port_text(self.node, self.number)


def named(nodes: Container[str], name: str, number: int | None) -> tuple[str, int | None]:
    """The node of a fabric, and the port of it, that people call by a name and a number.

    Of an adapter with several ports each is a node. Without a number it is the first.
    """
    of_adapter = adapter_port_name(name, 1 if number is None else number)
    return (of_adapter, 1) if of_adapter in nodes else (name, number)


def is_end(text: str) -> bool:
    """Whether a text is `NODE` or `NODE[PORT]`."""
    return _END.fullmatch(text) is not None


def parse_end(text: str) -> tuple[str, int | None]:
    """Node name and port number (None if not given) of `NODE` or `NODE[PORT]`.

    Raises:
        ValueError: not written so.
    """
    match = _END.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r}: expected NODE or NODE[PORT]")
    return match[1], int(match[2]) if match[2] else None


def no_such_node(fabric: FabricParameters, text: str) -> str:
    """What is wrong with a text that names none, and the first of many that there are."""
    known = list(map(node_text, fabric.nodes))
    rest = ", ..." if len(known) > _MANY_NAMES else ""
    return f"{text}: no such node; there are {', '.join(known[:_MANY_NAMES])}{rest}"


def port_named(fabric: FabricParameters, text: str) -> Port:
    """The port that people call `NODE[PORT]` or `HOST`.

    Raises:
        ValueError: there is none, in a line that says what there is.
    """
    name, number = named(fabric.nodes, *parse_end(text))
    if name not in fabric.nodes:
        raise ValueError(no_such_node(fabric, text))
    node = fabric.nodes[name]
    if number is None and not isinstance(node, AdapterParameters):
        raise ValueError(f"{name}: is a switch, expected {name}[PORT]")
    number = 1 if number is None else number
    if not 1 <= number <= fabric.port_count(node):
        raise ValueError(f"{text}: expected port 1..{fabric.port_count(node)}")
    return Port(name, number)


def forwarding_tables(
    fabric: FabricParameters, lids: Mapping[str, int], lmcs: Mapping[str, int] | None = None
) -> dict[str, dict[int, int]]:
    """Minimum-hop linear forwarding tables: switch name to LID to output port. LMCS of hosts that have one are given.

    Among equally short paths a switch takes the port that has the fewest LIDs so far, then the lowest.
    A LID that cannot be reached has no entry.
    """
    near = neighbours(fabric)
    tables: dict[str, dict[int, int]] = {
        name: {} for name, node in fabric.nodes.items() if isinstance(node, SwitchParameters)
    }
    load = {(name, port): 0 for name in tables for port, _ in near[name]}
    for host, lid in lids.items():
        hops = hops_to(host, fabric, near)
        for switch, table in tables.items():
            if switch not in hops:
                continue
            nearer = [port for port, other in near[switch] if hops.get(other, hops[switch]) < hops[switch]]
            for one in range(lid, lid + (1 << (lmcs or {}).get(host, 0))):
                port = min(nearer, key=lambda port: (load[switch, port], port))
                load[switch, port] += 1
                table[one] = port
    return tables


def neighbours(fabric: FabricParameters) -> dict[str, list[tuple[int, str]]]:
    """Of each node the linked ports, each with the node at the far end."""
    near: dict[str, list[tuple[int, str]]] = {name: [] for name in fabric.nodes}
    for link in fabric.links:
        near[link.a].append((link.a_port, link.b))
        near[link.b].append((link.b_port, link.a))
    return near


def hops_to(host: str, fabric: FabricParameters, near: dict[str, list[tuple[int, str]]]) -> dict[str, int]:
    """Hops to `host` from each node that reaches it; other hosts relay nothing. `near` are the `neighbours`."""
    hops = {host: 0}
    queue = deque([host])
    while queue:
        node = queue.popleft()
        for _, other in near[node]:
            if other not in hops:
                hops[other] = hops[node] + 1
                if isinstance(fabric.nodes[other], SwitchParameters):
                    queue.append(other)
    return hops


@dataclass(frozen=True)
class Topology:
    """A fabric as configured: what bring-up writes and what the story looks up."""

    fabric: FabricParameters
    lids: dict[str, int]
    tables: dict[str, dict[int, int]]
    """Switch name to LID to output port."""
    widths: tuple[int, ...]
    """Width code of each link."""
    sl_to_vl: tuple[int, ...]
    vl_arbitration: VlArbitration | None = None
    """What each port with more than one data VL holds; as at reset if not given."""
    p_keys: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """P_Keys of each host, by which the switch port that it is at checks packets; one that is not in it checks none."""
    groups: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Hosts that are members of a multicast group, by its LID."""
    lmcs: Mapping[str, int] = field(default_factory=dict)
    """LMC of each host that has one: it has 2^LMC LIDs, of which `lids` has the first."""
    vls_at: Mapping[tuple[str, int, int], tuple[int, ...]] = field(default_factory=dict)
    """VL by SL for (switch, input, output), where it is not what `sl_to_vl` says."""

    @cached_property
    def multicast_tables(self) -> dict[str, dict[int, tuple[int, ...]]]:
        """Switch name to LID of a group to the ports of its tree."""
        return multicast_tables(self.fabric, self.groups)

    @cached_property
    def index(self) -> dict[str, int]:
        """Index of each node in the fabric."""
        return {name: index for index, name in enumerate(self.fabric.nodes)}

    def source(self, port: Port) -> int:
        """Source number of the port's records in the trace."""
        return port_source(self.index[port.node], port.number)

    def link_at(self, port: Port) -> tuple[int, int] | None:
        """Link index and the direction away from `port`; None if nothing is plugged in."""
        return self._plugs.get(port)

    @cached_property
    def _plugs(self) -> dict[Port, tuple[int, int]]:
        plugs = {}
        for index, link in enumerate(self.fabric.links):
            plugs[Port(link.a, link.a_port)] = index, 0
            plugs[Port(link.b, link.b_port)] = index, 1
        return plugs

    def far_end(self, port: Port) -> Port | None:
        """The port at the other end of the cable."""
        found = self.link_at(port)
        if found is None:
            return None
        link = self.fabric.links[found[0]]
        return Port(link.b, link.b_port) if found[1] == 0 else Port(link.a, link.a_port)

    def linked_ports(self) -> list[Port]:
        """Both ends of every link, by link."""
        return list(self._plugs)

    def pace(self, port: Port) -> int:
        """Cycles a row: 1 on a 4X link, 4 on a 1X one."""
        return 4 if self.widths[self._link(port)] == LinkWidth.X1 else 1

    def flight(self, port: Port) -> int:
        """Flight time of the port's cable in cycles."""
        return self.fabric.links[self._link(port)].flight

    def vls(self, port: Port) -> int:
        """Data VLs of the port's link: what both ends have."""
        return min(node.vls for node in self._ends(port))

    def mtu(self, port: Port) -> int:
        """MTU in bytes of the port's link: what both ends take."""
        return min(node.mtu for node in self._ends(port))

    def vl(self, port: Port, sl: int, into: int = 0) -> int:
        """VL on which packets of an SL leave by `port`, which a switch got by its port INTO."""
        table = self.vls_at.get((port.node, into, port.number))
        return self.sl_to_vl[sl] % self.vls(port) if table is None else table[sl]

    def lids_of(self, host: str) -> range:
        """All LIDs of a host."""
        return range(self.lids[host], self.lids[host] + (1 << self.lmcs.get(host, 0)))

    @property
    def lid_top(self) -> int:
        """The highest LID that a host has."""
        return max(lids[-1] for lids in map(self.lids_of, self.lids))

    def path(self, source: str, destination: str, lid: int | None = None) -> list[Port] | None:
        """The ports by which a packet to a host leaves each node, by its first LID or another; None without a way."""
        here = Port(source, 1)
        path = [here]
        while (far := self.far_end(here)) is not None:
            if far.node == destination:
                return path
            out = self.tables.get(far.node, {}).get(self.lids[destination] if lid is None else lid)
            if out is None or len(path) > len(self.tables):
                return None
            here = Port(far.node, out)
            path.append(here)
        return None

    @cached_property
    def has_one_hop(self) -> bool:
        """No link joins two switches, or one to itself: else packets to a group might multiply in a circle."""
        return not any(link.a in self.tables and link.b in self.tables for link in self.fabric.links)

    def group_path(self, source: str, mlid: int, host: str) -> list[Port] | None:
        """The ports by which a multicast packet leaves each node on its path to a host; None if its tree has none."""
        paths = deque([[Port(source, 1)]])
        while paths:
            path = paths.popleft()
            far = self.far_end(path[-1])
            if far is None or far.node == host:
                return None if far is None else path
            outs = self.multicast_tables.get(far.node, {}).get(mlid, ())
            paths += [[*path, Port(far.node, out)] for out in outs if out != far.number]
        return None

    def final_vl(self, path: Sequence[Port], sl: int) -> int:
        """VL on which packets of an SL reach the end of a path."""
        into = self.far_end(path[-2]) if len(path) > 1 else None
        return self.vl(path[-1], sl, 0 if into is None else into.number)

    def receive_blocks(self, port: Port) -> int:
        """Buffer in 64-byte blocks of each data VL behind `port`."""
        node = self.fabric.nodes[port.node]
        return node.receive_blocks if isinstance(node, AdapterParameters) else node.buffer_blocks

    def _link(self, port: Port) -> int:
        found = self.link_at(port)
        if found is None:
            raise ValueError(f"port {port}: has no link")
        return found[0]

    def _ends(self, port: Port) -> tuple[SwitchParameters | AdapterParameters, ...]:
        link = self.fabric.links[self._link(port)]
        return self.fabric.nodes[link.a], self.fabric.nodes[link.b]
