"""Multicast groups that a Subnet Manager makes of partitions, and the flags of partitions.conf that are about them.

Each flag means what it means to OpenSM 3.3.23, which takes words that are cut short. What it says of a group that it
then does not make, which only its log tells, is an error here.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from sm.partitions import Partitions
from wire.codes import MTU, P_KEY_DEFAULT
from wire.layout import Record
from wire.mc_member_record import MC_MEMBER_RECORD, MGID, MULTICAST_PREFIX, JoinState, MgidSignature, MulticastScope
from wire.path_record import EXACTLY, RATES

__all__ = ["IP_SIGNATURES", "GroupFlags", "broadcast_group", "broadcast_mgid", "groups_of_mgid", "made_groups"]

IP_SIGNATURES: Final = (MgidSignature.IP_V4, MgidSignature.IP_V6)
"""Of the MGIDs of IPoIB."""

_RATE_10_GBPS: Final = 3
_BROADCAST_Q_KEY: Final = 0x0B1B
_BROADCAST: Final = 0xFFFF_FFFF
"""The IPv4 address of all."""
_HOPS_BEYOND_THE_LINK: Final = 0xFF
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]{1,16}|0[0-7]{0,22}|[1-9][0-9]{0,19}")
"""As C reads one; a decimal number, an octal one with 0 in front."""


@dataclass
class GroupFlags:
    """What is said of groups; a Q_Key of 0 says nothing."""

    mtu: int = MTU.MTU_2048
    rate: int = _RATE_10_GBPS
    sl: int = 0
    q_key: int = 0
    t_class: int = 0
    flow_label: int = 0
    scopes: frozenset[int] = frozenset()
    """None is link-local."""

    def take(self, flag: str, value: str | None) -> bool:
        """Takes a flag; whether it is one of groups. A value that OpenSM skips says nothing."""
        name = next((name for name in _FLAGS if name.startswith(flag)), None)
        number, is_whole = _number(value or "")
        if name is None or value is None:
            return name is not None
        match name:
            case "mtu":
                self.mtu = number
            case "rate":
                self.rate = number
            case "scope" if 1 <= number <= MC_MEMBER_RECORD["scope"].max:
                self.scopes |= {number}
            case "Q_Key":
                self.q_key = number & MC_MEMBER_RECORD["q_key"].max
            case "TClass":
                self.t_class = number & MC_MEMBER_RECORD["t_class"].max
            case "sl" if is_whole and number <= MC_MEMBER_RECORD["sl"].max:
                self.sl = number
            case "FlowLabel" if is_whole and number <= MC_MEMBER_RECORD["flow_label"].max:
                self.flow_label = number
        return True


_FLAGS: Final = ("mtu", "rate", "scope", "Q_Key", "TClass", "sl", "FlowLabel")
"""In the order in which OpenSM looks whether a word is the beginning of one."""


def made_groups(partitions: Partitions | None, packet_life_time: int) -> list[Record]:
    """MCMemberRecords of the groups that there are from the start: of the partitions, or without any of the default one
    its broadcast group, as in OpenSM."""
    groups = (broadcast_group(P_KEY_DEFAULT, GroupFlags()),) if partitions is None else partitions.groups
    return [group.replace(packet_life_time=packet_life_time) for group in groups]


def broadcast_mgid(p_key: int = P_KEY_DEFAULT, scope: int = MulticastScope.LINK_LOCAL) -> int:
    """The MGID of a partition's IPv4 broadcast group (RFC 4391, 4)."""
    return MGID.to_int(flags=1, scope=scope, signature=MgidSignature.IP_V4, p_key=p_key, group=_BROADCAST)


def broadcast_group(p_key: int, flags: GroupFlags) -> Record:
    """The IPv4 broadcast group of a partition; OpenSM makes it link-local, whatever the flags say of scopes.

    Raises:
        ValueError: an MTU or rate that is none.
    """
    local = replace(flags, scopes=frozenset())
    return next(_groups(broadcast_mgid(p_key), p_key, local, flags.q_key or _BROADCAST_Q_KEY))


def groups_of_mgid(
    text: str, p_key: int, of_partition: GroupFlags, flags: GroupFlags, there: Container[int]
) -> Iterator[Record]:
    """The groups of an MGID, one for each scope, which takes the place of that in the MGID.

    There are none if the MGID as it is said is `there` already.

    Raises:
        ValueError: no multicast GID; an MTU or rate that is none; or one of IPoIB whose P_Key, MTU or rate are not the
            partition's, or whose broadcast group is not there.
    """
    try:
        mgid = MGID.from_int(int(IPv6Address(text)))
    except AddressValueError:
        mgid = MGID.from_int(0)
    if mgid.prefix != MULTICAST_PREFIX:
        raise ValueError(f"mgid {text}: expected a multicast GID, ff..")
    q_key = flags.q_key
    is_ip = mgid.signature in IP_SIGNATURES
    if is_ip:
        if _number_of(mgid) != broadcast_mgid() and mgid.p_key not in (0, p_key):
            raise ValueError(f"mgid {text}: P_Key 0x{mgid.p_key:04x} of a group of IPoIB, expected 0x{p_key:04x} or 0")
        for name, wanted, value in (("mtu", of_partition.mtu, flags.mtu), ("rate", of_partition.rate, flags.rate)):
            if value != wanted:
                raise ValueError(f"mgid {text}: {name} {value} of a group of IPoIB, expected the partition's, {wanted}")
        mgid, q_key = mgid.replace(p_key=p_key), q_key or _BROADCAST_Q_KEY
    if _number_of(mgid) in there:
        return
    for group in _groups(_number_of(mgid), p_key, flags, q_key):
        broadcast = broadcast_mgid(p_key, group.scope)
        if is_ip and group.mgid != broadcast and broadcast not in there:
            before = IPv6Address(broadcast)
            raise ValueError(f"mgid {text}: a group of IPoIB, expected the broadcast group {before} before it")
        yield group


def _groups(mgid: int, p_key: int, flags: GroupFlags, q_key: int) -> Iterator[Record]:
    for name, value, allowed in (("mtu", flags.mtu, MTU.__members__.values()), ("rate", flags.rate, RATES)):
        if value not in allowed:
            raise ValueError(f"{name} {value} of a multicast group: expected {min(allowed)}..{max(allowed)}")
    for scope in sorted(flags.scopes) or [MulticastScope.LINK_LOCAL]:
        is_local = scope == MulticastScope.LINK_LOCAL
        yield MC_MEMBER_RECORD.record(
            mgid=_number_of(MGID.from_int(mgid).replace(scope=scope)),
            q_key=q_key,
            mtu_selector=EXACTLY,
            mtu=flags.mtu,
            t_class=flags.t_class,
            p_key=p_key,
            rate_selector=EXACTLY,
            rate=flags.rate,
            packet_life_time_selector=EXACTLY,
            sl=flags.sl,
            flow_label=flags.flow_label,
            hop_limit=0 if is_local else _HOPS_BEYOND_THE_LINK,
            scope=scope,
            join_state=JoinState.FULL,
        )


def _number_of(mgid: Record) -> int:
    return int.from_bytes(mgid.pack(), "big")


def _number(text: str) -> tuple[int, bool]:
    """The number that a text begins with, as strtoul reads it, and whether there is nothing else behind it."""
    match = _NUMBER.match(text)
    if match is None:
        return 0, False
    digits = match[0]
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
    return int(digits, base), match.end() == len(text)
