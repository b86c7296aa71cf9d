"""Packets as ERF records (Endace's extensible record format), which Wireshark dissects as InfiniBand."""

from __future__ import annotations

import struct
from typing import Final

from capture.wire_packet import WirePacket
from wire.crc import vcrc_good
from wire.headers import GRH, LRH
from wire.symbols import LINK_PACKET_BYTES
from wire.trace import Delimiter

__all__ = ["ERF_DIRECTIONS", "WHOLE", "erf_record"]

ERF_DIRECTIONS: Final = 4
"""An ERF record has two bits for its interface."""

_TIME = struct.Struct("<Q")
"""Seconds in the high word, their binary fraction in the low one; all else of a record is big endian."""

_REST = struct.Struct(">BBHHH")
"""Type, flags, bytes of the record, loss counter, bytes on the wire."""

_HEADER_BYTES: Final = _TIME.size + _REST.size
_ALIGNMENT: Final = 8
_INFINIBAND: Final = 21
_INFINIBAND_LINK: Final = 25
_VARIABLE_LENGTH: Final = 0x04
_TRUNCATED: Final = 0x08
_RECEIVE_ERROR: Final = 0x10
_MARKED: Final = 0x20
"""Of a data stream error, which did not arise on this wire: what EBP says."""

WHOLE: Final = 0xFFFF // _ALIGNMENT * _ALIGNMENT - _HEADER_BYTES
"""As many bytes of a packet as a record has room for."""
_MOST_LOST: Final = 0xFFFF
_NS: Final = 10**9
_HALF_NS: Final = _NS // 2
_PADDING: Final = [bytes(-length % _ALIGNMENT) for length in range(_ALIGNMENT)]

_LINK_PACKET_BYTES: Final = LRH.size_bytes + GRH.size_bytes
_LINK_PADDING: Final = bytes(_LINK_PACKET_BYTES - LINK_PACKET_BYTES)


def erf_record(packet: WirePacket, keep_bytes: int = WHOLE) -> bytes:
    """The record of a packet, a multiple of 8 bytes, with no more than so many bytes of a data packet.

    A link packet of 6 bytes is said to have had 48, all others zero: Wireshark (4.0) looks for an LRH in it, and if
    FCTBS looks like an LNH of 3 for a GRH behind that, and takes it for malformed where there is none.
    Flags: receive error for what no port takes as good, with data stream error if EBP ended it, with truncated if it
    was cut. A wrong ICRC, which is not the link's to check, is not flagged. The loss counter is of what a host missed.
    """
    direction, time_ns, is_link, data, ending, _way, lost = packet
    flags = _VARIABLE_LENGTH | direction & ERF_DIRECTIONS - 1
    if ending is not Delimiter.EGP:
        flags |= _RECEIVE_ERROR | (_MARKED if ending is Delimiter.EBP else _TRUNCATED)
        data = data[:WHOLE]
    elif not vcrc_good(data):
        flags |= _RECEIVE_ERROR
        data = data[:WHOLE]
    length = len(data)
    if is_link and length == LINK_PACKET_BYTES:
        data += _LINK_PADDING
        length = _LINK_PACKET_BYTES
    elif length > keep_bytes:
        data = data[:keep_bytes]
    padding = _PADDING[len(data) % _ALIGNMENT]
    kind = _INFINIBAND_LINK if is_link else _INFINIBAND
    stamp = _TIME.pack(((time_ns << 32) + _HALF_NS) // _NS)
    rest = _REST.pack(kind, flags, _HEADER_BYTES + len(data) + len(padding), min(lost, _MOST_LOST), length)
    return b"".join((stamp, rest, data, padding))
