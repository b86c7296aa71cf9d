"""RMPP: messages longer than a MAD, in segments that are acknowledged (IBTA vol 1, 13.6)."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

from .layout import Field, Layout
from .mad import MAD_BYTES, MAD_HEADER, MgmtClass
from .meaning import HEX, Bits, Code

__all__ = [
    "RMPP_END",
    "RMPP_HEADER",
    "RMPP_VERSION",
    "SEGMENT_BYTES",
    "RmppFlags",
    "RmppStatus",
    "RmppType",
    "data_offset",
    "has_rmpp",
    "is_vendor_with_oui",
    "rmpp_flags",
]

RMPP_VERSION: Final = 1


class RmppType(IntEnum):
    """RMPPHeader.RMPPType."""

    NONE = 0
    DATA = 1
    ACK = 2
    STOP = 3
    ABORT = 4


class RmppFlags(IntFlag):
    """RMPPHeader.RMPPFlags."""

    ACTIVE = 1
    FIRST = 2
    LAST = 4


class RmppStatus(IntEnum):
    """RMPPHeader.RMPPStatus."""

    NORMAL = 0
    RESOURCES_EXHAUSTED = 1
    TOTAL_TIME_TOO_LONG = 118
    INCONSISTENT_LAST_AND_PAYLOAD = 119
    INCONSISTENT_FIRST_AND_SEGMENT = 120
    BAD_TYPE = 121
    NEW_WINDOW_TOO_SMALL = 122
    SEGMENT_TOO_BIG = 123
    ILLEGAL_STATUS = 124
    UNSUPPORTED_VERSION = 125
    TOO_MANY_RETRIES = 126
    UNSPECIFIED = 127


_FIRST: Final = MAD_HEADER.size_bytes * 8

RMPP_HEADER: Final = Layout(
    "RMPPHeader",
    36,
    [
        Field("rmpp_version", _FIRST, 8),
        Field("rmpp_type", _FIRST + 8, 8, meaning=Code(RmppType)),
        Field("resp_time", _FIRST + 16, 5),
        Field("rmpp_flags", _FIRST + 21, 3, meaning=Bits(RmppFlags)),
        Field("rmpp_status", _FIRST + 24, 8, meaning=Code(RmppStatus)),
        Field("segment_number", _FIRST + 32, 32, meaning=HEX),
        Field("payload_length", _FIRST + 64, 32),
    ],
)
"""What follows the common header, whose 24 bytes count here. ``payload_length`` is NewWindowLast in an ACK."""

RMPP_END: Final = RMPP_HEADER.size_bytes
SEGMENT_BYTES: Final = MAD_BYTES - RMPP_END
"""Bytes of a segment after its RMPP header: the class's own header and data."""

_VENDOR_WITH_OUI: Final = range(0x30, 0x50)
_DATA_OFFSETS: Final[dict[int, int]] = {MgmtClass.SUBN_ADM: 56, MgmtClass.DEV_MGT: 64, 0x10: 64, 0x12: 64}
"""Where data begin in classes with RMPP: after what each segment repeats."""

_VENDOR_OFFSET: Final = 40


def is_vendor_with_oui(mgmt_class: int) -> bool:
    """Whether the MADs of a class say whose they are: bytes 37 to 39."""
    return mgmt_class in _VENDOR_WITH_OUI


def has_rmpp(mgmt_class: int) -> bool:
    """Whether the MADs of a class have an RMPP header."""
    return mgmt_class in _DATA_OFFSETS or is_vendor_with_oui(mgmt_class)


def data_offset(mgmt_class: int) -> int:
    """Where data begin in a MAD of a class with RMPP."""
    return _DATA_OFFSETS.get(mgmt_class, _VENDOR_OFFSET)


def rmpp_flags(mad: bytes) -> int:
    """The flags of a MAD; 0 if its class has none."""
    return RMPP_HEADER["rmpp_flags"].read(mad) if has_rmpp(mad[1]) and len(mad) >= RMPP_END else 0
