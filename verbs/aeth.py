"""What the syndrome of an AETH says: credits, RNR timers, NAK codes (IBTA vol 1, 9.7.5.2 and 9.7.7.2)."""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from typing import Final

__all__ = [
    "CREDITS",
    "NO_CREDIT_COUNT",
    "RNR_TIMER_US",
    "AckKind",
    "NakCode",
    "ack_kind",
    "ack_timeout_cycles",
    "ack_value",
    "credit_code",
    "rnr_timer_cycles",
    "syndrome",
]


class AckKind(IntEnum):
    """Bits 6:5 of the syndrome; what bits 4:0 are follows from it. 2 is reserved."""

    ACK = 0
    RNR_NAK = 1
    NAK = 3


class NakCode(IntEnum):
    """Bits 4:0 of a NAK's syndrome."""

    PSN_SEQUENCE_ERROR = 0
    INVALID_REQUEST = 1
    REMOTE_ACCESS_ERROR = 2
    REMOTE_OPERATIONAL_ERROR = 3
    INVALID_RD_REQUEST = 4


_KINDS: Final = (AckKind.ACK, AckKind.RNR_NAK, None, AckKind.NAK)
_VALUE_BITS: Final = 5
_VALUE_MASK: Final = (1 << _VALUE_BITS) - 1

NO_CREDIT_COUNT: Final = 31
"""The credit code of a responder that counts none, as with a shared receive queue."""

CREDITS: Final = (
    *(0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768),
    *(1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768),
)
"""Receive requests that are posted, by credit code 0..30."""

RNR_TIMER_US: Final = (
    *(655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1_280, 1_920),
    *(2_560, 3_840, 5_120, 7_680, 10_240, 15_360, 20_480, 30_720, 40_960, 61_440),
    *(81_920, 122_880, 163_840, 245_760, 327_680, 491_520),
)
"""Microseconds that an RNR NAK asks to wait, by timer code 0..31."""


def syndrome(kind: AckKind, value: int) -> int:
    """The syndrome byte: `value` is a credit code, a timer code or a NAK code."""
    return kind << _VALUE_BITS | value


def ack_kind(syndrome_byte: int) -> AckKind | None:
    """What a syndrome says; None for what is reserved, bit 7 included."""
    kind = syndrome_byte >> _VALUE_BITS
    return _KINDS[kind] if kind < len(_KINDS) else None


def ack_value(syndrome_byte: int) -> int:
    """Credit code, timer code or NAK code."""
    return syndrome_byte & _VALUE_MASK


def credit_code(posted: int) -> int:
    """The code of the largest count that is no more than is posted."""
    return bisect_right(CREDITS, posted) - 1


def rnr_timer_cycles(code: int, cycle_ns: int) -> int:
    """Cycles of an RNR timer code."""
    return RNR_TIMER_US[code] * 1000 // cycle_ns


def ack_timeout_cycles(code: int, cycle_ns: int) -> int | None:
    """Cycles of a Local ACK Timeout: 4.096 us times 2 to the code; None for 0, which waits for ever.

    The standard lets a requester take up to four times as long (IBTA vol 1, 9.9.2.1.1); this one does not.
    """
    return (4096 << code) // cycle_ns if code else None
