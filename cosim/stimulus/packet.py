"""Packets that hosts offer, and how they are made."""

from __future__ import annotations

import struct
import zlib
from functools import cache
from random import Random
from typing import NamedTuple

from cosim.topology.topology import Topology
from wire.codes import Q_KEY_SMI, QP_SMI, VL15
from wire.crc import ICRC_BYTES
from wire.headers import BTH, DETH, LRH
from wire.packet import WORD_BYTES, blocks_of_words, build_ud_send, rows_of_words
from wire.stimulus import Post

__all__ = ["IDENTITY", "Packet", "UdPackets", "slot_of_vl", "ud_packet"]

_DEST_QP = 0x10
_FIRST_QP = 0x100
"""Source QP of flow 0: those of management, 0 and 1, send no data."""

_Q_KEY = 0x1234_5678

IDENTITY = struct.Struct(">II")
"""Flow and sequence, at the start of a payload."""

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


class Packet(NamedTuple):
    """A packet of a flow, as a host offers it.

    Attributes:
        flow: number of the flow; packets of one flow are delivered in the order of `sequence`.
        sequence: 0, 1, ... in the flow.
        cycle: the cycle from which the host offers it to its adapter.
        source: name of the sending host.
        destination: name of the host that should get it; None if no host should.
        slot: slot of the source on which it is posted.
        final_vl: VL on the last link, 15 for VL15.
        data: LRH..ICRC.
    """

    flow: int
    sequence: int
    cycle: int
    source: str
    destination: str | None
    slot: int
    final_vl: int
    data: bytes

    @property
    def payload_bytes(self) -> int:
        """Payload of a UD packet without GRH, without padding."""
        pad_cnt = BTH["pad_cnt"].read(self.data, LRH.size_bytes)
        return len(self.data) - _FIXED_WORDS * WORD_BYTES - pad_cnt

    @property
    def pkt_len(self) -> int:
        """How many words there are; LRH.PktLen may say something else."""
        return len(self.data) // WORD_BYTES

    @property
    def rows(self) -> int:
        """Rows on a link."""
        return rows_of_words(self.pkt_len)

    @property
    def blocks(self) -> int:
        """Blocks of buffer and credit."""
        return blocks_of_words(self.pkt_len)

    def post(self, topology: Topology) -> Post:
        """As stimulus."""
        return Post(self.cycle, topology.index[self.source], self.slot, self.data)


def slot_of_vl(vl: int, node_vls: int) -> int:
    """Slot of a VL: data VL v is slot v, VL15 the one after the data VLs (docs/pipeline.md, 1)."""
    return node_vls if vl == VL15 else vl


def ud_packet(
    random: Random,
    *,
    slid: int,
    dlid: int,
    sl: int,
    vl: int,
    flow: int,
    sequence: int,
    size: int,
    grh: bool = False,
) -> bytes:
    """A UD SEND Only packet of `size` payload bytes, LRH..ICRC.

    Source QP and PSN hold flow and sequence, and so does the payload as far as it goes; random bytes follow,
    so that no two packets are identical.
    """
    identity = IDENTITY.pack(flow, sequence)
    packet = build_ud_send(
        slid=slid,
        dlid=dlid,
        vl=vl,
        sl=sl,
        dest_qp=QP_SMI if vl == VL15 else _DEST_QP,
        src_qp=QP_SMI if vl == VL15 else _FIRST_QP + flow,
        q_key=Q_KEY_SMI if vl == VL15 else _Q_KEY,
        psn=sequence % _PSNS,
        grh={"hop_lmt": 1} if grh else None,
        payload=(identity + random.randbytes(max(0, size - len(identity))))[:size],
    )
    return packet.data


class UdPackets:
    """Makes UD SEND Only packets by the thousand: headers are made once and patched, payloads are cut from a pool of
    random bytes. A packet of 2 KiB takes a few µs; `ud_packet`, field by field, takes ten times as long.

    No two are identical: the payload begins with flow and sequence.

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
        slid=slid, dlid=dlid, vl=vl, sl=sl, dest_qp=_DEST_QP, src_qp=_FIRST_QP + flow, q_key=_Q_KEY, psn=0, payload=b""
    )
    lrh0, lrh1, *others = _HEAD.unpack(packet.data[:-ICRC_BYTES])
    return lrh0, lrh1 & ~(LRH["pkt_len"].max << _PKT_LEN_SHIFT), *others
