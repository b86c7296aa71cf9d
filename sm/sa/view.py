"""A subnet as a sweep has left it, which is what the Subnet Administrator tells of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sm.discovery import Findings
from sm.lids import LidRange
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
