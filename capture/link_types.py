"""What records of a capture hold: InfiniBand from the LRH on, or in ERF records."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capture.chunk import PacketFlag
from capture.records import NO_TIME, Integers, Records, gathered
from wire.symbols import LINK_PACKET_BYTES

__all__ = ["Damage", "Packets", "erf_packets", "plain_packets"]

_ERF_HEADER_BYTES: Final = 16
_EXTENSION_BYTES: Final = 8
_MORE: Final = 0x80
"""Of a type: a header follows."""

_INFINIBAND: Final = 21
_INFINIBAND_LINK: Final = 25
_PORT: Final = 0x03
_TRUNCATED: Final = 0x08
_RECEIVE_ERROR: Final = 0x10
_STREAM_ERROR: Final = 0x20
_NS: Final = 10**9
_HALF: Final = 1 << 31


class Packets(NamedTuple):
    """InfiniBand packets among records; each attribute an array.

    Attributes:
        record: index of its record.
        start, length, time_ns, flags: as in Chunk.
        port: of the interface, where it has several.
    """

    record: Integers
    start: Integers
    length: Integers
    time_ns: Integers
    flags: Integers
    port: Integers


class Damage(NamedTuple):
    """A record that cannot be right: where it begins, and what is wrong, in words."""

    start: int
    what: str


def plain_packets(records: Records) -> Packets:
    """Of records that begin with the LRH: all are data packets."""
    count = len(records.start)
    flags = np.where(records.original > records.captured, int(PacketFlag.SHORT), 0)
    flags |= records.bad * int(PacketFlag.BAD)
    time_ns = np.where(records.time_ns == NO_TIME, 0, records.time_ns)
    return Packets(np.arange(count), records.start, records.captured, time_ns, flags, np.zeros(count, np.int64))


def erf_packets(data: NDArray[np.uint8], records: Records) -> tuple[Packets, Damage | None]:
    """Of ERF records, up to one that has no room for its header.

    DATA has some bytes more than the records.
    """
    start, captured = records.start, records.captured
    header, known = _headers(data, start, captured)
    length_at = gathered(data, start + 10, 2) if len(start) else start
    # Of a record that was cut by who captured it, less is there than it says.
    room = np.minimum(length_at, captured) - header
    wrong = ~known | (room < 0)
    if wrong.any():
        count = int(np.argmax(wrong))
        good, _ = erf_packets(data, records.at(slice(count)))
        return good, Damage(int(start[count]), f"{captured[count]} bytes, too few for an ERF record")
    kind = data[start + 8] & ~np.uint8(_MORE)
    is_link = kind == _INFINIBAND_LINK
    found = np.flatnonzero((kind == _INFINIBAND) | is_link)
    start, header, room, is_link = start[found], header[found], room[found], is_link[found]
    said = data[start + 9].astype(np.int64)
    on_wire = gathered(data, start + 14, 2)
    length = np.minimum(room, on_wire)
    flags = np.where(is_link, int(PacketFlag.LINK), 0)
    for bit, flag in (
        (_RECEIVE_ERROR, PacketFlag.BAD),
        (_STREAM_ERROR, PacketFlag.MARKED),
        (_TRUNCATED, PacketFlag.CUT),
    ):
        flags |= np.where(said & bit, int(flag), 0)
    flags |= np.where(on_wire > room, int(PacketFlag.SHORT), 0) | records.bad[found] * int(PacketFlag.BAD)
    place = start + header
    length = np.where(is_link, _without_padding(data, place, length), length)
    time_ns = np.where(records.time_ns[found] == NO_TIME, _time_ns(data, start), records.time_ns[found])
    return Packets(found, place, length, time_ns, flags, said & _PORT), None


def _headers(data: NDArray[np.uint8], start: Integers, captured: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Bytes of each record's header with its extensions, and whether they are all there."""
    header = np.full(len(start), _ERF_HEADER_BYTES)
    known = captured >= _ERF_HEADER_BYTES
    going_on = np.flatnonzero(known & (data[start + 8] & _MORE != 0))
    while len(going_on):
        extension = header[going_on]
        header[going_on] += _EXTENSION_BYTES
        there = header[going_on] <= captured[going_on]
        known[going_on[~there]] = False
        going_on, extension = going_on[there], extension[there]
        going_on = going_on[data[start[going_on] + extension] & _MORE != 0]
    return header, known


def _without_padding(data: NDArray[np.uint8], place: Integers, length: Integers) -> Integers:
    """The lengths of link packets without the zeros that writers add for Wireshark's sake."""
    result = length.copy()
    longer = np.flatnonzero(length > LINK_PACKET_BYTES)
    for size in np.unique(length[longer]).tolist():
        of_it = longer[length[longer] == size]
        rest = data[place[of_it, None] + np.arange(LINK_PACKET_BYTES, size)]
        result[of_it[~rest.any(axis=1)]] = LINK_PACKET_BYTES
    return result


def _time_ns(data: NDArray[np.uint8], start: Integers) -> Integers:
    """ERF's own times: seconds, and their binary fraction in 32 bits, little endian."""
    fraction = gathered(data, start, 4, little=True)
    seconds = gathered(data, start + 4, 4, little=True)
    result: Integers = seconds * _NS + ((fraction * _NS + _HALF) >> 32)
    return result
