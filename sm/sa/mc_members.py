"""MCMemberRecords: ports that join, create and leave multicast groups, and queries (IBTA vol 1, 15.2.5.17).

Where the standard leaves a choice it is OpenSM's. One is not: a port joins and leaves for itself alone (no ProxyJoin).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sm.multicast.groups import ALL_MLIDS, STAYS, MulticastGroups
from sm.multicast.tables import multicast_caps
from sm.partition_groups import IP_SIGNATURES, broadcast_mgid
from sm.partitions import FULL_MEMBER, P_KEY_BASE
from sm.sa.capacity import BY_RATE, MTUS, RequestError, capacity, fitting_code, is_selected
from sm.sa.records import named
from sm.sa.view import SubnetView
from sm.settings import GID_PREFIX_DEFAULT
from sm.subnet import End
from wire.codes import P_KEY_DEFAULT
from wire.layout import Record
from wire.mc_member_record import MC_MEMBER_RECORD, MGID, MULTICAST_PREFIX, JoinState, MgidSignature, MulticastScope
from wire.path_record import EXACTLY, LARGEST, PATH_RECORD, RATES
from wire.sa import SaStatus

__all__ = ["group_paths", "is_multicast_gid", "join", "leave", "member_records"]

_JOIN: Final = {"mgid", "port_gid", "join_state"}
_CREATE: Final = _JOIN | {"q_key", "t_class", "p_key", "flow_label", "sl"}
"""Components without which there is no joining, and no creating (o15-0.2.3)."""
_EQUAL: Final = ("q_key", "t_class", "sl", "flow_label", "hop_limit", "scope")
"""Components that are the group's, if they are given."""
_GUID_BITS: Final = 64
_RESERVED_FLAGS: Final = 0xE


def member_records(
    query: Record, mask: int, groups: MulticastGroups, view: SubnetView, asker: End | None, *, is_trusted: bool
) -> list[Record]:
    """The records that a query means: of each member for who is trusted, and else of each group, without its members.

    Who asks hears of groups of its partitions alone. With a PortGID the groups are those that the port is in.

    Raises:
        RequestError: an MTU or rate that is none.
    """
    names = named(MC_MEMBER_RECORD, mask)
    found = []
    for _mgid, group in sorted(groups.by_mgid.items()):
        record = group.record
        if not _has_p_key(view, asker, record.p_key) or not _agrees(query, names, record):
            continue
        if any(query[name] != record[name] for name in names & {"mgid", "mlid"}):
            continue
        members: Mapping[int, int] = group.members
        if "port_gid" in names:
            guid = query.port_gid & (1 << _GUID_BITS) - 1
            members = {guid: members[guid]} if guid in members else {}
        elif not is_trusted:
            members = {0: record.join_state}
        for guid, state in members.items():
            if ("join_state" in names and state != query.join_state) or ("proxy_join" in names and query.proxy_join):
                continue
            gid = view.settings.gid_prefix << _GUID_BITS | guid
            told = {"port_gid": gid, "join_state": state} if is_trusted else {"port_gid": 0, "join_state": 0}
            found.append(record.replace(**told))
    return found


def join(wanted: Record, mask: int, groups: MulticastGroups, view: SubnetView, asker: End | None) -> Record:
    """Makes who asks a member of a group, which is created if there is none; the answer's record.

    Raises:
        RequestError: it may not be so.
    """
    names, end, guid = _asked(wanted, mask, view, asker)
    if "p_key" in names and not wanted.p_key & P_KEY_BASE:
        raise RequestError(SaStatus.REQ_INVALID)
    state = JoinState(wanted.join_state)
    group = groups.by_mgid.get(wanted.mgid)
    record = _new_group(wanted, names, groups, view, end) if group is None else group.record
    port = capacity(view.found, end)
    if (
        not state
        or (group is not None and not _agrees(wanted, names, record))
        or port.mtu < record.mtu
        or RATES[port.rate] < RATES[record.rate]
        or not _has_p_key(view, end, record.p_key)
    ):
        raise RequestError(SaStatus.REQ_INVALID)
    if group is None:
        caps = multicast_caps(view.found).values()
        group = groups.create(record, min([*caps, ALL_MLIDS]), wanted.mlid if "mlid" in names else 0)
        if group is None:
            raise RequestError(SaStatus.NO_RESOURCES)
    return group.record.replace(port_gid=wanted.port_gid, join_state=groups.join(group, guid, state))


def leave(wanted: Record, mask: int, groups: MulticastGroups, view: SubnetView, asker: End | None) -> Record:
    """Takes from who asks what it is in a group; the answer's record.

    Raises:
        RequestError: it is not that (o15-0.1.14), or may not be so.
    """
    _names, _end, guid = _asked(wanted, mask, view, asker)
    group = groups.by_mgid.get(wanted.mgid)
    state = JoinState(wanted.join_state)
    held = JoinState(0) if group is None else group.members.get(guid, JoinState(0))
    if group is None or not state or state & ~held:
        raise RequestError(SaStatus.REQ_INVALID)
    return group.record.replace(port_gid=wanted.port_gid, join_state=groups.leave(group, guid, state))


def is_multicast_gid(gid: int) -> bool:
    """Whether it is a group's."""
    return MGID.from_int(gid).prefix == MULTICAST_PREFIX


def group_paths(query: Record, mask: int, groups: MulticastGroups, view: SubnetView, asker: End | None) -> list[Record]:
    """The PathRecord to the group of a DGID, if there is one and its packets are as the query wants them.

    A source, if there is one in the query, is a member.

    Raises:
        RequestError: an MTU or rate that is none.
    """
    names = named(PATH_RECORD, mask)
    group = groups.by_mgid.get(query.dgid)
    if group is None or not _has_p_key(view, asker, group.record.p_key):
        return []
    record = group.record
    source = view.of_gid(query.sgid) if "sgid" in names else view.by_lid.get(query.slid)
    if names & {"sgid", "slid"} and (source is None or view.guids[source] not in group.members):
        return []
    if ("dlid" in names and query.dlid != record.mlid) or ("numb_path" in names and not query.numb_path):
        return []
    if "p_key" in names and query.p_key != record.p_key:
        return []
    if not _agrees(query, names - {"p_key"}, record):
        return []
    from_source = {} if source is None else {"sgid": view.gid(source), "slid": view.lid_range(source).first}
    shared = ("t_class", "p_key", "sl", "flow_label", "hop_limit", "mtu", "rate", "packet_life_time")
    return [
        PATH_RECORD.record(
            {name: record[name] for name in shared} | from_source,
            dgid=record.mgid,
            dlid=record.mlid,
            numb_path=1,
            mtu_selector=EXACTLY,
            rate_selector=EXACTLY,
            packet_life_time_selector=EXACTLY,
        )
    ]


def _asked(wanted: Record, mask: int, view: SubnetView, asker: End | None) -> tuple[set[str], End, int]:
    """The components that count, and the port that is to join or leave, with its PortGUID."""
    names = named(MC_MEMBER_RECORD, mask)
    if not names >= _JOIN:
        raise RequestError(SaStatus.REQ_INSUFFICIENT_COMPONENTS)
    for name, codes in (("mtu", MTUS), ("rate", BY_RATE)):
        if {name, f"{name}_selector"} <= names and wanted[name] not in codes:
            raise RequestError(SaStatus.REQ_INVALID)
    prefix, guid = divmod(wanted.port_gid, 1 << _GUID_BITS)
    if prefix not in (GID_PREFIX_DEFAULT, view.settings.gid_prefix):
        raise RequestError(SaStatus.REQ_INVALID_GID)
    end = view.by_guid.get(guid)
    if end is None or end != asker or view.subnet.nodes[end.guid].is_switch:
        raise RequestError(SaStatus.REQ_INVALID)
    return names, end, guid


def _new_group(wanted: Record, names: set[str], groups: MulticastGroups, view: SubnetView, end: End) -> Record:
    """The MCMemberRecord of a group that a port may create, without an MLID."""
    if not wanted.join_state & STAYS:
        raise RequestError(SaStatus.REQ_INVALID)
    if not names >= _CREATE:
        raise RequestError(SaStatus.REQ_INSUFFICIENT_COMPONENTS)
    if wanted.mgid:
        mgid = wanted.mgid
        if not _is_possible(wanted, names, groups):
            raise RequestError(SaStatus.REQ_INVALID)
    else:
        scope = wanted.scope if "scope" in names else MulticastScope.LINK_LOCAL
        mgid = groups.new_mgid(scope, view.settings.gid_prefix)
    values = {}
    port = capacity(view.found, end)
    for name, best, order in (("mtu", port.mtu, MTUS), ("rate", port.rate, BY_RATE)):
        is_given = {name, f"{name}_selector"} <= names
        selector = wanted[f"{name}_selector"] if is_given else LARGEST
        code = fitting_code(best, selector, wanted[name], order)
        if code is None:
            raise RequestError(SaStatus.REQ_INVALID)
        values[name] = code
    return MC_MEMBER_RECORD.record(
        {name: wanted[name] for name in ("q_key", "t_class", "p_key", "sl", "flow_label", "join_state")} | values,
        mgid=mgid,
        mtu_selector=EXACTLY,
        rate_selector=EXACTLY,
        packet_life_time_selector=EXACTLY,
        packet_life_time=wanted.packet_life_time if "packet_life_time" in names else view.settings.subnet_timeout,
        hop_limit=wanted.hop_limit if "hop_limit" in names else 0,
        scope=MGID.from_int(mgid).scope,
    )


def _is_possible(wanted: Record, names: set[str], groups: MulticastGroups) -> bool:
    """Whether a group may have the MGID that is wanted (o15-0.1.5).

    Groups of IPoIB come after the broadcast group of their partition and scope, and are as that is.
    """
    mgid = MGID.from_int(wanted.mgid)
    if mgid.prefix != MULTICAST_PREFIX or ("scope" in names and wanted.scope != mgid.scope):
        return False
    if mgid.signature not in IP_SIGNATURES:
        is_local = mgid.scope == MulticastScope.LINK_LOCAL
        return not mgid.flags & _RESERVED_FLAGS and not (is_local and mgid.signature == MgidSignature.ADMINISTRATOR)
    broadcast = broadcast_mgid(mgid.p_key, mgid.scope)
    like = groups.by_mgid.get(broadcast)
    return wanted.mgid == broadcast or (
        like is not None and _agrees(wanted, names - {"mtu_selector", "rate_selector"}, like.record)
    )


def _agrees(query: Record, names: set[str], record: Record) -> bool:
    """Whether what is given of a group is as that is."""
    if "p_key" in names and not _hear(query.p_key, record.p_key):
        return False
    if any(query[name] != record[name] for name in names.intersection(_EQUAL)):
        return False
    return all(
        is_selected(record[name], query[f"{name}_selector"], query[name], order)
        for name, order in (("mtu", MTUS), ("rate", BY_RATE))
        if {name, f"{name}_selector"} <= names
    )


def _hear(one: int, other: int) -> bool:
    """Whether two P_Keys are of one partition, and not both of limited members."""
    return not (one ^ other) & P_KEY_BASE and bool((one | other) & FULL_MEMBER)


def _has_p_key(view: SubnetView, end: End | None, p_key: int) -> bool:
    """Whether a port is a member of a partition; without partitions all are of the default one."""
    if view.p_keys is None:
        return not (p_key ^ P_KEY_DEFAULT) & P_KEY_BASE
    return view.is_member(end, p_key)
