"""The CRC of all rows that enter a link's direction in a period of cycles: of packets, idle data and none."""

from struct import Struct
from typing import Final
from zlib import crc32

__all__ = ["NO_ROW", "PERIOD", "ROW", "ROW_BYTES", "VALID", "row_crc", "rows_words"]

PERIOD: Final = 256
"""Cycles at most, a power of two. The first period begins with cycle 0."""

ROW: Final = Struct(">BI")
"""What stands for a cycle with a row: `VALID` and the K bits, of lane 0 in bit 3; then the data, lane 0 first."""

ROW_BYTES: Final = ROW.size

VALID: Final = 1 << 4

NO_ROW: Final = bytes(ROW_BYTES)
"""What stands for a cycle without one."""


def rows_words(cycles: bytes | bytearray) -> tuple[int, int, int]:
    """Words a, b and c of a ROWS record, for what stands for a period's cycles."""
    flags, data = ROW.unpack_from(cycles, len(cycles) - ROW_BYTES)
    return row_crc(cycles), data, flags


def row_crc(cycles: bytes | bytearray) -> int:
    """CRC-32 (polynomial `wire.crc.ICRC_POLY`, as in zlib) of what stands for a period's cycles.

    Packets contain a CRC-32 of the same polynomial, over which and them it would be nearly constant; the byte with the
    K bits in each row keeps the one apart from the other.
    """
    return crc32(cycles)
