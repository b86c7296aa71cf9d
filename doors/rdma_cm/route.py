"""How one port reaches another: by what the Subnet Administrator says, or what both ports know of themselves."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import Final

from doors.mads.host_port import HostPort
from doors.mads.umad_device import DeviceError
from doors.rdma_cm.sa_client import Answered, SaClient
from verbs.address import AddressVector
from verbs.cm_parameters import CmRoute, ConnectionPath
from verbs.port import p_keys_match
from wire.codes import MTU, LinkWidth, is_unicast_lid
from wire.layout import Record
from wire.path_record import EXACTLY, PATH_RECORD
from wire.sa import SaAttribute, SaMethod

__all__ = ["administered_path", "ask_for_path", "packed_path", "path_between", "shared_p_key"]

_RATES: Final = {LinkWidth.X1: 2, LinkWidth.X4: 3}
"""Codes of 2.5 and 10 Gbit/s."""

_NAMES: Final = frozenset({"dgid", "sgid", "p_key", "numb_path", "reversible", "service_id", "qos_class"})
"""Of a path what a kernel asks for."""


def shared_p_key(local: HostPort, remote: HostPort | None) -> int:
    """The index of the first P_Key of a port with which another, or any, can be reached.

    Raises:
        DeviceError: they share no partition.
    """
    theirs = None if remote is None else remote.p_keys
    for index, key in enumerate(local.p_keys):
        if key and (theirs is None or any(p_keys_match(key, other) for other in theirs)):
            return index
    raise DeviceError(errno.EHOSTUNREACH)


def path_between(local: HostPort, remote: HostPort) -> ConnectionPath:
    """The path from one port to another.

    Raises:
        DeviceError: a port is not Active, or they share no partition.
    """
    here, there = local.info, remote.info
    mtu = min(here.neighbor_mtu, there.neighbor_mtu)
    if not (local.sends_data and remote.sends_data and mtu in set(MTU)):
        raise DeviceError(errno.EHOSTUNREACH)
    index = shared_p_key(local, remote)
    width = min(here.link_width_active, there.link_width_active)
    return ConnectionPath(
        CmRoute(AddressVector(there.lid, port=local.number), index),
        here.lid,
        local.gid,
        remote.gid,
        local.p_keys[index],
        mtu,
        rate=_RATES.get(LinkWidth(width), _RATES[LinkWidth.X4]),
    )


def ask_for_path(
    administrator: SaClient, path: ConnectionPath, service_id: int, qos_class: int, timeout_ms: int, answered: Answered
) -> None:
    """Asks for the PathRecord of a service between the ends of a path, in its partition."""
    wanted = PATH_RECORD.record(
        service_id=service_id,
        dgid=path.remote_gid,
        sgid=path.local_gid,
        reversible=1,
        numb_path=1,
        p_key=path.p_key,
        qos_class=qos_class,
    )
    administrator.ask(SaMethod.GET, SaAttribute.PATH_RECORD, wanted, _NAMES, answered, timeout_ms)


def administered_path(path: ConnectionPath, local: HostPort, record: Record) -> ConnectionPath:
    """A path as a PathRecord says it is.

    Raises:
        DeviceError: it says what no path can be.
    """
    if not (is_unicast_lid(record.dlid) and local.has_lid(record.slid) and record.mtu in set(MTU)):
        raise DeviceError(errno.EINVAL)
    bits = record.slid & (1 << local.info.lmc) - 1
    vector = replace(path.route.path, dlid=record.dlid, sl=record.sl, src_path_bits=bits)
    return replace(
        path,
        route=path.route._replace(path=vector),
        local_lid=record.slid,
        mtu=record.mtu,
        rate=record.rate,
        life_time=record.packet_life_time,
    )


def packed_path(path: ConnectionPath) -> bytes:
    """A path as the Subnet Administrator would give it: PathRecord, 64 bytes."""
    return PATH_RECORD.pack(
        dgid=path.remote_gid,
        sgid=path.local_gid,
        dlid=path.route.path.dlid,
        slid=path.local_lid,
        reversible=1,
        numb_path=1,
        p_key=path.p_key,
        sl=path.route.path.sl,
        mtu_selector=EXACTLY,
        mtu=path.mtu,
        rate_selector=EXACTLY,
        rate=path.rate,
        packet_life_time_selector=EXACTLY,
        packet_life_time=path.life_time,
    )
