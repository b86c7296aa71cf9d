"""Multicast GIDs of IP addresses, as librdmacm's programs get them from the kernel's connection manager."""

from __future__ import annotations

from typing import Final, NamedTuple

from wire.ip_cm import IpAddress, PortSpace
from wire.mc_member_record import MGID, MULTICAST_PREFIX, MgidSignature

__all__ = ["GroupAddress", "group_mgid"]

_TRANSIENT: Final = 1
_IP_V4_GROUP: Final = (1 << 28) - 1
_OF_RDMA_CM: Final = 0x01
"""The lower byte of the signature of groups that are not IPoIB's, though their addresses are IP's."""


class GroupAddress(NamedTuple):
    """What a program joins: the group of an IP address, or one by its MGID (AF_IB)."""

    ip: IpAddress | None = None
    mgid: int = 0


def group_mgid(address: GroupAddress, space: int, broadcast: int) -> int:
    """The MGID of a group at a port that has the broadcast group BROADCAST; 0 lets the Subnet Administrator choose.

    IP addresses are mapped as IPoIB does (RFC 4391, 4), with the broadcast group's P_Key and scope. In the port space
    UDP the signature is another one, so that IP packets and programs' are never of one group.
    """
    ip = address.ip
    if ip is None:
        return address.mgid
    if ip.is_unspecified:
        return 0
    number = int(ip)
    if ip.version == 4:
        signature, group = MgidSignature.IP_V4, number & _IP_V4_GROUP
    else:
        given = MGID.from_int(number)
        chosen = MULTICAST_PREFIX, _TRANSIENT, MgidSignature.ADMINISTRATOR
        if (given.prefix, given.flags, given.signature) == chosen:
            return number
        signature, group = MgidSignature.IP_V6, given.group
    shared = MGID.from_int(broadcast)
    word = int(signature) & 0xFF00 | _OF_RDMA_CM if space == PortSpace.UDP else int(signature)
    return MGID.to_int(flags=_TRANSIENT, scope=shared.scope, signature=word, p_key=shared.p_key, group=group)
