"""What a node or a fabric is built with. RTL and golden model are made from the same record.

Every illegal combination raises ValueError naming the parameter, its value and what is allowed.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from .codes import DATA_VL_COUNTS, MTU, max_pkt_len, mtu_bytes, mtu_code
from .forwarding_tables import MULTICAST_FORWARDING_TABLE
from .node_info import NodeType, node_description
from .packet import blocks_of_words

__all__ = [
    "MAX_BLOCKS",
    "MAX_FLIGHT",
    "MAX_PORTS",
    "VL15_BLOCKS",
    "AdapterParameters",
    "FabricParameters",
    "LinkParameters",
    "NodeIdentity",
    "NodeParameters",
    "SwitchParameters",
    "adapter_port",
    "adapter_port_name",
    "largest_blocks",
    "node_text",
    "port_text",
    "reset_cycles",
    "slots_of",
    "vl_arbitration_entries",
]

_MTUS = tuple(mtu_bytes(code) for code in MTU)
_MFT_BLOCK = MULTICAST_FORWARDING_TABLE.count

MAX_BLOCKS: Final = 4095
"""Of a VL's buffer."""

MAX_FLIGHT: Final = 65_536
"""Cycles: beyond where a VL at 1X has all credits outstanding that it can have (52 km, at SDR)."""

MAX_PORTS: Final = 64
"""Of a node."""

VL15_BLOCKS: Final = 30
"""Blocks of buffer for VL15 at each port, if nothing else is said: room for six SMPs, a seventh is with the agent.

A Subnet Manager keeps several outstanding, OpenSM four, may ask them all of one node, and VL15 has no credits."""


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} {value!r}: expected one of {', '.join(map(repr, allowed))}")


def _between(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} {value}: expected {low}..{high}")


def largest_blocks(mtu: int) -> int:
    """Blocks of the largest packet that an MTU allows: the smallest buffer that there can be."""
    return blocks_of_words(max_pkt_len(mtu_code(mtu)))


def _buffer(name: str, blocks: int, mtu: int) -> None:
    _between(name, blocks, largest_blocks(mtu), MAX_BLOCKS)


@dataclass(frozen=True, slots=True)
class SwitchParameters:
    """A switch: external ports 1..`ports`, one input buffer a VL at each."""

    ports: int = 8
    vls: int = 1
    mtu: int = 2048
    buffer_blocks: int = 512
    """64-byte blocks of buffer for each data VL of each port."""
    vl15_blocks: int = VL15_BLOCKS
    queueing: Literal["voq", "fifo"] = "voq"
    forwarding: Literal["cut-through", "store-and-forward"] = "cut-through"
    """Whether a packet may leave while it still arrives, or has to be there as a whole, and good."""
    readers: int = 2
    """Packets that one input can send at once (`voq`; `fifo` has one)."""
    lft_size: int = 1024
    mft_size: int = 256
    """Multicast LIDs that the multicast forwarding table holds."""

    def __post_init__(self) -> None:
        _between("ports", self.ports, 2, MAX_PORTS)
        _one_of("vls", self.vls, DATA_VL_COUNTS)
        _one_of("mtu", self.mtu, _MTUS)
        _one_of("queueing", self.queueing, ("voq", "fifo"))
        _one_of("forwarding", self.forwarding, ("cut-through", "store-and-forward"))
        _buffer("buffer_blocks", self.buffer_blocks, self.mtu)
        _between("vl15_blocks", self.vl15_blocks, largest_blocks(256), 255)
        _between("readers", self.readers, 1, 2)
        _between("lft_size", self.lft_size, 2, 0xC000)
        _between("mft_size", self.mft_size, _MFT_BLOCK, 0x3FE0)
        if self.mft_size % _MFT_BLOCK:
            raise ValueError(f"mft_size {self.mft_size}: expected a multiple of {_MFT_BLOCK}")
        if self.queueing == "fifo" and self.readers != 1:
            raise ValueError(f"readers {self.readers}: expected 1 with queueing 'fifo'")


@dataclass(frozen=True, slots=True)
class AdapterParameters:
    """A port of a channel adapter and the packet interface behind it; most adapters have one."""

    vls: int = 1
    mtu: int = 2048
    receive_blocks: int = 512
    send_blocks: int = 128
    vl15_blocks: int = VL15_BLOCKS

    def __post_init__(self) -> None:
        _one_of("vls", self.vls, DATA_VL_COUNTS)
        _one_of("mtu", self.mtu, _MTUS)
        _buffer("receive_blocks", self.receive_blocks, self.mtu)
        _buffer("send_blocks", self.send_blocks, self.mtu)
        _between("vl15_blocks", self.vl15_blocks, largest_blocks(256), 255)


NodeParameters = SwitchParameters | AdapterParameters


def reset_cycles(node: NodeParameters) -> int:
    """How long a RESET of the node lasts: no shorter than its deepest memory, nor than a packet of its host."""
    if isinstance(node, AdapterParameters):
        return 2048 + node.vls * max(node.receive_blocks, node.send_blocks) + node.vl15_blocks
    ports = node.ports + 1
    lids, groups = (1 << (entries - 1).bit_length() for entries in (node.lft_size, node.mft_size))
    tables = lids + groups * -(-ports // 16) + 2 * ports * (ports + 32)
    return 256 + node.vls * node.buffer_blocks + node.vl15_blocks + tables


_GUID_MAX = (1 << 64) - 1
_FIRST_GUID = 0x001B_0000_0000_0000
_GUIDS_PER_NODE = 0x100

_PORT_SIGN: Final = "."


def adapter_port_name(adapter: str, port: int) -> str:
    """What a port of an adapter that has several is called among a fabric's nodes."""
    return f"{adapter}{_PORT_SIGN}{port}"


def adapter_port(name: str) -> tuple[str, int]:
    """Of a node of a fabric, the adapter and which of its ports it is; 0: the name is that of a whole node."""
    adapter, _sign, port = name.partition(_PORT_SIGN)
    return adapter, int(port or 0)


def node_text(name: str) -> str:
    """What people call a node of a fabric: `H[2]` if it is port 2 of an adapter that has several."""
    adapter, port = adapter_port(name)
    return f"{adapter}[{port}]" if port else adapter


def port_text(name: str, number: int) -> str:
    """What people call a port of a node of a fabric."""
    adapter, port = adapter_port(name)
    return f"{adapter}[{port or number}]"


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """What distinguishes identical nodes. SystemImageGUID is NodeGUID.

    Ports of one adapter have all but `port_guid` and `port` in common. A switch has `ports`, `port` and `type` of its
    own.
    """

    node_guid: int
    port_guid: int
    """PortGUID of an adapter's port, and of a switch's port 0."""
    description: str
    """Up to 64 bytes of UTF-8."""
    ports: int = 1
    """How many an adapter has."""
    port: int = 1
    """Which of them it is."""
    type: Literal[NodeType.CA, NodeType.ROUTER] = NodeType.CA
    """What an adapter says that it is."""

    def __post_init__(self) -> None:
        _between("node_guid", self.node_guid, 1, _GUID_MAX)
        _between("port_guid", self.port_guid, 1, _GUID_MAX)
        node_description(self.description)
        _between("ports", self.ports, 1, MAX_PORTS)
        _between("port", self.port, 1, self.ports)
        _one_of("type", self.type, (NodeType.CA, NodeType.ROUTER))


@dataclass(frozen=True, slots=True)
class LinkParameters:
    """A cable between two ports. Direction 0 is from `a` to `b`."""

    a: str
    a_port: int
    b: str
    b_port: int
    flight: int = 1
    """Flight time in cycles, the same in both directions, up to MAX_FLIGHT."""


@dataclass(frozen=True, slots=True)
class FabricParameters:
    """Nodes by name, in order (a node's index is its place), and links.

    Of an adapter with several ports each is a node, which has one port: `adapter_port_name`. A port may have no link,
    and is down then. Link widths are registers of the ports, not parameters.
    """

    nodes: dict[str, NodeParameters] = field(default_factory=dict)
    links: tuple[LinkParameters, ...] = ()
    identities: dict[str, NodeIdentity] = field(default_factory=dict)
    """By node name; `identity` gives the others one by their place."""
    open_ports: tuple[tuple[str, int], ...] = ()
    """Node name and port of links that lead to something outside."""

    def __post_init__(self) -> None:
        used: set[tuple[str, int]] = set()
        ends = list(self.open_ports)
        for link in self.links:
            near, far = port_text(link.a, link.a_port), port_text(link.b, link.b_port)
            _between(f"flight of link {near}-{far}", link.flight, 1, MAX_FLIGHT)
            ends += [(link.a, link.a_port), (link.b, link.b_port)]
        for name, port in ends:
            if name not in self.nodes:
                raise ValueError(f"link to {name}[{port}]: no such node; there are {', '.join(self.nodes)}")
            _between(f"port of {name} in a link", port, 1, self.port_count(self.nodes[name]))
            if (name, port) in used:
                raise ValueError(f"port {port_text(name, port)} is used by two links: expected one")
            used.add((name, port))
        for name in self.identities:
            if name not in self.nodes:
                raise ValueError(f"identity of {name}: no such node; there are {', '.join(self.nodes)}")

    def identity(self, name: str) -> NodeIdentity:
        """What node `name` is called by management."""
        if name in self.identities:
            return self.identities[name]
        adapter, port = adapter_port(name)
        own = [index for index, other in enumerate(self.nodes) if adapter_port(other)[0] == adapter]
        node_guid = _FIRST_GUID + _GUIDS_PER_NODE * (1 + own[0])
        if isinstance(self.nodes[name], SwitchParameters):
            return NodeIdentity(node_guid, node_guid, name)
        return NodeIdentity(node_guid, node_guid + (port or 1), adapter, len(own), port or 1)

    def port_number(self, name: str, port: int) -> int:
        """What management calls a port of a node: on directed routes, in PortInfo and in NodeInfo."""
        return port if isinstance(self.nodes[name], SwitchParameters) else self.identity(name).port

    @staticmethod
    def port_count(node: NodeParameters) -> int:
        """External ports of a node."""
        return node.ports if isinstance(node, SwitchParameters) else 1


def slots_of(adapter: AdapterParameters) -> int:
    """Slots of an adapter: one for each data VL, then VL15's."""
    return adapter.vls + 1


def vl_arbitration_entries(vls: int) -> int:
    """Entries of each of a port's two VL arbitration lists; a port with one data VL has none (IBTA vol 1, 7.6.9)."""
    if vls == 1:
        return 0
    return 8 if vls <= 4 else 16
