"""Packets of the transport put together: LRH, GRH, BTH, whatever the opcode calls for, payload, ICRC.

What fields mean and where they are is `wire`'s; that they are put in place as numbers here, without a record of
each header, is because an adapter does it for each packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from verbs.address import AddressVector
from verbs.port import Port
from wire.codes import LNH
from wire.crc import ICRC_BYTES, icrc
from wire.headers import AETH, BTH, GRH, LRH
from wire.layout import Layout
from wire.packet import WORD_BYTES

__all__ = ["Envelope", "Outgoing", "aeth_bytes"]


def _shift(layout: Layout, name: str) -> int:
    """Where a field begins in the big-endian number of its header."""
    return layout.size_bytes * 8 - layout[name].end_bits


_SL: Final = _shift(LRH, "sl")
_LNH: Final = _shift(LRH, "lnh")
_DLID: Final = _shift(LRH, "dlid")
_PKT_LEN: Final = _shift(LRH, "pkt_len")

_OPCODE: Final = _shift(BTH, "opcode")
_SE: Final = _shift(BTH, "se")
_MIG_REQ: Final = 1 << _shift(BTH, "mig_req")
"""Set in all packets of a path that is not about to migrate (IBTA vol 1, 17.2.8.1)."""
_PAD_CNT: Final = _shift(BTH, "pad_cnt")
_P_KEY: Final = _shift(BTH, "p_key")
_BECN: Final = _shift(BTH, "becn")
_DEST_QP: Final = _shift(BTH, "dest_qp")
_ACK_REQ: Final = _shift(BTH, "ack_req")

_SYNDROME: Final = _shift(AETH, "syndrome")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A packet to be sent, LRH to ICRC; which VL it takes follows from its SL."""

    data: bytes
    sl: int


def aeth_bytes(syndrome: int, msn: int) -> bytes:
    """An AETH."""
    return (syndrome << _SYNDROME | msn).to_bytes(AETH.size_bytes, "big")


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is the same in all packets that go to one queue pair."""

    port: Port
    vector: AddressVector
    p_key_index: int
    dest_qp: int

    def packet(
        self,
        opcode: int,
        psn: int,
        extended: bytes = b"",
        payload: bytes = b"",
        *,
        ack_req: bool = False,
        solicited: bool = False,
        becn: bool = False,
    ) -> Outgoing:
        """A packet with these headers after the BTH and this payload."""
        vector = self.vector
        pad_cnt = -len(payload) % WORD_BYTES
        bth = (
            opcode << _OPCODE
            | solicited << _SE
            | _MIG_REQ
            | pad_cnt << _PAD_CNT
            | self.port.p_key(self.p_key_index) << _P_KEY
            | becn << _BECN
            | self.dest_qp << _DEST_QP
            | ack_req << _ACK_REQ
            | psn
        )
        pay_len = BTH.size_bytes + len(extended) + len(payload) + pad_cnt + ICRC_BYTES
        size = LRH.size_bytes + pay_len
        network, lnh = b"", LNH.IBA_LOCAL
        if vector.route is not None:
            route = vector.route
            network, lnh = (
                GRH.pack(
                    t_class=route.traffic_class,
                    flow_label=route.flow_label,
                    pay_len=pay_len,
                    hop_lmt=route.hop_limit,
                    sgid=self.port.gid(route.sgid_index),
                    dgid=route.dgid,
                ),
                LNH.IBA_GLOBAL,
            )
            size += GRH.size_bytes
        lrh = (
            vector.sl << _SL
            | lnh << _LNH
            | vector.dlid << _DLID
            | size // WORD_BYTES << _PKT_LEN
            | self.port.lid
            | vector.src_path_bits
        )
        data = b"".join(
            (
                lrh.to_bytes(LRH.size_bytes, "big"),
                network,
                bth.to_bytes(BTH.size_bytes, "big"),
                extended,
                payload,
                bytes(pad_cnt),
            )
        )
        return Outgoing(data + icrc(data), vector.sl)
