"""PathRecords: how packets get from port to port, and what passes on the way (IBTA vol 1, 15.2.5.16)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sm.partitions import P_KEY_BASE
from sm.qos_policy import QosLevel, in_ranges
from sm.sa.capacity import BY_RATE, MTUS, Capacity, RequestError, capacity, fitting_code, least
from sm.sa.qos_levels import QosLevels
from sm.sa.records import named
from sm.sa.view import SubnetView
from sm.subnet import MANAGEMENT_PORT, End
from wire.codes import P_KEY_DEFAULT, PortState
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.layout import Record
from wire.path_record import EXACTLY, GREATER, LESS, PATH_RECORD
from wire.sa import SaStatus
from wire.smp import MAX_HOPS

__all__ = ["PathFinder"]

_ALL_PATHS: Final = 0x7F
_ANY: Final = QosLevel()
"""Without a QoS policy."""
_KEPT: Final = ("service_id", "flow_label", "hop_limit", "t_class", "qos_class")
"""Components that make no difference to a path here: it is as they are wanted."""


class PathFinder:
    """Finds the paths of a subnet; it remembers the ways that it has gone."""

    def __init__(self, view: SubnetView) -> None:
        self._view = view
        policy = view.settings.qos_policy
        self._levels = None if policy is None else QosLevels(policy, view)
        self._ways: dict[tuple[int, int], Capacity | None] = {}
        """From switch GUIDs to LIDs."""
        self._links: dict[End, tuple[End, Capacity] | None] = {}

    def find(self, query: Record, mask: int, asker: End | None, *, most: int = _ALL_PATHS) -> list[Record]:
        """PathRecords that a query of a port means, no more than `most` between two ports.

        Who shares no partition with a port hears nothing of paths from or to it.

        Raises:
            RequestError: a GID that is none of the subnet.
        """
        names = named(PATH_RECORD, mask)
        if "numb_path" in names:
            most = min(most, query.numb_path)
        sources, destinations = (
            [end for end in self._ends(query, names, gid, lid) if self._view.is_told(asker, end)]
            for gid, lid in (("sgid", "slid"), ("dgid", "dlid"))
        )
        return [
            path
            for source in sources
            for destination in destinations
            for path in self._between(source, destination, query, names, most)
        ]

    def _ends(self, query: Record, names: set[str], gid: str, lid: str) -> list[End]:
        """The ports that a GID, a LID, both or neither stand for."""
        view = self._view
        found = list(view.guids)
        if gid in names:
            end = view.of_gid(query[gid])
            if end is None:
                raise RequestError(SaStatus.REQ_INVALID_GID)
            found = [end]
        if lid in names:
            found = [end for end in found if view.by_lid.get(query[lid]) == end]
        return found

    def _between(self, source: End, destination: End, query: Record, names: set[str], most: int) -> Iterator[Record]:
        view = self._view
        slids = [query.slid] if "slid" in names else view.lid_range(source).lids
        dlids = [query.dlid] if "dlid" in names else view.lid_range(destination).lids
        for index in range(min(most, max(len(slids), len(dlids)))):
            slid, dlid = slids[index % len(slids)], dlids[index % len(dlids)]
            values = self._values(source, destination, slid, dlid, query, names)
            if values is None:
                continue
            reversible = self._values(destination, source, dlid, slid, query, names) is not None
            if "reversible" in names and query.reversible and not reversible:
                continue
            values |= {name: query[name] for name in _KEPT if name in names}
            yield PATH_RECORD.record(
                values,
                dgid=view.gid(destination),
                sgid=view.gid(source),
                dlid=dlid,
                slid=slid,
                reversible=int(reversible),
                mtu_selector=EXACTLY,
                rate_selector=EXACTLY,
                packet_life_time_selector=EXACTLY,
            )

    def _values(
        self, source: End, destination: End, slid: int, dlid: int, query: Record, names: set[str]
    ) -> dict[str, int] | None:
        """P_Key, SL, MTU, rate and packet life time of a path by their names; None if what is asked for cannot be."""
        way = self._way(source, destination, dlid)
        if way is None:
            return None
        level = _ANY if self._levels is None else self._levels.level(source, destination, query, names)
        p_key = self._p_key(source, destination, level, query.p_key if "p_key" in names else None)
        if p_key is None:
            return None
        sl = self._service_level(p_key, slid, dlid, level, query.sl if "sl" in names else None)
        if sl is None:
            return None
        limits = Capacity(level.mtu_limit or way.mtu, level.rate_limit or way.rate)
        life = self._view.settings.subnet_timeout if level.packet_life is None else level.packet_life
        values = _within(least(way, limits), 0 if source == destination else life, query, names)
        return None if values is None else values | {"p_key": p_key, "sl": sl}

    def _service_level(self, p_key: int, slid: int, dlid: int, level: QosLevel, wanted: int | None) -> int | None:
        """The SL of packets from a LID to another, `wanted` if that is given; None if they cannot have it.

        Where routes have layers, what keeps paths from waiting for each other in a circle is their SL; so it comes
        before that of their QoS level, which comes before that of their partition, as in OpenSM. OpenSM holds nobody to
        the SL of a partition.
        """
        view = self._view
        if wanted is not None and level.service_level not in (None, wanted):
            return None
        if view.routes.layers:
            sl = view.routes.service_level(slid, dlid)
            return sl if wanted in (None, sl) else None
        if wanted is not None:
            return wanted
        if level.service_level is not None:
            return level.service_level
        partitions = view.settings.partitions
        return 0 if partitions is None else partitions.service_levels.get(p_key & P_KEY_BASE, 0)

    def _p_key(self, source: End, destination: End, level: QosLevel, wanted: int | None) -> int | None:
        """By which P_Key a port may send to another, `wanted` if that is given; None if by none.

        One of those that a QoS level has is without the bit of full members, and the lowest, as in OpenSM.
        """
        view = self._view
        shared = (P_KEY_DEFAULT,) if view.p_keys is None else view.shared_p_keys(source, destination)
        if wanted is None and not level.p_keys:
            return shared[0] if shared else None
        bases = {one & P_KEY_BASE for one in shared}
        if level.p_keys:
            bases = {base for base in bases if in_ranges(base, level.p_keys)}
        if wanted is None:
            return min(bases, default=None)
        return wanted if wanted & P_KEY_BASE in bases else None

    def _way(self, source: End, destination: End, dlid: int) -> Capacity | None:
        """What packets from a port to a LID of another pass through; None if they do not arrive."""
        view = self._view
        if source == destination:
            return capacity(self._view.found, source)
        if view.subnet.nodes[source.guid].is_switch:
            way = self._from_switch(source.guid, dlid, MAX_HOPS)
            return None if way is None else least(way, capacity(self._view.found, source))
        return self._by_link(source, dlid, MAX_HOPS)

    def _from_switch(self, guid: int, dlid: int, hops: int) -> Capacity | None:
        """The way on from a switch."""
        key = guid, dlid
        if key not in self._ways:
            self._ways[key] = self._next(guid, dlid, hops)
        return self._ways[key]

    def _next(self, guid: int, dlid: int, hops: int) -> Capacity | None:
        table = self._view.tables.get(guid, b"")
        port = table[dlid] if dlid < len(table) else LFT_NO_ROUTE
        if port == MANAGEMENT_PORT:
            end = End(guid, MANAGEMENT_PORT)
            return capacity(self._view.found, end) if self._view.by_lid.get(dlid) == end else None
        return self._by_link(End(guid, port), dlid, hops)

    def _by_link(self, near: End, dlid: int, hops: int) -> Capacity | None:
        """The way by a port's link and on."""
        if near not in self._links:
            self._links[near] = self._link(near)
        link = self._links[near]
        if link is None or not hops:
            return None
        far, here = link
        if self._view.by_lid.get(dlid) == far:
            return here
        if not self._view.subnet.nodes[far.guid].is_switch:
            return None
        rest = self._from_switch(far.guid, dlid, hops - 1)
        return None if rest is None else least(here, rest)

    def _link(self, near: End) -> tuple[End, Capacity] | None:
        """The port at the far end of a link, and what the link lets through; None if nothing."""
        far = self._view.subnet.peer(near)
        if far is None or any(self._view.found.state(end) != PortState.ACTIVE for end in (near, far)):
            return None
        return far, least(capacity(self._view.found, near), capacity(self._view.found, far))


def _within(way: Capacity, life: int, query: Record, names: set[str]) -> dict[str, int] | None:
    """MTU, rate and packet life time by their names, within what was asked for; None if they cannot be."""
    values = {"mtu": way.mtu, "rate": way.rate, "packet_life_time": life}
    for name, order in (("mtu", MTUS), ("rate", BY_RATE)):
        if {name, f"{name}_selector"} <= names:
            fitting = fitting_code(values[name], query[f"{name}_selector"], query[name], order)
            if fitting is None:
                return None
            values[name] = fitting
    if {"packet_life_time", "packet_life_time_selector"} <= names:
        wanted = query.packet_life_time
        match query.packet_life_time_selector:
            case selector if selector == GREATER:
                fits = life > wanted
            case selector if selector == LESS:
                fits = life < wanted
            case selector if selector == EXACTLY:
                fits = life <= wanted
                values["packet_life_time"] = wanted
            case _:
                fits = True
        if not fits:
            return None
    return values
