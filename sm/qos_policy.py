"""A QoS policy as OpenSM's: which paths have which SL, and no more than what MTU and rate.

It is about PathRecords alone; VLs, SL to VL and VL arbitration are qos_options.py's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wire.node_info import NodeType

__all__ = ["MatchRule", "PortGroup", "QosLevel", "QosPolicy", "Ranges", "in_ranges"]

Ranges = tuple[tuple[int, int], ...]
"""First and last number of each."""


@dataclass(frozen=True)
class PortGroup:
    """End ports: those that one of these is true of. A switch is its port 0."""

    guids: Ranges = ()
    """PortGUIDs."""
    ports: tuple[tuple[str, int], ...] = ()
    """NodeDescription and port number; of a switch any of its ports."""
    p_keys: Ranges = ()
    """Of partitions, without the bit of full members, whose members they are."""
    partitions: tuple[str, ...] = ()
    """Names of such."""
    node_types: frozenset[NodeType] = frozenset()
    has_own: bool = False
    """Whether the Subnet Manager's port is one."""


@dataclass(frozen=True)
class QosLevel:
    """What a path is to be like; None says nothing."""

    service_level: int | None = None
    mtu_limit: int | None = None
    """A code, as in PathRecords."""
    rate_limit: int | None = None
    """A code, as in PathRecords."""
    packet_life: int | None = None
    """PacketLifeTime."""
    p_keys: Ranges = ()
    """Those that it may have, without the bit of full members; all if there are none."""


@dataclass(frozen=True)
class MatchRule:
    """The level of paths of which all this is true; of what is not said, anything."""

    level: QosLevel
    sources: tuple[PortGroup, ...] = ()
    destinations: tuple[PortGroup, ...] = ()
    qos_classes: Ranges = ()
    service_ids: Ranges = ()
    p_keys: Ranges = ()
    """Without the bit of full members."""


@dataclass(frozen=True)
class QosPolicy:
    """Rules, of which the first that matches counts, and the level of paths that none matches."""

    rules: tuple[MatchRule, ...]
    default: QosLevel


def in_ranges(number: int, ranges: Iterable[tuple[int, int]]) -> bool:
    """Whether a number is in one of them."""
    return any(first <= number <= last for first, last in ranges)
