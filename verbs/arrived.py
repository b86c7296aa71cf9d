"""A packet that has come, its headers found and those fields read that every queue pair looks at."""

from __future__ import annotations

from typing import Final

from verbs.fields import (
    Atomic,
    Remote,
    read_atomic,
    read_bth,
    read_deth,
    read_lrh,
    read_number32,
    read_number64,
    read_reth,
)
from wire.codes import LNH
from wire.crc import ICRC_BYTES, VCRC_BYTES
from wire.headers import AETH, ATOMIC_ACK_ETH, ATOMIC_ETH, BTH, DETH, GRH, IETH, IMM_DT, LRH, RDETH, RETH, XRCETH
from wire.layout import Layout, Record
from wire.opcodes import Opcode, Operation, PayloadRule, Service, extended_headers, is_request, payload_rule
from wire.packet import WORD_BYTES

__all__ = ["Arrived", "read_packet"]

_DEFINED: Final = {int(opcode): opcode for opcode in Opcode}


def _places(layout: Layout) -> list[int]:
    """By opcode, bytes from the end of the BTH to this header; -1 if there is none."""
    places = [-1] * 256
    for opcode in _DEFINED:
        at = 0
        for header in extended_headers(opcode):
            if header == layout:
                places[opcode] = at
            at += header.size_bytes
    return places


_LRH_BYTES: Final = LRH.size_bytes
_BTH_BYTES: Final = BTH.size_bytes
_GRH_BYTES: Final = GRH.size_bytes
_IBA_LOCAL: Final = int(LNH.IBA_LOCAL)
_IBA_GLOBAL: Final = int(LNH.IBA_GLOBAL)

_EXTENDED_BYTES: Final = [
    sum(header.size_bytes for header in extended_headers(opcode)) if opcode in _DEFINED else -1 for opcode in range(256)
]
_OPERATIONS: Final = [_DEFINED[opcode].operation if opcode in _DEFINED else None for opcode in range(256)]
_RULES: Final = [payload_rule(opcode) if opcode in _DEFINED else PayloadRule.NONE for opcode in range(256)]
_REQUESTS: Final = [opcode not in _DEFINED or is_request(opcode) for opcode in range(256)]

_RDETH_AT: Final = _places(RDETH)
_DETH_AT: Final = _places(DETH)
_XRCETH_AT: Final = _places(XRCETH)
_RETH_AT: Final = _places(RETH)
_ATOMIC_ETH_AT: Final = _places(ATOMIC_ETH)
_AETH_AT: Final = _places(AETH)
_ATOMIC_ACK_AT: Final = _places(ATOMIC_ACK_ETH)
_IMM_DT_AT: Final = _places(IMM_DT)
_IETH_AT: Final = _places(IETH)

_UINT24: Final = (1 << 24) - 1


class Arrived:
    """A packet.

    Attributes:
        operation: None if the opcode is not defined, or that of a CNP.
        has_aeth: an AETH is there.
    """

    __slots__ = (
        "_after_bth",
        "_dest_word",
        "_flags",
        "_psn_word",
        "data",
        "dlid",
        "grh",
        "opcode",
        "operation",
        "p_key",
        "payload",
        "sl",
        "slid",
    )

    def __init__(self, data: bytes, sl: int, dlid: int, slid: int, grh: Record | None, bth: int, end: int) -> None:
        """`bth` is where the BTH begins, `end` where the ICRC does.

        Raises:
            ValueError: the headers that the opcode calls for, or the padding, do not fit.
        """
        self.data = data
        self.sl = sl
        self.dlid = dlid
        self.slid = slid
        self.grh = grh
        self.opcode, self._flags, self.p_key, self._dest_word, self._psn_word = read_bth(data, bth)
        self.operation: Operation | None = _OPERATIONS[self.opcode]
        after, size = bth + _BTH_BYTES, _EXTENDED_BYTES[self.opcode]
        self._after_bth = after
        if size < 0:
            # A responder of RC has to refuse it (IBTA vol 1, 9.7.4.1.2); nobody else looks at it.
            self.payload = b""
            return
        first, last = after + size, end - (self._flags >> 4 & 3)
        if first > last:
            raise ValueError("a packet too short for its headers")
        self.payload = data[first:last]

    @property
    def service(self) -> int:
        """Transport service."""
        return self.opcode >> 5

    @property
    def is_request(self) -> bool:
        """True for what a requester sends, and for what nobody should send."""
        return _REQUESTS[self.opcode]

    @property
    def payload_rule(self) -> PayloadRule:
        """How much payload there may be."""
        return _RULES[self.opcode]

    @property
    def psn(self) -> int:
        """Packet sequence number."""
        return self._psn_word & _UINT24

    @property
    def dest_qp(self) -> int:
        """Number of the queue pair that it is for."""
        return self._dest_word & _UINT24

    @property
    def ack_req(self) -> bool:
        """An acknowledge is asked for."""
        return self._psn_word >> 31 != 0

    @property
    def fecn(self) -> bool:
        """It met congestion on its way."""
        return self._dest_word >> 31 != 0

    @property
    def becn(self) -> bool:
        """It tells that what was sent met congestion."""
        return self._dest_word >> 30 & 1 != 0

    @property
    def solicited(self) -> bool:
        """Its consumer is to be told."""
        return self._flags >> 7 != 0

    @property
    def t_ver(self) -> int:
        """Version of the transport."""
        return self._flags & 0xF

    # The headers after the BTH, which the caller knows by the operation to be there.

    @property
    def eec(self) -> int:
        """End-to-end context that the packet is for, of its RDETH."""
        return read_number32(self.data, self._after_bth + _RDETH_AT[self.opcode]) & _UINT24

    @property
    def xrc_srq(self) -> int:
        """Number of the shared receive queue, of its XRCETH."""
        return read_number32(self.data, self._after_bth + _XRCETH_AT[self.opcode]) & _UINT24

    @property
    def has_deth(self) -> bool:
        """A DETH is there."""
        return _DETH_AT[self.opcode] >= 0

    def deth(self) -> tuple[int, int]:
        """Q_Key and SrcQP of its DETH."""
        return read_deth(self.data, self._after_bth + _DETH_AT[self.opcode])

    def reth(self) -> Remote:
        """Its RETH."""
        return read_reth(self.data, self._after_bth + _RETH_AT[self.opcode])

    def atomic(self) -> Atomic:
        """Its AtomicETH."""
        return read_atomic(self.data, self._after_bth + _ATOMIC_ETH_AT[self.opcode])

    @property
    def has_aeth(self) -> bool:
        """An AETH is there."""
        return _AETH_AT[self.opcode] >= 0

    @property
    def aeth(self) -> int:
        """Its AETH in one number: syndrome in the upper 8 bits, MSN in the lower 24."""
        return read_number32(self.data, self._after_bth + _AETH_AT[self.opcode])

    @property
    def original(self) -> int:
        """What its AtomicAckETH brings."""
        return read_number64(self.data, self._after_bth + _ATOMIC_ACK_AT[self.opcode])

    @property
    def has_imm(self) -> bool:
        """Immediate data are there."""
        return _IMM_DT_AT[self.opcode] >= 0

    @property
    def imm(self) -> int:
        """Its immediate data."""
        return read_number32(self.data, self._after_bth + _IMM_DT_AT[self.opcode])

    @property
    def invalidated_key(self) -> int:
        """R_Key of its IETH."""
        return read_number32(self.data, self._after_bth + _IETH_AT[self.opcode])


def read_packet(data: bytes) -> Arrived | None:
    """The packet in these bytes, LRH to ICRC or VCRC; None if it is none of the IBA transport, or damaged.

    One with an opcode that is not defined is one too, if it is of RC: its responder has to refuse it.
    """
    if len(data) < _LRH_BYTES:
        return None
    sl, lnh, dlid, pkt_len, slid = read_lrh(data)
    size = pkt_len * WORD_BYTES
    if len(data) not in (size, size + VCRC_BYTES):
        return None
    end, bth, grh = size - ICRC_BYTES, _LRH_BYTES, None
    if lnh == _IBA_GLOBAL:
        bth += _GRH_BYTES
    elif lnh != _IBA_LOCAL:
        return None
    if bth + _BTH_BYTES > end:
        return None
    if lnh == _IBA_GLOBAL:
        grh = GRH.unpack(data, _LRH_BYTES)
    try:
        packet = Arrived(data, sl, dlid, slid, grh, bth, end)
    except ValueError:
        return None
    return packet if packet.opcode in _DEFINED or packet.service == Service.RC else None
