"""VCRC, LPCRC, ICRC and the trace's fingerprint, and the XOR masks from which hardware computes them in parallel.

All take the bytes in wire order, the least significant bit of each byte first, start
from all ones and are complemented at the end. A register is written reflected: bit 0 holds the
coefficient of the highest power, so the low byte goes on the wire first. Checked on captured
packets.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from anycrc import CRC

from .codes import LNH
from .headers import BTH, GRH, LRH
from .layout import Layout

__all__ = [
    "FINGERPRINT_INIT",
    "FINGERPRINT_POLY",
    "FINGERPRINT_POLY_REFLECTED",
    "FINGERPRINT_WIDTH",
    "ICRC_BYTES",
    "ICRC_INIT",
    "ICRC_POLY",
    "ICRC_POLY_REFLECTED",
    "ICRC_RESIDUE",
    "ICRC_WIDTH",
    "LPCRC_BYTES",
    "VCRC_BYTES",
    "VCRC_INIT",
    "VCRC_POLY",
    "VCRC_POLY_REFLECTED",
    "VCRC_RESIDUE",
    "VCRC_WIDTH",
    "crc_step_masks",
    "fingerprint",
    "icrc",
    "icrc_good",
    "icrc_masked",
    "icrc_of_parts",
    "invert_vcrc",
    "lpcrc",
    "lpcrc_good",
    "vcrc",
    "vcrc_good",
    "vcrc_with_vl",
]

VCRC_WIDTH: Final = 16
VCRC_BYTES: Final = 2
LPCRC_BYTES: Final = 2

VCRC_POLY: Final = 0x100B
"""x^16 + x^12 + x^3 + x + 1, for both VCRC and LPCRC (IBTA vol 1, 7.8)."""

VCRC_POLY_REFLECTED: Final = 0xD008
VCRC_INIT: Final = 0xFFFF

VCRC_RESIDUE: Final = 0x556F
"""The register after a good packet and its VCRC, before the complement."""

_GOOD_VCRC = VCRC_RESIDUE ^ 0xFFFF

ICRC_WIDTH: Final = 32
ICRC_BYTES: Final = 4

ICRC_POLY: Final = 0x04C11DB7
"""The generator of Ethernet's CRC-32 (IBTA vol 1, 7.8)."""

ICRC_POLY_REFLECTED: Final = 0xEDB88320
ICRC_INIT: Final = 0xFFFFFFFF

ICRC_RESIDUE: Final = 0xDEBB20E3
"""The register after a good masked packet and its ICRC, before the complement."""

FINGERPRINT_WIDTH: Final = 32
FINGERPRINT_POLY: Final = 0x1EDC6F41
"""CRC-32C. A packet ends in its own CRC-32, over which another CRC-32 would be nearly constant."""

FINGERPRINT_POLY_REFLECTED: Final = 0x82F63B78
FINGERPRINT_INIT: Final = 0xFFFF_FFFF

_fingerprint = CRC(FINGERPRINT_WIDTH, FINGERPRINT_POLY, FINGERPRINT_INIT, True, True, 0xFFFF_FFFF)
_crc16 = CRC(VCRC_WIDTH, VCRC_POLY, VCRC_INIT, True, True, 0xFFFF)
_crc16_linear = CRC(VCRC_WIDTH, VCRC_POLY, 0, True, True, 0)


def vcrc(data: bytes) -> bytes:
    """The two VCRC bytes, in wire order, of a packet from LRH byte 0 to the last byte before
    the VCRC. Nothing is masked (IBTA vol 1, 7.8).

    Raises:
        ValueError: no data.
    """
    if not data:
        raise ValueError("CRC of 0 bytes, allowed 1 and above")
    register: int = _crc16.calc(data)
    return register.to_bytes(VCRC_BYTES, "little")


def vcrc_good(packet: bytes) -> bool:
    """True if the last two bytes are the VCRC of the bytes before them."""
    return len(packet) > VCRC_BYTES and bool(_crc16.calc(packet) == _GOOD_VCRC)


lpcrc = vcrc
"""The two LPCRC bytes, in wire order, of a link packet's bytes Op to FCCL (IBTA vol 1, 7.9.4)."""

lpcrc_good = vcrc_good


def invert_vcrc(vcrc_bytes: bytes) -> bytes:
    """The one's complement of a VCRC: what ends a packet that is marked bad."""
    return bytes(byte ^ 0xFF for byte in vcrc_bytes)


@lru_cache(maxsize=4096)
def _vl_deltas(covered_bytes: int) -> tuple[int, ...]:
    first_nibble = LRH["vl"].lsb_in_span
    rest = bytes(covered_bytes - 1)
    return tuple(_crc16_linear.calc(bytes([delta << first_nibble]) + rest) for delta in range(16))


def vcrc_with_vl(vcrc_bytes: bytes, old_vl: int, new_vl: int, covered_bytes: int) -> bytes:
    """The VCRC after a switch rewrote LRH.VL, without running over the packet again.

    A CRC is linear: changing the VL XORs a constant into it that depends only on the bits
    changed and on ``covered_bytes``, the bytes that the VCRC covers (PktLen * 4). An inverted
    VCRC stays inverted.

    Raises:
        ValueError: a VL outside 0..15, no bytes covered, or a VCRC that is not 2 bytes.
    """
    LRH["vl"].check(old_vl, LRH.name)
    LRH["vl"].check(new_vl, LRH.name)
    if covered_bytes < 1:
        raise ValueError(f"covered_bytes {covered_bytes}, allowed 1 and above")
    if len(vcrc_bytes) != VCRC_BYTES:
        raise ValueError(f"VCRC of {len(vcrc_bytes)} bytes, allowed {VCRC_BYTES}")
    register = int.from_bytes(vcrc_bytes, "little") ^ _vl_deltas(covered_bytes)[old_vl ^ new_vl]
    return register.to_bytes(VCRC_BYTES, "little")


_VL_ONES: Final = LRH["vl"].max << LRH["vl"].lsb_in_span
"""In byte 0 of an LRH."""

# Looked up once: the ICRC is worked out for each packet.
_LNH: Final = LRH["lnh"]
_LRH_BYTES: Final = LRH.size_bytes
_BTH_BYTES: Final = BTH.size_bytes
_BTH_AFTER: Final[Mapping[int, int]] = {
    int(LNH.IBA_LOCAL): _LRH_BYTES,
    int(LNH.IBA_GLOBAL): _LRH_BYTES + GRH.size_bytes,
}
_VARIANT: Final = BTH["fecn"].byte
"""Of a BTH, the byte that switches may rewrite."""


def _ones(layout: Layout, data: bytes, *names: str) -> bytes:
    for name in names:
        data = layout[name].write(data, layout[name].max)
    return data


def icrc_masked(packet: bytes) -> bytes:
    """The packet, LRH to last payload or pad byte, as the ICRC sees it (IBTA vol 1, 7.8).

    What a switch (VL, FECN, BECN) or a router (LRH, fields of the GRH) may rewrite in transit counts as ones: LRH.VL
    where there is no GRH, the whole LRH and GRH.TClass, FlowLabel and HopLmt where there is one, and BTH byte 4
    (FECN, BECN, Resv6a) always.

    Raises:
        ValueError: a raw packet, or one too short for its headers.
    """
    lnh = _LNH.read(packet)
    if lnh not in _BTH_AFTER:
        raise ValueError(f"LRH.lnh: value {lnh} is a raw packet, which has no ICRC, allowed 2..3")
    bth = _BTH_AFTER[lnh]
    if len(packet) < bth + _BTH_BYTES:
        raise ValueError(f"ICRC: headers need {bth + _BTH_BYTES} bytes, got {len(packet)}")
    variant = bth + _VARIANT
    if bth == _LRH_BYTES:
        return bytes((packet[0] | _VL_ONES,)) + packet[1:variant] + b"\xff" + packet[variant + 1 :]
    network = _ones(GRH, packet[_LRH_BYTES:bth], "t_class", "flow_label", "hop_lmt")
    return b"\xff" * _LRH_BYTES + network + packet[bth:variant] + b"\xff" + packet[variant + 1 :]


def icrc(packet: bytes) -> bytes:
    """The four ICRC bytes, in wire order, of a packet from the LRH to the last payload or pad byte.

    Raises:
        ValueError: a raw packet, or one too short for its headers.
    """
    return zlib.crc32(icrc_masked(packet)).to_bytes(ICRC_BYTES, "little")


def icrc_of_parts(headers: bytes, rest: bytes) -> bytes:
    """The ICRC of a packet in two parts, LRH to BTH and what follows up to the last payload or pad byte.

    Raises:
        ValueError: a raw packet, or headers cut short.
    """
    return zlib.crc32(rest, zlib.crc32(icrc_masked(headers))).to_bytes(ICRC_BYTES, "little")


def icrc_good(packet: bytes) -> bool:
    """True if the last four bytes are the ICRC of the bytes before them.

    Raises:
        ValueError: a raw packet, or one too short for its headers.
    """
    return icrc(packet[:-ICRC_BYTES]) == packet[-ICRC_BYTES:]


def crc_step_masks(poly_reflected: int, width: int, data_bits: int) -> list[tuple[int, int]]:
    """XOR masks that advance a reflected CRC register by ``data_bits`` bits in one step.

    Returns ``width`` pairs, for the next state's bits 0 upwards: bit i of the next state is the
    parity of ``state & state_mask`` XOR the parity of ``data & data_mask``. Bit j of a data mask
    is the bit taken j-th: the least significant bit of the first byte is bit 0, so that ``data``
    is ``int.from_bytes(chunk, "little")``. No complement is part of it.

    Raises:
        ValueError: a width or number of data bits below 1, or a polynomial wider than the width.
    """
    if width < 1:
        raise ValueError(f"width {width}, allowed 1 and above")
    if data_bits < 1:
        raise ValueError(f"data_bits {data_bits}, allowed 1 and above")
    if not 0 <= poly_reflected < 1 << width:
        raise ValueError(f"poly_reflected {poly_reflected:#x} does not fit {width} bits")
    # Each register bit as the set of inputs it XORs: state in the low bits, data above them.
    register = [1 << bit for bit in range(width)]
    for bit in range(data_bits):
        feedback = register[0] ^ 1 << (width + bit)
        register = [*register[1:], 0]
        for index in range(width):
            if poly_reflected >> index & 1:
                register[index] ^= feedback
    return [(inputs & ((1 << width) - 1), inputs >> width) for inputs in register]


def fingerprint(data: bytes | memoryview, before: int | None = None) -> int:
    """What the trace records of a packet's bytes: their CRC-32C, complemented.

    ``before`` is the fingerprint of the bytes before these, to go on from.
    """
    return int(_fingerprint.calc(data) if before is None else _fingerprint.calc(data, before))
