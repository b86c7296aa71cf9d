"""Packets that hosts offer."""

from __future__ import annotations

import struct
from random import Random
from typing import NamedTuple

from cosim.topology.topology import Topology
from wire.codes import Q_KEY_SMI, QP_SMI, VL15
from wire.crc import ICRC_BYTES
from wire.headers import BTH, DETH, LRH
from wire.packet import WORD_BYTES, blocks_of_words, build_ud_send, rows_of_words
from wire.stimulus import Post

__all__ = ["IDENTITY", "Packet", "slot_of_vl", "ud_packet"]

_DEST_QP = 0x10
_Q_KEY = 0x1234_5678

IDENTITY = struct.Struct(">II")
"""Flow and sequence, at the start of a payload."""

_UD_OVERHEAD = LRH.size_bytes + BTH.size_bytes + DETH.size_bytes + ICRC_BYTES
_PSNS = 1 << 24


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
        return len(self.data) - _UD_OVERHEAD - pad_cnt

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
        src_qp=QP_SMI if vl == VL15 else flow,
        q_key=Q_KEY_SMI if vl == VL15 else _Q_KEY,
        psn=sequence % _PSNS,
        grh={"hop_lmt": 1} if grh else None,
        payload=(identity + random.randbytes(max(0, size - len(identity))))[:size],
    )
    return packet.data
