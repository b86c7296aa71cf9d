"""Headers read and written as whole numbers, as an adapter does it for each packet.

`wire.headers` says where the fields are; what stands here is the same again for the few headers that the transport
handles, and tests hold one against the other.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

__all__ = [
    "Atomic",
    "Remote",
    "aeth_bytes",
    "atomic_ack_bytes",
    "atomic_bytes",
    "bth_bytes",
    "deth_bytes",
    "lrh_bytes",
    "number32_bytes",
    "read_atomic",
    "read_bth",
    "read_deth",
    "read_lrh",
    "read_number32",
    "read_number64",
    "read_reth",
    "reth_bytes",
]

_LRH: Final = Struct(">BBHHH")
_BTH: Final = Struct(">BBHII")
_RETH: Final = Struct(">QII")
_ATOMIC_ETH: Final = Struct(">QIQQ")
_TWO: Final = Struct(">II")
_NUMBER32: Final = Struct(">I")
_NUMBER64: Final = Struct(">Q")

_UINT24: Final = (1 << 24) - 1
_UINT64: Final = (1 << 64) - 1


class Remote(NamedTuple):
    """What a RETH says."""

    va: int
    r_key: int
    dma_len: int


class Atomic(NamedTuple):
    """What an AtomicETH says."""

    va: int
    r_key: int
    swap_dt: int
    cmp_dt: int


def lrh_bytes(sl: int, lnh: int, dlid: int, pkt_len: int, slid: int) -> bytes:
    """An LRH; the VL is the link layer's to fill in."""
    return _LRH.pack(0, sl << 4 | lnh, dlid, pkt_len, slid)


def read_lrh(data: bytes) -> tuple[int, int, int, int, int]:
    """SL, LNH, DLID, PktLen and SLID."""
    _vl, sl_lnh, dlid, pkt_len, slid = _LRH.unpack_from(data, 0)
    return sl_lnh >> 4, sl_lnh & 3, dlid, pkt_len & 0x7FF, slid


def bth_bytes(
    opcode: int, flags: int, p_key: int, dest_qp: int, psn: int, *, becn: bool = False, ack_req: bool = False
) -> bytes:
    """A BTH; `flags` are those of its byte 1."""
    return _BTH.pack(opcode, flags, p_key, becn << 30 | dest_qp, ack_req << 31 | psn)


def read_bth(data: bytes, at: int) -> tuple[int, int, int, int, int]:
    """Opcode, flags (byte 1), P_Key, word with FECN, BECN and DestQP, word with AckReq and PSN."""
    opcode, flags, p_key, dest_word, psn_word = _BTH.unpack_from(data, at)
    return opcode, flags, p_key, dest_word, psn_word


def reth_bytes(va: int, r_key: int, dma_len: int) -> bytes:
    """A RETH."""
    return _RETH.pack(va & _UINT64, r_key, dma_len)


def read_reth(data: bytes, at: int) -> Remote:
    """What a RETH says."""
    va, r_key, dma_len = _RETH.unpack_from(data, at)
    return Remote(va, r_key, dma_len)


def atomic_bytes(va: int, r_key: int, swap_dt: int, cmp_dt: int) -> bytes:
    """An AtomicETH."""
    return _ATOMIC_ETH.pack(va, r_key, swap_dt, cmp_dt)


def read_atomic(data: bytes, at: int) -> Atomic:
    """What an AtomicETH says."""
    va, r_key, swap_dt, cmp_dt = _ATOMIC_ETH.unpack_from(data, at)
    return Atomic(va, r_key, swap_dt, cmp_dt)


def deth_bytes(q_key: int, src_qp: int) -> bytes:
    """A DETH."""
    return _TWO.pack(q_key, src_qp)


def read_deth(data: bytes, at: int) -> tuple[int, int]:
    """Q_Key and SrcQP."""
    q_key, src_qp = _TWO.unpack_from(data, at)
    return q_key, src_qp & _UINT24


def aeth_bytes(syndrome: int, msn: int) -> bytes:
    """An AETH."""
    return _NUMBER32.pack(syndrome << 24 | msn)


def number32_bytes(value: int) -> bytes:
    """An ImmDt, an IETH, or what is 24 bits after 8 reserved ones: RDETH, XRCETH."""
    return _NUMBER32.pack(value)


def read_number32(data: bytes, at: int) -> int:
    """What an ImmDt or IETH holds, or an AETH in one number."""
    value: int = _NUMBER32.unpack_from(data, at)[0]
    return value


def atomic_ack_bytes(original: int) -> bytes:
    """An AtomicAckETH."""
    return _NUMBER64.pack(original)


def read_number64(data: bytes, at: int) -> int:
    """What an AtomicAckETH holds."""
    value: int = _NUMBER64.unpack_from(data, at)[0]
    return value
