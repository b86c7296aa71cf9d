"""Codes of the link layer and of port attributes: LNH, MTU, VLs, states, LIDs, timers, queue pairs."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

__all__ = [
    "DATA_VL_COUNTS",
    "LID_MULTICAST_MAX",
    "LID_MULTICAST_MIN",
    "LID_PERMISSIVE",
    "LID_RESERVED",
    "LID_UNICAST_MAX",
    "LID_UNICAST_MIN",
    "LINK_WIDTHS",
    "LNH",
    "LVER",
    "MAX_HEADER_BYTES",
    "MIN_PKT_LEN_IBA",
    "MIN_PKT_LEN_RAW",
    "MTU",
    "P_KEY_DEFAULT",
    "QP_GSI",
    "QP_MULTICAST",
    "QP_SMI",
    "Q_KEY_GSI",
    "Q_KEY_SMI",
    "SERVICE_LEVELS",
    "TIMER_LIMIT",
    "VL15",
    "LinkSpeed",
    "LinkWidth",
    "PortPhysicalState",
    "PortState",
    "data_vls",
    "is_multicast_lid",
    "is_unicast_lid",
    "life_text",
    "max_pkt_len",
    "mtu_bytes",
    "mtu_code",
    "operational_vls",
    "timer_ns",
    "timer_text",
]


class LNH(IntEnum):
    """LRH.LNH, the header that follows the LRH (IBTA vol 1, 7.7).

    Bit 1 says IBA transport, bit 0 says that a GRH or IPv6 header follows.
    """

    RAW = 0
    RAW_IPV6 = 1
    IBA_LOCAL = 2
    IBA_GLOBAL = 3


LVER: Final = 0
"""LRH.LVer of every packet of this version of the link layer (IBTA vol 1, 7.7)."""


class MTU(IntEnum):
    """MTU codes as in PortInfo.MTUCap and NeighborMTU (IBTA vol 1, 14.2.5.6)."""

    MTU_256 = 1
    MTU_512 = 2
    MTU_1024 = 3
    MTU_2048 = 4
    MTU_4096 = 5


MAX_HEADER_BYTES: Final = 124
"""What LRH.PktLen may exceed the MTU by: headers and ICRC (IBTA vol 1, 7.7)."""

MIN_PKT_LEN_RAW: Final = 5
"""Least LRH.PktLen of a raw packet, in 4-byte words (IBTA vol 1, 7.7)."""

MIN_PKT_LEN_IBA: Final = 6
"""Least LRH.PktLen of an IBA transport packet, in 4-byte words (IBTA vol 1, 7.7)."""


def mtu_bytes(code: int) -> int:
    """Payload bytes of an MTU code.

    Raises:
        ValueError: a code outside 1..5.
    """
    if not MTU.MTU_256 <= code <= MTU.MTU_4096:
        raise ValueError(f"MTU code {code}, allowed 1..5 (256..4096 bytes)")
    return 128 << code


def mtu_code(payload_bytes: int) -> MTU:
    """MTU code of a size in payload bytes.

    Raises:
        ValueError: a size other than 256, 512, 1024, 2048 and 4096.
    """
    for code in MTU:
        if mtu_bytes(code) == payload_bytes:
            return code
    raise ValueError(f"MTU of {payload_bytes} bytes, allowed 256, 512, 1024, 2048, 4096")


def max_pkt_len(code: int) -> int:
    """Largest LRH.PktLen, in 4-byte words, that an MTU code lets through (IBTA vol 1, 7.7).

    Raises:
        ValueError: a code outside 1..5.
    """
    return (mtu_bytes(code) + MAX_HEADER_BYTES) // 4


SERVICE_LEVELS: Final = 16
"""SLs 0..15, as LRH.SL has four bits (IBTA vol 1, 7.6 and 7.7)."""

VL15: Final = 15
"""The management VL: SMPs only, no flow control (IBTA vol 1, 7.6)."""

DATA_VL_COUNTS: Final = (1, 2, 4, 8, 15)
"""Numbers of data VLs a port may have, in the order of the VLCap and OperationalVLs codes 1..5."""


def data_vls(code: int) -> int:
    """Number of data VLs, VL0 upwards, of an OperationalVLs or VLCap code (IBTA vol 1, 14.2.5.6).

    Raises:
        ValueError: a code outside 1..5.
    """
    if not 1 <= code <= len(DATA_VL_COUNTS):
        raise ValueError(f"OperationalVLs code {code}, allowed 1..5 (1, 2, 4, 8, 15 data VLs)")
    return DATA_VL_COUNTS[code - 1]


def operational_vls(count: int) -> int:
    """OperationalVLs or VLCap code of a number of data VLs.

    Raises:
        ValueError: a number other than 1, 2, 4, 8 and 15.
    """
    if count not in DATA_VL_COUNTS:
        raise ValueError(f"{count} data VLs, allowed 1, 2, 4, 8, 15")
    return DATA_VL_COUNTS.index(count) + 1


class PortState(IntEnum):
    """PortInfo.PortState, the link layer's state (IBTA vol 1, 7.2 and 14.2.5.6)."""

    NO_CHANGE = 0
    DOWN = 1
    INITIALIZE = 2
    ARMED = 3
    ACTIVE = 4
    ACTIVE_DEFER = 5


class PortPhysicalState(IntEnum):
    """PortInfo.PortPhysicalState (IBTA vol 1, 14.2.5.6; the states are those of vol 2)."""

    NO_CHANGE = 0
    SLEEP = 1
    POLLING = 2
    DISABLED = 3
    PORT_CONFIGURATION_TRAINING = 4
    LINK_UP = 5
    LINK_ERROR_RECOVERY = 6
    PHY_TEST = 7


class LinkWidth(IntFlag):
    """Bits of PortInfo.LinkWidthSupported, Enabled and Active (IBTA vol 1, 14.2.5.6)."""

    X1 = 1
    X4 = 2
    X8 = 4
    X12 = 8
    X2 = 16


LINK_WIDTHS: Final = int(LinkWidth.X1 | LinkWidth.X4)
"""Those of this design's links."""


class LinkSpeed(IntFlag):
    """Bits of PortInfo.LinkSpeedSupported, Enabled and Active (IBTA vol 1, 14.2.5.6).

    One symbol takes 4 ns at SDR, 2 ns at DDR, 1 ns at QDR.
    """

    SDR = 1
    DDR = 2
    QDR = 4


TIMER_LIMIT: Final = 19
"""HOQLife and LifeTimeValue above this mean that nothing expires (IBTA vol 1, 14.2.5.4 and 14.2.5.6)."""


def timer_ns(code: int) -> int:
    """Nanoseconds of a timer code: 4.096 us times 2 to the code.

    PortInfo.SubnetTimeOut, RespTimeValue and HOQLife and SwitchInfo.LifeTimeValue are such codes (IBTA vol 1,
    14.2.5.4 and 14.2.5.6).

    Raises:
        ValueError: a code outside 0..31.
    """
    if not 0 <= code <= 31:
        raise ValueError(f"timer code {code}, allowed 0..31")
    return 4096 << code


def timer_text(code: int) -> str:
    """The time of a code, as in SubnetTimeOut.

    Raises:
        ValueError: a code outside 0..31.
    """
    nanoseconds = timer_ns(code)
    for unit, size in (("s", 10**9), ("ms", 10**6)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.6g} {unit}"
    return f"{nanoseconds / 1000:.6g} us"


def life_text(code: int) -> str:
    """The time of a code of which the largest mean no limit, as in HOQLife.

    Raises:
        ValueError: a code outside 0..31.
    """
    return "infinite" if code > TIMER_LIMIT else timer_text(code)


LID_RESERVED: Final = 0
"""No port has this LID (IBTA vol 1, 4.1)."""

LID_UNICAST_MIN: Final = 0x0001
LID_UNICAST_MAX: Final = 0xBFFF
LID_MULTICAST_MIN: Final = 0xC000
LID_MULTICAST_MAX: Final = 0xFFFE

LID_PERMISSIVE: Final = 0xFFFF
"""Reaches the management of whichever port receives it: SMPs only (IBTA vol 1, 4.1)."""


def is_unicast_lid(lid: int) -> bool:
    """True for 0x0001..0xBFFF."""
    return LID_UNICAST_MIN <= lid <= LID_UNICAST_MAX


def is_multicast_lid(lid: int) -> bool:
    """True for 0xC000..0xFFFE; the permissive LID is not one of them."""
    return LID_MULTICAST_MIN <= lid <= LID_MULTICAST_MAX


QP_SMI: Final = 0
"""Queue pair of the Subnet Management Interface, on VL15."""

QP_GSI: Final = 1
"""Queue pair of the General Services Interface."""

QP_MULTICAST: Final = 0xFFFFFF
"""BTH.DestQP of a multicast packet."""

Q_KEY_SMI: Final = 0
Q_KEY_GSI: Final = 0x80010000

P_KEY_DEFAULT: Final = 0xFFFF
"""Full member of the default partition."""
