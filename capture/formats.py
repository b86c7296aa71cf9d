"""The formats of captures that are written: what begins a file, and what is around each ERF record in it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from capture.erf_record import ERF_DIRECTIONS, erf_record
from capture.wire_packet import Direction, Way, WirePacket
from toolchain.atomic_files import is_special
from toolchain.errors import UserError
from toolchain.growing_file import STDOUT

__all__ = ["CaptureFormat", "capture_format"]

_LINKTYPE_ERF: Final = 197
_MOST_BYTES: Final = 0x10000
"""Of an ERF record; readers make room for as many."""

_PCAP_US: Final = 0xA1B2C3D4
_PCAP_NS: Final = 0xA1B23C4D
_PCAP_HEADER = struct.Struct("<IHHiIII")
_PCAP_RECORD = struct.Struct("<IIII")

_BLOCK = struct.Struct("<II")
_SECTION = struct.Struct("<IHHq")
_INTERFACE = struct.Struct("<HHI")
_ENHANCED_PACKET = struct.Struct("<IIIIIII")
_STATISTICS = struct.Struct("<III")
_COUNT = struct.Struct("<Q")
_TOTAL = struct.Struct("<I")
_OPTION = struct.Struct("<HH")
_SECTION_HEADER_BLOCK: Final = 0x0A0D0D0A
_INTERFACE_DESCRIPTION_BLOCK: Final = 1
_INTERFACE_STATISTICS_BLOCK: Final = 5
_ENHANCED_PACKET_BLOCK: Final = 6
_BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D
_UNKNOWN_LENGTH: Final = -1
_AROUND_PACKET: Final = _ENHANCED_PACKET.size + _TOTAL.size
_END_OF_OPTIONS: Final = 0
_USER_APPLICATION: Final = 4
_INTERFACE_NAME: Final = 2
_SPEED: Final = 8
_TIME_RESOLUTION: Final = 9
_NANOSECONDS: Final = b"\x09"
_MICROSECONDS: Final = b"\x06"
_FLAGS: Final = 2
_RECEIVED: Final = 4
_DROPPED: Final = 5

_NS: Final = 10**9
_TICK_NS: Final = 1_000
"""Of a host's clock."""


class CaptureFormat(NamedTuple):
    """How a capture is written.

    Attributes:
        header: what begins a file, by the directions in it.
        record: what a packet becomes, of which so many bytes are kept.
        most_directions: how many a file can tell apart; None for any number.
        statistics: what becomes of a direction's number, the time of its last packet, and how many packets its host
            captured and missed.
    """

    header: Callable[[Sequence[Direction]], bytes]
    record: Callable[[WirePacket, int], bytes]
    most_directions: int | None = None
    statistics: Callable[[int, int, int, int], bytes] = lambda direction, time_ns, captured, lost: b""


def _no_header(directions: Sequence[Direction]) -> bytes:
    return b""


def _pcap_header(magic: int, directions: Sequence[Direction]) -> bytes:
    return _PCAP_HEADER.pack(magic, 2, 4, 0, 0, _MOST_BYTES, _LINKTYPE_ERF)


def _pcap_record(unit_ns: int, packet: WirePacket, keep_bytes: int) -> bytes:
    record = erf_record(packet, keep_bytes)
    seconds, nanoseconds = divmod(packet.time_ns, _NS)
    return _PCAP_RECORD.pack(seconds, nanoseconds // unit_ns, len(record), len(record)) + record


def _pcapng_header(directions: Sequence[Direction]) -> bytes:
    """A section, and an interface for each direction of a link, or host.

    Not one for each link, with the direction in a packet's flags: those mean in and out of the host that captures,
    which nobody is in a cable, whereas Wireshark shows the name of a packet's interface, and filters by it.
    """
    section = _SECTION.pack(_BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH)
    header = _block(_SECTION_HEADER_BLOCK, section + _option(_USER_APPLICATION, b"Ironband"))
    for direction in directions:
        resolution = _MICROSECONDS if direction.is_host else _NANOSECONDS
        options = _option(_INTERFACE_NAME, direction.name.encode()) + _option(_TIME_RESOLUTION, resolution)
        if direction.bits_per_s:
            options += _option(_SPEED, _COUNT.pack(direction.bits_per_s))
        header += _block(_INTERFACE_DESCRIPTION_BLOCK, _INTERFACE.pack(_LINKTYPE_ERF, 0, _MOST_BYTES) + options)
    return header


def _option(code: int, value: bytes) -> bytes:
    return _OPTION.pack(code, len(value)) + value + bytes(-len(value) % 4)


def _block(kind: int, body_and_options: bytes) -> bytes:
    body = body_and_options + _OPTION.pack(_END_OF_OPTIONS, 0)
    total = _BLOCK.size + len(body) + _TOTAL.size
    return _BLOCK.pack(kind, total) + body + _TOTAL.pack(total)


def _pcapng_record(packet: WirePacket, keep_bytes: int) -> bytes:
    record = erf_record(packet, keep_bytes)
    length, stamp, options = len(record), packet.time_ns, b""
    if packet.way is not None:
        stamp //= _TICK_NS
        options = _WAYS[packet.way]
    total = _AROUND_PACKET + length + len(options)
    head = _ENHANCED_PACKET.pack(
        _ENHANCED_PACKET_BLOCK, total, packet.direction, stamp >> 32, stamp & 0xFFFF_FFFF, length, length
    )
    return b"".join((head, record, options, _TOTAL.pack(total)))


_WAYS: Final = {way: _option(_FLAGS, _TOTAL.pack(way)) + _OPTION.pack(_END_OF_OPTIONS, 0) for way in Way}
"""Options of a packet that a host captured."""


def _pcapng_statistics(direction: int, time_ns: int, captured: int, lost: int) -> bytes:
    """All that the host would have had, and what was lost of that."""
    stamp = time_ns // _TICK_NS
    counts = _option(_RECEIVED, _COUNT.pack(captured + lost)) + _option(_DROPPED, _COUNT.pack(lost))
    return _block(_INTERFACE_STATISTICS_BLOCK, _STATISTICS.pack(direction, stamp >> 32, stamp & 0xFFFF_FFFF) + counts)


_PCAPNG: Final = CaptureFormat(_pcapng_header, _pcapng_record, statistics=_pcapng_statistics)


def _pcap(magic: int, unit_ns: int) -> CaptureFormat:
    return CaptureFormat(partial(_pcap_header, magic), partial(_pcap_record, unit_ns), ERF_DIRECTIONS)


_PCAP_OF_HOSTS: Final = _pcap(_PCAP_US, _TICK_NS)

_FORMATS: Final = {
    ".erf": CaptureFormat(_no_header, erf_record, ERF_DIRECTIONS),
    ".pcap": _pcap(_PCAP_NS, 1),
    ".pcapng": _PCAPNG,
}


def capture_format(place: str, directions: Sequence[Direction]) -> CaptureFormat:
    """The format of a capture, by the suffix of its name: pcapng for standard output, and for a pipe without suffix.

    Raises:
        UserError: another suffix, or more directions than the format can tell apart.
    """
    path = Path(place)
    if place == STDOUT or (not path.suffix and is_special(path.resolve())):
        return _PCAPNG
    if path.suffix not in _FORMATS:
        raise UserError(f"{place}: no format of captures by its suffix, allowed {', '.join(_FORMATS)}")
    found = _FORMATS[path.suffix]
    if found.most_directions is not None and len(directions) > found.most_directions:
        raise UserError(
            f"{place}: {len(directions)} directions of links, {path.suffix} can tell {found.most_directions} apart: "
            "name fewer links, or take .pcapng"
        )
    if path.suffix == ".pcap" and directions and all(direction.is_host for direction in directions):
        return _PCAP_OF_HOSTS
    return found
