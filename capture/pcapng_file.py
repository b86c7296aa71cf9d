"""Reads pcapng files: sections of either byte order, interfaces, packets in enhanced, simple and obsolete blocks."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capture.records import NO_TIME, Cut, Integers, Interface, Records, gathered

__all__ = ["PCAPNG_MAGIC", "PcapngFile"]

_SECTION_HEADER: Final = 0x0A0D0D0A
_INTERFACE_DESCRIPTION: Final = 1
_OBSOLETE_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_ENHANCED_PACKET: Final = 6

PCAPNG_MAGIC: Final = _SECTION_HEADER.to_bytes(4, "big")
"""The same in both byte orders."""

_BYTE_ORDERS: Final = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}
_SMALLEST: Final = 12
_SMALLEST_SECTION: Final = 28
_SMALLEST_INTERFACE: Final = 20
_SUPPORTED_MAJOR: Final = 1
_MOST_BYTES: Final = 1 << 24
"""Of a block: one that says more is damaged."""

_DATA_AT: Final = {_ENHANCED_PACKET: 28, _OBSOLETE_PACKET: 28, _SIMPLE_PACKET: 12}
"""Where the packet begins in a block that holds one."""

_END_OF_OPTIONS: Final = 0
_NAME: Final = 2
_FLAGS: Final = 2
_SPEED: Final = 8
_RESOLUTION: Final = 9
_OFFSET: Final = 14
_ERROR_FLAGS: Final = 0xFFFF_0000
"""In a packet's flags: what is wrong with it, by the link."""

_BINARY: Final = 0x80
_MOST_DIGITS: Final = 19
_MOST_BITS: Final = 63
_EXACT_BITS: Final = 33
"""So many bits of a second, times a thousand million, are no more than 63 bits."""

_NS_DIGITS: Final = 9
_NS: Final = 10**9
_LAST_SECOND: Final = (1 << 63) // _NS - 1
"""To which 64 bits count nanoseconds: in the year 2262."""


class _Clock(NamedTuple):
    """How the time stamps of an interface count: 2^-digits or 10^-digits of a second, from an offset on."""

    digits: int = 6
    binary: bool = False
    offset_s: int = 0

    def nanoseconds(self, stamp: NDArray[np.uint64]) -> Integers:
        """Since 1970."""
        unit = np.uint64(1 << self.digits if self.binary else 10**self.digits)
        seconds, fraction = stamp // unit, stamp % unit
        if self.binary:
            bits = min(self.digits, _EXACT_BITS)
            fraction = (fraction >> np.uint64(self.digits - bits)) * np.uint64(_NS) >> np.uint64(bits)
        elif self.digits <= _NS_DIGITS:
            fraction *= np.uint64(10 ** (_NS_DIGITS - self.digits))
        else:
            fraction //= np.uint64(10 ** (self.digits - _NS_DIGITS))
        offset = max(-_LAST_SECOND, min(self.offset_s, _LAST_SECOND))
        whole = np.minimum(seconds, np.uint64(_LAST_SECOND)).astype(np.int64)
        whole = np.minimum(whole, _LAST_SECOND - max(offset, 0)) + offset
        result: Integers = whole * _NS + fraction.astype(np.int64)
        return result


class PcapngFile:
    """Cuts packets out of a pcapng file."""

    def __init__(self) -> None:
        self.interfaces: list[Interface] = []
        self._clocks: list[_Clock] = []
        self._order = "<"
        self._section = 0
        """The first interface of the section, among all."""

    def cut(self, stretch: memoryview) -> Cut:
        """The packets at the front of a stretch, of one section and of interfaces that are known."""
        if stretch[:4] == PCAPNG_MAGIC:
            return self._section_header(stretch)
        head = struct.Struct(f"{self._order}II").unpack_from
        total_at = struct.Struct(f"{self._order}I").unpack_from
        places: list[int] = []
        kinds: list[int] = []
        position, damage = 0, ""
        last = len(stretch) - _SMALLEST
        while position <= last:
            kind, total = head(stretch, position)
            if kind == _SECTION_HEADER:
                break
            if total < _SMALLEST or total % 4 or total > _MOST_BYTES:
                damage = f"a block of {total} bytes, allowed multiples of 4 from {_SMALLEST} to {_MOST_BYTES}"
                break
            end = position + total
            if end > len(stretch):
                break
            if total_at(stretch, end - 4)[0] != total:
                damage = f"a block that says {total} bytes before it and {total_at(stretch, end - 4)[0]} after it"
                break
            if kind in _DATA_AT:
                places.append(position)
                kinds.append(kind)
            elif kind == _INTERFACE_DESCRIPTION:
                damage = self._interface(bytes(stretch[position:end]))
                if damage:
                    break
            position = end
        records, bad = self._records(stretch, np.array(places, np.int64), np.array(kinds, np.int64))
        if bad:
            return Cut(records, places[len(records.start)], bad)
        return Cut(records, position, damage)

    def _section_header(self, stretch: memoryview) -> Cut:
        nothing = self._records(memoryview(b""), np.zeros(0, np.int64), np.zeros(0, np.int64))[0]
        if len(stretch) < _SMALLEST:
            return Cut(nothing, 0)
        order = _BYTE_ORDERS.get(bytes(stretch[8:12]))
        if order is None:
            return Cut(nothing, 0, f"a section whose byte order is {stretch[8:12].hex()}, allowed 1a2b3c4d, 4d3c2b1a")
        total = struct.unpack_from(f"{order}I", stretch, 4)[0]
        if not _SMALLEST_SECTION <= total <= _MOST_BYTES or total % 4:
            return Cut(
                nothing, 0, f"a section's header of {total} bytes, allowed multiples of 4 from {_SMALLEST_SECTION}"
            )
        if total > len(stretch):
            return Cut(nothing, 0)
        major, minor = struct.unpack_from(f"{order}HH", stretch, 12)
        if major != _SUPPORTED_MAJOR:
            return Cut(nothing, 0, f"a section of version {major}.{minor}, allowed {_SUPPORTED_MAJOR}.*")
        self._order = order
        self._section = len(self.interfaces)
        return Cut(nothing, total)

    def _interface(self, block: bytes) -> str:
        """Take an interface; what is wrong with it, in words."""
        if len(block) < _SMALLEST_INTERFACE:
            return f"an interface's description of {len(block)} bytes, allowed {_SMALLEST_INTERFACE} and above"
        name, speed, clock = "", 0, _Clock()
        for code, value in self._options(block, _SMALLEST_INTERFACE - 4):
            if code == _NAME:
                name = value.rstrip(b"\0").decode(errors="replace")
            elif code == _SPEED and len(value) == 8:
                speed = struct.unpack(f"{self._order}Q", value)[0]
            elif code == _RESOLUTION and value:
                digits, binary = value[0] & ~_BINARY, bool(value[0] & _BINARY)
                most = _MOST_BITS if binary else _MOST_DIGITS
                if digits > most:
                    return f"an interface whose clock counts {2 if binary else 10}^-{digits} s, allowed to -{most}"
                clock = clock._replace(digits=digits, binary=binary)
            elif code == _OFFSET and len(value) == 8:
                clock = clock._replace(offset_s=struct.unpack(f"{self._order}q", value)[0])
        self.interfaces.append(Interface(struct.unpack_from(f"{self._order}H", block, 8)[0], name, speed))
        self._clocks.append(clock)
        return ""

    def _options(self, block: bytes, position: int) -> Iterator[tuple[int, bytes]]:
        """Code and value of each option from a place in a block on."""
        option = struct.Struct(f"{self._order}HH")
        last = len(block) - 4 - option.size
        while position <= last:
            code, length = option.unpack_from(block, position)
            position += option.size
            if code == _END_OF_OPTIONS or position + length > len(block) - 4:
                return
            yield code, block[position : position + length]
            position += length + -length % 4

    def _records(self, stretch: memoryview, place: Integers, kind: Integers) -> tuple[Records, str]:
        """The packets of blocks, up to one that cannot be right, and what is wrong with that."""
        data = np.frombuffer(stretch, np.uint8)
        little = self._order == "<"
        # Not all of these are there in short blocks.
        total, first, high, low, captured, original = (
            gathered(data, np.minimum(place + offset, len(data) - 4), 4, little=little)
            for offset in (4, 8, 12, 16, 20, 24)
        )
        simple, obsolete = kind == _SIMPLE_PACKET, kind == _OBSOLETE_PACKET
        data_at = np.where(simple, _DATA_AT[_SIMPLE_PACKET], _DATA_AT[_ENHANCED_PACKET])
        room = total - data_at - 4
        original = np.where(simple, first, original)
        captured = np.where(simple, np.minimum(original, np.maximum(room, 0)), captured)
        interface = np.where(simple, 0, first)
        if obsolete.any():
            interface = np.where(obsolete, gathered(data, place + 8, 2, little=little), interface)
        wrong = (captured > room) | (interface >= len(self.interfaces) - self._section)
        if wrong.any():
            count = int(np.argmax(wrong))
            good, _ = self._records(stretch, place[:count], kind[:count])
            if captured[count] > room[count]:
                return good, f"a packet of {captured[count]} bytes in a block with room for {room[count]}"
            return good, f"a packet of interface {interface[count]}, of which there is no description"
        interface = interface + self._section
        stamp = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
        time_ns = np.full(len(place), NO_TIME, np.int64)
        for one in np.unique(interface[~simple]).tolist():
            of_it = (interface == one) & ~simple
            time_ns[of_it] = self._clocks[one].nanoseconds(stamp[of_it])
        start = place + data_at
        return Records(
            start, captured, original, time_ns, interface, self._bad(stretch, place, start, captured, total)
        ), ""

    def _bad(
        self, stretch: memoryview, place: Integers, start: Integers, captured: Integers, total: Integers
    ) -> Integers:
        """Of which packets the block's options say that they were received with errors."""
        bad = np.zeros_like(place)
        options = start + captured + -captured % 4
        for index in np.flatnonzero(place + total - options >= _SMALLEST).tolist():
            block = bytes(stretch[place[index] : place[index] + total[index]])
            for code, value in self._options(block, int(options[index] - place[index])):
                if code == _FLAGS and len(value) == 4:
                    bad[index] = bool(struct.unpack(f"{self._order}I", value)[0] & _ERROR_FLAGS)
        return bad
