"""Packets that hosts offer, and how they are made."""

from __future__ import annotations

import struct
import zlib
from functools import cache
from random import Random
from typing import NamedTuple

from cosim.topology.topology import Topology
from wire.codes import P_KEY_DEFAULT, Q_KEY_SMI, QP_SMI, VL15, is_multicast_lid
from wire.crc import ICRC_BYTES
from wire.headers import BTH, LRH, RETH
from wire.opcodes import Opcode, extended_headers
from wire.packet import WORD_BYTES, blocks_of_words, build, build_ud_send, rows_of_words
from wire.packet import Packet as BuiltPacket
from wire.stimulus import Post

__all__ = [
    "FIRST_QP",
    "FIRST_TRANSPORT_QP",
    "IDENTITY",
    "Packet",
    "RdmaWritePackets",
    "UdPackets",
    "is_of_transport",
    "is_unfollowed",
    "overhead_bytes",
    "slot_of_vl",
    "ud_packet",
]

_DEST_QP = 0x10
FIRST_QP = 0x100
"""QP of flow 0, at its source or, where packets do not name that, at its destination: QPs 0 and 1 are management's."""

FIRST_TRANSPORT_QP = 0x1_0000
"""Queue pairs of transports have such numbers, which no flow of packets has."""

_Q_KEY = 0x1234_5678
_R_KEY = 0x1234_5678

IDENTITY = struct.Struct(">II")
"""Flow and sequence, at the start of a payload."""

_PSNS = 1 << 24

_POOL_BYTES = 1 << 16
"""Neighbouring packets differ all over, and it takes little memory."""

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
        destination: name of the host that should get it; None if no host should, or several.
        slot: slot of the source on which it is posted.
        final_vl: VL on the last link, 15 for VL15.
        data: LRH..ICRC.
        title: what a story calls it in place of its sequence.
        copies: the hosts that should get a multicast packet, each with the VL on its link.
    """

    flow: int
    sequence: int
    cycle: int
    source: str
    destination: str | None
    slot: int
    final_vl: int
    data: bytes
    title: str = ""
    copies: tuple[tuple[str, int], ...] = ()

    @property
    def each(self) -> tuple[Packet, ...]:
        """The packet as each host should get it."""
        if self.copies:
            return tuple(self._replace(destination=host, final_vl=vl, copies=()) for host, vl in self.copies)
        return () if self.destination is None else (self,)

    @property
    def is_multicast(self) -> bool:
        """Whether it is to a multicast LID."""
        return is_multicast_lid(LRH["dlid"].read(self.data))

    @property
    def payload_bytes(self) -> int:
        """Payload of a packet without GRH, without padding."""
        pad_cnt = BTH["pad_cnt"].read(self.data, LRH.size_bytes)
        return len(self.data) - overhead_bytes(self.data[LRH.size_bytes]) - pad_cnt

    @property
    def p_key(self) -> int:
        """P_Key of a packet without GRH."""
        return BTH["p_key"].read(self.data, LRH.size_bytes)

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


def is_of_transport(data: bytes) -> bool:
    """True for a packet to a queue pair of a transport, of a flow of messages; there is no GRH."""
    return BTH["dest_qp"].read(data, LRH.size_bytes) >= FIRST_TRANSPORT_QP


def is_unfollowed(data: bytes) -> bool:
    """True for what who follows packets of flows leaves out: a transport's, and notices of congestion."""
    return is_of_transport(data) or BTH["opcode"].read(data, LRH.size_bytes) == Opcode.CNP


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
    p_key: int = P_KEY_DEFAULT,
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
        src_qp=QP_SMI if vl == VL15 else FIRST_QP + flow,
        q_key=Q_KEY_SMI if vl == VL15 else _Q_KEY,
        psn=sequence % _PSNS,
        p_key=p_key,
        grh={"hop_lmt": 1} if grh else None,
        payload=(identity + random.randbytes(max(0, size - len(identity))))[:size],
    )
    return packet.data


class Payloads:
    """Payloads by the thousand, cut from a pool of random bytes.

    No two are identical: a payload begins with flow and sequence, as much of them as there is room for.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._pool = random.randbytes(_POOL_BYTES)

    def payload(self, flow: int, sequence: int, size: int) -> bytes:
        """Of `size` bytes."""
        identity = IDENTITY.pack(flow, sequence)
        if size <= len(identity):
            return identity[:size]
        first = self._random.randrange(_POOL_BYTES - size)
        return identity + self._pool[first : first + size - len(identity)]


class Head(NamedTuple):
    """The headers of packets that differ in nothing else but PktLen, PadCnt and PSN, which are 0 here.

    A packet of 2 KiB made of one takes a few µs; field by field it takes ten times as long.

    Attributes:
        words: LRH, BTH and what follows that.
        layout: packs them.
    """

    words: tuple[int, ...]
    layout: struct.Struct

    @classmethod
    def of(cls, packet: BuiltPacket) -> Head:
        """That of a packet without a GRH, with its PSN 0."""
        size = sum(header.layout.size_bytes for header in packet.headers)
        layout = struct.Struct(f">{size // WORD_BYTES}I")
        lrh0, lrh1, bth0, *others = layout.unpack_from(packet.data)
        lrh1 &= ~(LRH["pkt_len"].max << _PKT_LEN_SHIFT)
        bth0 &= ~(BTH["pad_cnt"].max << _PAD_CNT_SHIFT)
        return cls((lrh0, lrh1, bth0, *others), layout)

    def packet(self, sequence: int, payload: bytes) -> bytes:
        """LRH..ICRC."""
        (lrh0, lrh1, bth0, bth1, bth2, *others), layout = self
        pad_cnt = -len(payload) % WORD_BYTES
        payload += bytes(pad_cnt)
        lrh1 |= (layout.size + len(payload) + ICRC_BYTES) // WORD_BYTES << _PKT_LEN_SHIFT
        bth0 |= pad_cnt << _PAD_CNT_SHIFT
        bth2 |= sequence % _PSNS
        masked = layout.pack(lrh0 | _VL_ONES, lrh1, bth0, bth1 | _VARIANT_ONES, bth2, *others)
        icrc = zlib.crc32(payload, zlib.crc32(masked)).to_bytes(ICRC_BYTES, "little")
        return layout.pack(lrh0, lrh1, bth0, bth1, bth2, *others) + payload + icrc


class UdPackets:
    """Makes UD SEND Only packets by the thousand; source QP and PSN hold flow and sequence, and so do payloads."""

    def __init__(self, random: Random) -> None:
        self._payloads = Payloads(random)

    def data(
        self, *, slid: int, dlid: int, sl: int, vl: int, flow: int, sequence: int, size: int, p_key: int = P_KEY_DEFAULT
    ) -> bytes:
        """LRH..ICRC of a packet with `size` payload bytes."""
        return _ud_head(slid, dlid, sl, vl, flow, p_key).packet(sequence, self._payloads.payload(flow, sequence, size))


@cache
def _ud_head(slid: int, dlid: int, sl: int, vl: int, flow: int, p_key: int) -> Head:
    return Head.of(
        build_ud_send(
            slid=slid,
            dlid=dlid,
            vl=vl,
            sl=sl,
            dest_qp=_DEST_QP,
            src_qp=FIRST_QP + flow,
            q_key=_Q_KEY,
            psn=0,
            p_key=p_key,
            payload=b"",
        )
    )


class RdmaWritePackets:
    """Makes the packets of one UC RDMA WRITE, which nobody acknowledges.

    All hold as much payload, the path MTU; PSNs are the sequence. The destination's QP tells the flow.
    """

    def __init__(self, random: Random, count: int) -> None:
        """COUNT packets are the whole message."""
        self._payloads = Payloads(random)
        self._count = count

    def data(
        self, *, slid: int, dlid: int, sl: int, vl: int, flow: int, sequence: int, size: int, p_key: int = P_KEY_DEFAULT
    ) -> bytes:
        """LRH..ICRC of a packet with `size` payload bytes."""
        if self._count == 1:
            opcode = Opcode.UC_RDMA_WRITE_ONLY
        elif sequence == 0:
            opcode = Opcode.UC_RDMA_WRITE_FIRST
        else:
            last = sequence == self._count - 1
            opcode = Opcode.UC_RDMA_WRITE_LAST if last else Opcode.UC_RDMA_WRITE_MIDDLE
        head = _rdma_write_head(slid, dlid, sl, vl, flow, p_key, opcode, self._count * size)
        return head.packet(sequence, self._payloads.payload(flow, sequence, size))


@cache
def _rdma_write_head(
    slid: int, dlid: int, sl: int, vl: int, flow: int, p_key: int, opcode: Opcode, dma_len: int
) -> Head:
    lrh = {"vl": vl, "sl": sl, "slid": slid, "dlid": dlid}
    bth = {"opcode": opcode, "p_key": p_key, "dest_qp": FIRST_QP + flow}
    if RETH not in extended_headers(opcode):
        return Head.of(build(lrh=lrh, bth=bth))
    return Head.of(build(lrh=lrh, bth=bth, reth={"r_key": _R_KEY, "dma_len": dma_len}))


@cache
def overhead_bytes(opcode: int) -> int:
    """All of a packet without a GRH but payload and padding, LRH..ICRC."""
    extended = sum(layout.size_bytes for layout in extended_headers(opcode))
    return LRH.size_bytes + BTH.size_bytes + extended + ICRC_BYTES
