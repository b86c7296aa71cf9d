"""MCMemberRecord, a port's membership of a multicast group, and multicast GIDs (IBTA vol 1, 15.2.5.17 and 4.1.1)."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

from .codes import life_text
from .layout import Field, Layout
from .meaning import GID, HEX, Bits, Code, Derived
from .path_record import MTU_MEANING, RATE_MEANING

__all__ = [
    "MC_MEMBER_RECORD",
    "MGID",
    "MULTICAST_PREFIX",
    "JoinState",
    "MgidSignature",
    "MulticastScope",
]

MULTICAST_PREFIX: Final = 0xFF
"""The first byte of every multicast GID, and of no other."""


class JoinState(IntFlag):
    """What a port is in a group; it may be several."""

    FULL = 1
    """It sends and receives; the group is there as long as it has such a member."""
    NON = 2
    """It sends and receives."""
    SEND_ONLY_NON = 4
    SEND_ONLY_FULL = 8
    """It only sends, and the group is there for it too."""


class MulticastScope(IntEnum):
    """How far a group reaches."""

    LINK_LOCAL = 2
    SITE_LOCAL = 5
    ORGANIZATION_LOCAL = 8
    GLOBAL = 14


class MgidSignature(IntEnum):
    """Bytes 2 and 3 of the MGIDs whose form is laid down: of IPoIB (RFC 4391, 4), and those that the Subnet
    Administrator gives out."""

    IP_V4 = 0x401B
    IP_V6 = 0x601B
    ADMINISTRATOR = 0xA01B


MGID: Final = Layout(
    "MGID",
    16,
    [
        Field("prefix", 0, 8, MULTICAST_PREFIX, meaning=HEX),
        Field("flags", 8, 4),
        Field("scope", 12, 4, meaning=Code(MulticastScope)),
        Field("signature", 16, 16, meaning=Code(MgidSignature)),
        Field("p_key", 32, 16, meaning=HEX),
        Field("group", 48, 80, meaning=HEX),
    ],
)
"""A multicast GID. Of ``flags`` 1 says that the group is not a permanently assigned one, and the others are 0;
``signature``, ``p_key`` and ``group`` are so divided in MGIDs of IPoIB."""

MC_MEMBER_RECORD: Final = Layout(
    "MCMemberRecord",
    52,
    [
        Field("mgid", 0, 128, meaning=GID),
        Field("port_gid", 128, 128, meaning=GID),
        Field("q_key", 256, 32, meaning=HEX),
        Field("mlid", 288, 16, meaning=HEX),
        Field("mtu_selector", 304, 2),
        Field("mtu", 306, 6, meaning=MTU_MEANING),
        Field("t_class", 312, 8, meaning=HEX),
        Field("p_key", 320, 16, meaning=HEX),
        Field("rate_selector", 336, 2),
        Field("rate", 338, 6, meaning=RATE_MEANING),
        Field("packet_life_time_selector", 344, 2),
        Field("packet_life_time", 346, 6, meaning=Derived(life_text)),
        Field("sl", 352, 4),
        Field("flow_label", 356, 20, meaning=HEX),
        Field("hop_limit", 376, 8),
        Field("scope", 384, 4, meaning=Code(MulticastScope)),
        Field("join_state", 388, 4, meaning=Bits(JoinState)),
        Field("proxy_join", 392, 1),
    ],
)
"""50 bytes used of 52."""
