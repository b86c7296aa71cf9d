"""How one port reaches another, by what both know of themselves: no Subnet Administrator is asked."""

from __future__ import annotations

import errno
from typing import Final

from doors.mads.host_port import HostPort
from doors.mads.umad_device import DeviceError
from verbs.address import AddressVector
from verbs.cm_parameters import CmRoute, ConnectionPath
from verbs.port import p_keys_match
from wire.codes import MTU, LinkWidth
from wire.path_record import EXACTLY, PATH_RECORD

__all__ = ["packed_path", "path_between", "shared_p_key"]

_RATES: Final = {LinkWidth.X1: 2, LinkWidth.X4: 3}
"""Codes of 2.5 and 10 Gbit/s."""


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
