"""Packets of the transport put together: LRH, GRH, BTH, whatever the opcode calls for, payload, ICRC."""

from __future__ import annotations

from typing import Final, NamedTuple

from verbs.address import AddressVector
from verbs.fields import bth_bytes, lrh_bytes
from verbs.port import Port
from wire.codes import LNH
from wire.crc import ICRC_BYTES, icrc_of_parts
from wire.headers import BTH, GRH, LRH
from wire.packet import WORD_BYTES

__all__ = ["Envelope", "Outgoing"]

_LRH_BYTES: Final = LRH.size_bytes
_BTH_BYTES: Final = BTH.size_bytes
_GRH_BYTES: Final = GRH.size_bytes

_IBA_LOCAL: Final = int(LNH.IBA_LOCAL)
_IBA_GLOBAL: Final = int(LNH.IBA_GLOBAL)

_SOLICITED: Final = 7
_MIG_REQ: Final = 1 << 6
"""Set in all packets of a path that is not about to migrate (IBTA vol 1, 17.2.8.1)."""
_PAD_CNT: Final = 4
"""Where these are in byte 1 of a BTH."""

_PADDING: Final = (b"", bytes(1), bytes(2), bytes(3))


class Outgoing(NamedTuple):
    """A packet to be sent, LRH to ICRC; which VL it takes follows from its SL."""

    data: bytes
    sl: int
    dlid: int


class Envelope:
    """What is the same in all packets that go to one queue pair."""

    def __init__(self, port: Port, vector: AddressVector, p_key_index: int, dest_qp: int) -> None:
        self._port = port
        self._vector = vector
        self._p_key_index = p_key_index
        self._dest_qp = dest_qp

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
        vector, port = self._vector, self._port
        pad_cnt = -len(payload) % WORD_BYTES
        flags = solicited << _SOLICITED | _MIG_REQ | pad_cnt << _PAD_CNT
        bth = bth_bytes(opcode, flags, port.p_key(self._p_key_index), self._dest_qp, psn, becn=becn, ack_req=ack_req)
        pay_len = _BTH_BYTES + len(extended) + len(payload) + pad_cnt + ICRC_BYTES
        slid, route = port.lid | vector.src_path_bits, vector.route
        if route is None:
            words = (_LRH_BYTES + pay_len) // WORD_BYTES
            head = lrh_bytes(vector.sl, _IBA_LOCAL, vector.dlid, words, slid) + bth
        else:
            words = (_LRH_BYTES + _GRH_BYTES + pay_len) // WORD_BYTES
            network = GRH.pack(
                t_class=route.traffic_class,
                flow_label=route.flow_label,
                pay_len=pay_len,
                hop_lmt=route.hop_limit,
                sgid=port.gid(route.sgid_index),
                dgid=route.dgid,
            )
            head = lrh_bytes(vector.sl, _IBA_GLOBAL, vector.dlid, words, slid) + network + bth
        body = extended + payload + _PADDING[pad_cnt]
        return Outgoing(head + body + icrc_of_parts(head, body), vector.sl, vector.dlid)
