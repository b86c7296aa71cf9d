"""Reads pcap files: either byte order, microseconds or nanoseconds."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from capture.records import ERF, NO_TIME, Cut, Integers, Interface, Records, gathered

__all__ = ["PCAP_MAGICS", "PcapFile"]

_MICROSECONDS: Final = 0xA1B2C3D4
_NANOSECONDS: Final = 0xA1B23C4D

PCAP_MAGICS: Final = {
    magic.to_bytes(4, order): (order == "little", 1_000 if magic == _MICROSECONDS else 1)
    for magic in (_MICROSECONDS, _NANOSECONDS)
    for order in ("little", "big")
}
"""By the first four bytes of a file: whether it is little endian, and the nanoseconds of its fractions of a second."""

_HEADER_BYTES: Final = 24
_LINK_TYPE: Final = 20
_RECORD_HEADER_BYTES: Final = 16
_MOST_BYTES: Final = 1 << 24
"""Of a record: one that says more is damaged."""

_NS: Final = 10**9
_SUPPORTED_MAJOR: Final = 2


class PcapFile:
    """Cuts records out of a pcap file."""

    def __init__(self) -> None:
        self.interfaces: list[Interface] = []
        self._little = True
        self._fraction_ns = 1

    def cut(self, stretch: memoryview) -> Cut:
        """The whole records at the front of a stretch, or the file's header."""
        if not self.interfaces:
            return self._header(stretch)
        captured_at = struct.Struct("<I" if self._little else ">I").unpack_from
        places: list[int] = []
        position, damage = 0, ""
        last = len(stretch) - _RECORD_HEADER_BYTES
        while position <= last:
            captured = captured_at(stretch, position + 8)[0]
            if captured > _MOST_BYTES:
                damage = f"a record of {captured} bytes, allowed 0..{_MOST_BYTES}"
                break
            end = position + _RECORD_HEADER_BYTES + captured
            if end > len(stretch):
                break
            places.append(position)
            position = end
        return Cut(self._records(stretch, np.array(places, np.int64)), position, damage)

    def _header(self, stretch: memoryview) -> Cut:
        nothing = self._records(stretch, np.zeros(0, np.int64))
        if len(stretch) < _HEADER_BYTES:
            return Cut(nothing, 0)
        self._little, self._fraction_ns = PCAP_MAGICS[bytes(stretch[:4])]
        order = "<" if self._little else ">"
        major, minor = struct.unpack_from(f"{order}HH", stretch, 4)
        if major != _SUPPORTED_MAJOR:
            return Cut(nothing, 0, f"pcap of version {major}.{minor}, allowed {_SUPPORTED_MAJOR}.*")
        # Its upper half says whether frames end in an FCS, and of how many bytes.
        link_type = struct.unpack_from(f"{order}I", stretch, _LINK_TYPE)[0] & 0xFFFF
        self.interfaces.append(Interface(link_type))
        return Cut(nothing, _HEADER_BYTES)

    def _records(self, stretch: memoryview, place: Integers) -> Records:
        data = np.frombuffer(stretch, np.uint8)
        seconds, fraction, captured, original = (
            gathered(data, place + offset, 4, little=self._little) for offset in (0, 4, 8, 12)
        )
        # An ERF record has a time of its own, which is finer.
        erf = self.interfaces and self.interfaces[0].link_type == ERF
        return Records(
            place + _RECORD_HEADER_BYTES,
            captured,
            original,
            np.full(len(place), NO_TIME) if erf else seconds * _NS + fraction * self._fraction_ns,
            np.zeros_like(place),
            np.zeros_like(place),
        )
