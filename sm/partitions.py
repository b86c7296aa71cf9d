"""Partitions: which end ports are members of which, and with what right (IBTA vol 1, 10.9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntFlag
from typing import Final

from sm.discovery import Findings
from sm.errors import ManagerError
from sm.subnet import End
from wire.codes import P_KEY_DEFAULT
from wire.layout import Record
from wire.node_info import NodeType

__all__ = [
    "DEFAULT_PARTITION",
    "DEFAULT_PARTITION_NAME",
    "FULL_MEMBER",
    "P_KEY_BASE",
    "EndPorts",
    "Enforcement",
    "Membership",
    "PartitionError",
    "Partitions",
    "PortPartitions",
    "by_partition",
    "enforced",
    "in_opensm_order",
    "partitions_of_ports",
    "share_partition",
]

FULL_MEMBER: Final = 0x8000
"""The bit of a P_Key that says that who has it is a full member; two limited members do not hear each other."""
P_KEY_BASE: Final = 0x7FFF
"""The bits of a P_Key that name the partition."""
DEFAULT_PARTITION: Final = P_KEY_DEFAULT & P_KEY_BASE
DEFAULT_PARTITION_NAME: Final = "Default"


class PartitionError(ManagerError):
    """Partitions that ports cannot hold; the text is one line."""


class Enforcement(IntFlag):
    """What switch ports that end ports are behind check: P_Keys of packets that come in, of those that go out."""

    OFF = 0
    IN = 1
    OUT = 2
    BOTH = 3


def enforced(info: Record) -> Enforcement:
    """What a switch port checks, as its PortInfo says."""
    return Enforcement(
        Enforcement.IN * info.partition_enforcement_inbound | Enforcement.OUT * info.partition_enforcement_outbound
    )


class EndPorts(Enum):
    """Many end ports under one name."""

    ALL = "ALL"
    ALL_CAS = "ALL_CAS"
    ALL_SWITCHES = "ALL_SWITCHES"
    ALL_ROUTERS = "ALL_ROUTERS"
    SELF = "SELF"
    """The Subnet Manager's own."""


_TYPES: Final = {
    EndPorts.ALL_CAS: NodeType.CA,
    EndPorts.ALL_SWITCHES: NodeType.SWITCH,
    EndPorts.ALL_ROUTERS: NodeType.ROUTER,
}


@dataclass(frozen=True)
class Membership:
    """Some end ports become members of a partition; what was said of them in it before counts no longer."""

    partition: int
    """Its P_Key without the bit of full members."""
    who: EndPorts | int
    """An integer is a PortGUID."""
    is_full: bool
    is_first: bool = False
    """Whether its P_Key has index 0 in their tables, in place of the default partition's."""


@dataclass(frozen=True)
class Partitions:
    """Partitions of a subnet."""

    memberships: tuple[Membership, ...]
    """In the order in which they are said."""
    names: Mapping[int, str] = field(default_factory=lambda: {DEFAULT_PARTITION: DEFAULT_PARTITION_NAME})
    """By P_Key without the bit of full members."""
    groups: tuple[Record, ...] = ()
    """MCMemberRecords of the multicast groups that there are from the start, without MLID and PacketLifeTime."""
    service_levels: Mapping[int, int] = field(default_factory=dict)
    """SLs of the paths in partitions, by P_Key without the bit of full members; of others it is 0."""


@dataclass
class PortPartitions:
    """The partitions of one end port."""

    is_full: dict[int, bool] = field(default_factory=dict)
    """By P_Key without the bit of full members."""
    first: int = DEFAULT_PARTITION
    """Whose P_Key has index 0."""

    @property
    def p_keys(self) -> list[int]:
        """The port's P_Keys, in the order in which they are given out."""
        return [base | FULL_MEMBER * self.is_full[base] for base in in_opensm_order(self.is_full)]

    def within(self, room: int) -> PortPartitions:
        """As many of them as there is room for: that with index 0, the default partition, and others in their order."""
        order = sorted(in_opensm_order(self.is_full), key=lambda base: (base != self.first, base != DEFAULT_PARTITION))
        return PortPartitions({base: self.is_full[base] for base in order[:room]}, self.first)


def partitions_of_ports(partitions: Partitions, found: Findings) -> dict[End, PortPartitions]:
    """The partitions of each end port that takes part."""
    by_guid = {port.guid: end for end, port in found.subnet.reachable_end_ports}
    result = {end: PortPartitions() for end in by_guid.values()}
    for one in partitions.memberships:
        if isinstance(one.who, EndPorts):
            ends = [end for end in result if _is_meant(one.who, end, found)]
        else:
            ends = [by_guid[one.who]] if one.who in by_guid else []
        for end in ends:
            of_port = result[end]
            of_port.is_full[one.partition] = one.is_full
            if one.is_first:
                of_port.first = one.partition
            elif of_port.first == one.partition:
                of_port.first = DEFAULT_PARTITION
    return result


def _is_meant(who: EndPorts, end: End, found: Findings) -> bool:
    match who:
        case EndPorts.ALL:
            return True
        case EndPorts.SELF:
            return end == found.origin
    return found.subnet.nodes[end.guid].type is _TYPES[who]


def in_opensm_order(p_keys: Mapping[int, object]) -> list[int]:
    """P_Keys as OpenSM goes through them: it sorts them as a little-endian machine reads their bytes."""
    return sorted(p_keys, key=lambda p_key: (p_key & 0xFF, p_key >> 8))


def by_partition(table: Iterable[int]) -> dict[int, int]:
    """P_Keys by what they are without the bit of full members."""
    return {key & P_KEY_BASE: key for key in table if key & P_KEY_BASE}


def share_partition(one: Mapping[int, int], other: Mapping[int, int]) -> Iterator[int]:
    """The P_Keys by which a port may send to another, in OpenSM's order.

    Both are by P_Key without the bit of full members; one of the two ports at least is a full member.
    """
    for base in in_opensm_order(one):
        if base in other and (one[base] | other[base]) & FULL_MEMBER:
            yield one[base]
