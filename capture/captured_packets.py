"""The packets of a capture one by one, each made whole: as they have to be on a wire again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

import numpy as np

from capture.chunk import MOST_HEADER_BYTES, Chunk, PacketFlag
from capture.fields import Fields
from capture.reader import capture_reader
from capture.wire_packet import WirePacket
from wire.codes import LNH, MIN_PKT_LEN_IBA
from wire.crc import ICRC_BYTES, VCRC_BYTES, icrc, invert_vcrc, vcrc, vcrc_good
from wire.headers import LRH
from wire.packet import WORD_BYTES
from wire.symbols import LANES
from wire.trace import Delimiter

__all__ = ["captured_packets", "chunk_of", "whole_packets"]

_LEAST_BYTES: Final = MIN_PKT_LEN_IBA * WORD_BYTES


def captured_packets(place: str, count: int) -> Iterator[WirePacket]:
    """The first COUNT packets of a capture, in its order; directions by their numbers there."""
    with capture_reader(place) as capture:
        yield from islice(chain.from_iterable(map(whole_packets, capture.chunks())), count)


def whole_packets(chunk: Chunk) -> Iterator[WirePacket]:
    """The packets of a chunk.

    What was not captured of a data packet is zeros, with the ICRC and the VCRC that these have; so is a VCRC that is
    missing. A packet said to have errors that nothing else tells is cut before its last row, so that no port takes it.
    """
    fields = Fields(chunk)
    lost = np.where(fields.has_lrh, fields.lost_bytes(), 0)
    data = chunk.data.data
    for time_ns, direction, flags, start, length, missing in zip(
        *(one.tolist() for one in (chunk.time_ns, chunk.direction, chunk.flags, chunk.start, chunk.length, lost)),
        strict=True,
    ):
        body, ending = bytes(data[start : start + length]), Delimiter.EGP
        if flags & PacketFlag.CUT:
            ending = Delimiter.CUT
        elif flags & PacketFlag.MARKED:
            ending = Delimiter.EBP
        if ending is not Delimiter.CUT and missing > 0 and (flags & PacketFlag.SHORT or missing == VCRC_BYTES):
            body = _completed(body, missing, ending is Delimiter.EBP)
        if flags & PacketFlag.BAD and ending is Delimiter.EGP and vcrc_good(body):
            body, ending = body[: 1 - LANES], Delimiter.CUT
        yield WirePacket(direction, time_ns, bool(flags & PacketFlag.LINK), body, ending)


def _completed(body: bytes, missing: int, marked: bool) -> bytes:
    if missing > VCRC_BYTES:
        size = len(body) + missing - VCRC_BYTES
        body += bytes(max(0, size - len(body)))
        if size >= _LEAST_BYTES and LRH["lnh"].read(body) & LNH.IBA_LOCAL:
            body = body[:-ICRC_BYTES] + _icrc(body[:-ICRC_BYTES])
    elif missing < VCRC_BYTES:
        body = body[: missing - VCRC_BYTES]
    check = vcrc(body)
    return body + (invert_vcrc(check) if marked else check)


def _icrc(body: bytes) -> bytes:
    try:
        return icrc(body)
    except ValueError:  # too short for its headers
        return bytes(ICRC_BYTES)


_FLAGS: Final = {Delimiter.EGP: 0, Delimiter.EBP: int(PacketFlag.MARKED), Delimiter.CUT: int(PacketFlag.CUT)}


def chunk_of(packets: Sequence[WirePacket]) -> Chunk:
    """Packets as columns, to be told like a capture's."""
    lengths = np.array([len(packet.data) for packet in packets], np.int64)
    data = b"".join(packet.data for packet in packets) + bytes(MOST_HEADER_BYTES)
    flags = [_FLAGS[packet.ending] | packet.is_link * PacketFlag.LINK for packet in packets]
    return Chunk(
        np.frombuffer(data, np.uint8),
        np.array([packet.time_ns for packet in packets], np.int64),
        np.array([packet.direction for packet in packets], np.int64),
        np.array(flags, np.int64),
        np.cumsum(lengths) - lengths,
        lengths,
    )
