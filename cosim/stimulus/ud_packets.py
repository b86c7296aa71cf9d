"""UD packets by the thousand: headers are made once and patched, payloads are cut from a pool of random bytes.

A packet of 2 KiB takes a few µs. wire.packet builds the same ones field by field, in ten times as long.
"""

from __future__ import annotations

import struct
import zlib
from functools import cache
from random import Random

from cosim.stimulus.packet import IDENTITY
from wire.crc import ICRC_BYTES
from wire.headers import BTH, DETH, LRH
from wire.packet import WORD_BYTES, build_ud_send

__all__ = ["UdPackets"]

_DEST_QP = 0x10
_Q_KEY = 0x1234_5678
_PSNS = 1 << 24

_POOL_BYTES = 1 << 16
"""Neighbouring packets differ all over, and it takes little memory."""

_HEAD_WORDS = (LRH.size_bytes + BTH.size_bytes + DETH.size_bytes) // WORD_BYTES
_FIXED_WORDS = _HEAD_WORDS + ICRC_BYTES // WORD_BYTES
_HEAD = struct.Struct(f">{_HEAD_WORDS}I")
_PKT_LEN_SHIFT = 16
"""Place of LRH.PktLen in word 1 of a packet."""
_PAD_CNT_SHIFT = 20
"""Place of BTH.PadCnt in word 2."""
_VL_ONES = LRH["vl"].max << 28
"""LRH.VL in word 0, which counts as ones in the ICRC (wire.crc.icrc_masked)."""
_VARIANT_ONES = 0xFF << 24
"""The same of FECN, BECN and Resv6a in word 3."""
"""Flow and sequence, at the beginning of the payload."""


class UdPackets:
    """Makes UD SEND Only packets. No two are identical: the payload begins with flow and sequence.

    A payload too short for both begins with as much of them as there is room for; source QP and PSN hold the same.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._pool = random.randbytes(_POOL_BYTES)

    def data(self, *, slid: int, dlid: int, sl: int, vl: int, flow: int, sequence: int, size: int) -> bytes:
        """LRH..ICRC of a packet with `size` payload bytes."""
        lrh0, lrh1, bth0, bth1, bth2, deth0, deth1 = _head(slid, dlid, sl, vl, flow)
        pad_cnt = -size % WORD_BYTES
        lrh1 |= (_FIXED_WORDS + (size + pad_cnt) // WORD_BYTES) << _PKT_LEN_SHIFT
        bth0 |= pad_cnt << _PAD_CNT_SHIFT
        bth2 |= sequence % _PSNS
        payload = IDENTITY.pack(flow, sequence)
        if size > len(payload):
            first = self._random.randrange(_POOL_BYTES - size)
            payload += self._pool[first : first + size - len(payload)]
        payload = payload[:size] + bytes(pad_cnt)
        masked = _HEAD.pack(lrh0 | _VL_ONES, lrh1, bth0, bth1 | _VARIANT_ONES, bth2, deth0, deth1)
        icrc = zlib.crc32(payload, zlib.crc32(masked)).to_bytes(ICRC_BYTES, "little")
        return _HEAD.pack(lrh0, lrh1, bth0, bth1, bth2, deth0, deth1) + payload + icrc


@cache
def _head(slid: int, dlid: int, sl: int, vl: int, flow: int) -> tuple[int, ...]:
    """LRH, BTH and DETH without what differs between packets: PktLen, PadCnt and PSN are 0."""
    packet = build_ud_send(
        slid=slid, dlid=dlid, vl=vl, sl=sl, dest_qp=_DEST_QP, src_qp=flow, q_key=_Q_KEY, psn=0, payload=b""
    )
    lrh0, lrh1, *others = _HEAD.unpack(packet.data[:-ICRC_BYTES])
    return lrh0, lrh1 & ~(LRH["pkt_len"].max << _PKT_LEN_SHIFT), *others
