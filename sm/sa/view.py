"""A subnet as a sweep has left it, which is what the Subnet Administrator tells of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sm.discovery import Findings
from sm.lids import LidRange
from sm.partitions import P_KEY_BASE, by_partition, share_partition
from sm.routing.routes import Routes
from sm.settings import SubnetSettings
from sm.subnet import MANAGEMENT_PORT, End, Subnet

__all__ = ["SubnetView"]

_GUID_BITS = 64


@dataclass(frozen=True)
class SubnetView:
    """What was found, and what was made of it."""

    found: Findings
    lids: Mapping[int, LidRange]
    """By PortGUID."""
    routes: Routes
    settings: SubnetSettings
    p_keys: Mapping[End, tuple[int, ...]] | None = None
    """The P_Key tables that are known, if the subnet has partitions."""
    _shared: dict[tuple[tuple[int, ...], tuple[int, ...]], Sequence[int]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """P_Keys for packets between ports with two tables."""

    @property
    def tables(self) -> Mapping[int, bytearray]:
        """Forwarding tables by switch GUID."""
        return self.routes.tables

    @property
    def subnet(self) -> Subnet:
        """The nodes and links."""
        return self.found.subnet

    @cached_property
    def guids(self) -> dict[End, int]:
        """The PortGUID of each port that has LIDs."""
        return {end: port.guid for end, port in self.subnet.reachable_end_ports if port.guid in self.lids}

    @cached_property
    def by_guid(self) -> dict[int, End]:
        """The port of each PortGUID."""
        return {guid: end for end, guid in self.guids.items()}

    @cached_property
    def by_lid(self) -> dict[int, End]:
        """The port of each LID."""
        return {lid: end for end, guid in self.guids.items() for lid in self.lids[guid].lids}

    def lid_range(self, end: End) -> LidRange:
        """The LIDs of a port that has some."""
        return self.lids[self.guids[end]]

    def base_lid(self, lid: int) -> int:
        """The base LID of the port that a LID is one of; a LID of nobody is that."""
        end = self.by_lid.get(lid)
        return lid if end is None else self.lid_range(end).first

    def node_lid(self, end: End) -> int:
        """The base LID by which a port's agent is asked for it: of a switch's port that of port 0."""
        is_switch = self.subnet.nodes[end.guid].is_switch
        guid = self.guids.get(End(end.guid, MANAGEMENT_PORT) if is_switch else end)
        return 0 if guid is None else self.lids[guid].first

    def gid(self, end: End) -> int:
        """The port's GID 0."""
        return self.settings.gid_prefix << _GUID_BITS | self.guids[end]

    def of_gid(self, gid: int) -> End | None:
        """The port whose GID 0 this is; None if there is none."""
        if gid >> _GUID_BITS != self.settings.gid_prefix:
            return None
        return self.by_guid.get(gid & (1 << _GUID_BITS) - 1)

    def shared_p_keys(self, source: End, destination: End) -> Sequence[int]:
        """The P_Keys by which a port may send to another, in OpenSM's order, where there are partitions."""
        tables = self.p_keys or {}
        key = tables.get(source, ()), tables.get(destination, ())
        if key not in self._shared:
            self._shared[key] = tuple(share_partition(*map(by_partition, key)))
        return self._shared[key]

    def is_told(self, asker: End | None, *ends: End) -> bool:
        """Whether a port may hear of what all these others are part of: it shares a partition with each of them.

        A port hears of itself, and of ports whose P_Keys nobody has asked for, such as those between switches; so it
        is in OpenSM. Who is no port of the subnet hears nothing. Without partitions everybody hears everything.
        """
        tables = self.p_keys
        if tables is None:
            return True
        return asker is not None and all(
            end == asker or not {end, asker} <= tables.keys() or self.shared_p_keys(asker, end) for end in ends
        )

    def is_member(self, end: End | None, p_key: int) -> bool:
        """Whether a port is a member of a P_Key's partition, full or limited; of that of no P_Key everybody is one."""
        if self.p_keys is None or not p_key & P_KEY_BASE:
            return True
        return end is not None and p_key & P_KEY_BASE in by_partition(self.p_keys.get(end, ()))
