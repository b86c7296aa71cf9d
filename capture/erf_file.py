"""Reads files of ERF records back to back, which have no header."""

from __future__ import annotations

from typing import Final

import numpy as np

from capture.records import ERF, NO_TIME, Cut, Interface, Records

__all__ = ["ErfFile", "looks_like_erf"]

_HEADER_BYTES: Final = 16
_TYPE, _FLAGS, _LENGTH = 8, 9, 10
"""Places in the header; the length is big endian, and counts the header too."""

_TYPES: Final = range(1, 49)
_RESERVED_FLAGS: Final = 0xC0


def looks_like_erf(beginning: bytes) -> bool:
    """Whether a file begins as an ERF record does, as far as that can be seen."""
    if len(beginning) < _HEADER_BYTES:
        return False
    length = beginning[_LENGTH] << 8 | beginning[_LENGTH + 1]
    known = beginning[_TYPE] & 0x7F in _TYPES and not beginning[_FLAGS] & _RESERVED_FLAGS
    return known and length >= _HEADER_BYTES


class ErfFile:
    """Cuts records out of a native ERF file."""

    def __init__(self) -> None:
        self.interfaces = [Interface(ERF)]

    def cut(self, stretch: memoryview) -> Cut:
        """The whole records at the front of a stretch."""
        ends = [0]
        position, damage = 0, ""
        last = len(stretch) - _HEADER_BYTES
        while position <= last:
            length = stretch[position + _LENGTH] << 8 | stretch[position + _LENGTH + 1]
            if length < _HEADER_BYTES:
                damage = f"an ERF record of {length} bytes, allowed {_HEADER_BYTES} and above"
                break
            position += length
            if position > len(stretch):
                break
            ends.append(position)
        bounds = np.array(ends, np.int64)
        captured = np.diff(bounds)
        zero = np.zeros_like(captured)
        records = Records(bounds[:-1], captured, captured, np.full_like(captured, NO_TIME), zero, zero)
        return Cut(records, ends[-1], damage)
