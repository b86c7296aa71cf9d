"""Whether the CRCs of captured packets are right."""

from __future__ import annotations

import zlib
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capture.chunk import Chunk, PacketFlag
from capture.fields import Fields
from capture.records import Integers
from wire.codes import LNH
from wire.crc import (
    ICRC_BYTES,
    ICRC_RESIDUE,
    VCRC_BYTES,
    VCRC_INIT,
    VCRC_POLY_REFLECTED,
    VCRC_RESIDUE,
    icrc_masked,
    invert_vcrc,
    vcrc,
    vcrc_good,
)
from wire.headers import BTH, LRH
from wire.symbols import LINK_PACKET_BYTES

__all__ = ["Crc", "Crcs", "check_crcs"]

_GOOD_ICRC: Final = ICRC_RESIDUE ^ 0xFFFF_FFFF


def _step(byte: int) -> int:
    """What a byte makes of a register of zeros."""
    for _ in range(8):
        byte = byte >> 1 ^ (VCRC_POLY_REFLECTED if byte & 1 else 0)
    return byte


_STEPS: Final = np.array([_step(byte) for byte in range(256)])


class Crc(IntEnum):
    """What a CRC is."""

    ABSENT = 0
    """Not there, not captured, or not to be found."""
    RIGHT = 1
    WRONG = 2
    INVERTED = 3
    """The complement of the right one, by which a packet is marked bad."""


class Crcs(NamedTuple):
    """Of packets, a value of Crc each.

    Attributes:
        link: the VCRC of a data packet, the LPCRC of a link packet.
        icrc: of a packet with a BTH.
    """

    link: Integers
    icrc: Integers


def check_crcs(chunk: Chunk, fields: Fields) -> Crcs:
    """The CRCs of all packets of a chunk."""
    whole = (chunk.flags & (PacketFlag.CUT | PacketFlag.SHORT)) == 0
    # Captures of hosts may lack the VCRC.
    has_vcrc = ~(fields.has_lrh & (fields.lost_bytes() == VCRC_BYTES))
    icrc_end = chunk.length - np.where(has_vcrc, VCRC_BYTES, 0)
    has_icrc = whole & fields.has_bth & (icrc_end >= fields.bth_at + BTH.size_bytes + ICRC_BYTES)
    return Crcs(
        _link_crcs(chunk, whole & has_vcrc & (chunk.length > VCRC_BYTES)), _icrcs(chunk, fields, has_icrc, icrc_end)
    )


def _link_crcs(chunk: Chunk, there: NDArray[np.bool_]) -> Integers:
    result = np.full(len(chunk), int(Crc.ABSENT))
    # Most link packets are as long as they must be, and right: those are looked at byte by byte, all at once.
    short = np.flatnonzero(there & (chunk.length == LINK_PACKET_BYTES))
    register = np.full(len(short), VCRC_INIT)
    for index in range(LINK_PACKET_BYTES):
        register = register >> 8 ^ _STEPS[(register ^ chunk.data[chunk.start[short] + index]) & 0xFF]
    good = short[register == VCRC_RESIDUE]
    result[good] = Crc.RIGHT
    others = there.copy()
    others[good] = False
    data = chunk.data.data
    starts, ends = chunk.start[others], chunk.start[others] + chunk.length[others]
    result[others] = [
        _link_crc(bytes(data[start:end])) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return result


def _link_crc(packet: bytes) -> int:
    if vcrc_good(packet):
        return Crc.RIGHT
    marked = vcrc(packet[:-VCRC_BYTES]) == invert_vcrc(packet[-VCRC_BYTES:])
    return Crc.INVERTED if marked else Crc.WRONG


def _icrcs(chunk: Chunk, fields: Fields, there: NDArray[np.bool_], end: Integers) -> Integers:
    """The headers with what is masked (wire.crc.icrc_masked) of all packets at once, what follows packet by packet."""
    result = np.full(len(chunk), int(Crc.ABSENT))
    data = chunk.data.data
    for bth_at in np.unique(fields.bth_at[there]).tolist():
        of_it = np.flatnonzero(there & (fields.bth_at == bth_at))
        head = bth_at + BTH.size_bytes
        heads = chunk.data[chunk.start[of_it, None] + np.arange(head)] | _ones(bth_at)
        first = (chunk.start[of_it] + head).tolist()
        last = (chunk.start[of_it] + end[of_it]).tolist()
        crc32 = zlib.crc32
        registers = [
            crc32(data[begin:stop], crc32(masked)) for masked, begin, stop in zip(heads, first, last, strict=True)
        ]
        result[of_it] = np.where(np.array(registers) == _GOOD_ICRC, int(Crc.RIGHT), int(Crc.WRONG))
    return result


@cache
def _ones(bth_at: int) -> NDArray[np.uint8]:
    """Ones for what a switch or a router may rewrite in headers whose BTH is there."""
    lnh = LNH.IBA_LOCAL if bth_at == LRH.size_bytes else LNH.IBA_GLOBAL
    headers = LRH.pack(lnh=lnh) + bytes(bth_at - LRH.size_bytes + BTH.size_bytes)
    masked = bytearray(icrc_masked(headers))
    masked[LRH["lnh"].byte] ^= headers[LRH["lnh"].byte] if lnh == LNH.IBA_LOCAL else 0
    return np.frombuffer(bytes(masked), np.uint8)
