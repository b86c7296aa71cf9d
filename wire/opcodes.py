"""BTH opcodes: which extended headers and how much payload each one brings (IBTA vol 1, 9.2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from functools import cache
from typing import Final, NamedTuple

from .headers import AETH, ATOMIC_ACK_ETH, ATOMIC_ETH, DETH, IETH, IMM_DT, RDETH, RETH, XRCETH
from .layout import Layout

__all__ = ["Opcode", "Operation", "PayloadRule", "Service", "extended_headers", "is_request", "payload_rule"]


class Service(IntEnum):
    """Transport service, bits 7:5 of the opcode."""

    RC = 0
    UC = 1
    RD = 2
    UD = 3
    CNP = 4
    XRC = 5


class Operation(IntEnum):
    """Operation, bits 4:0 of the opcode; the same in every service that has it."""

    SEND_FIRST = 0x00
    SEND_MIDDLE = 0x01
    SEND_LAST = 0x02
    SEND_LAST_IMM = 0x03
    SEND_ONLY = 0x04
    SEND_ONLY_IMM = 0x05
    RDMA_WRITE_FIRST = 0x06
    RDMA_WRITE_MIDDLE = 0x07
    RDMA_WRITE_LAST = 0x08
    RDMA_WRITE_LAST_IMM = 0x09
    RDMA_WRITE_ONLY = 0x0A
    RDMA_WRITE_ONLY_IMM = 0x0B
    RDMA_READ_REQUEST = 0x0C
    RDMA_READ_RESPONSE_FIRST = 0x0D
    RDMA_READ_RESPONSE_MIDDLE = 0x0E
    RDMA_READ_RESPONSE_LAST = 0x0F
    RDMA_READ_RESPONSE_ONLY = 0x10
    ACKNOWLEDGE = 0x11
    ATOMIC_ACKNOWLEDGE = 0x12
    CMP_SWAP = 0x13
    FETCH_ADD = 0x14
    RESYNC = 0x15
    SEND_LAST_INV = 0x16
    SEND_ONLY_INV = 0x17


class PayloadRule(Enum):
    """How many payload bytes, without padding, a packet of a given path MTU may carry."""

    NONE = "0"
    FULL = "the path MTU"
    NON_EMPTY = "1 to the path MTU"
    ANY = "0 to the path MTU"

    def allows(self, payload_bytes: int, path_mtu_bytes: int) -> bool:
        """True if a payload of that many bytes keeps the rule."""
        least = path_mtu_bytes if self is _FULL else 1 if self is _NON_EMPTY else 0
        return least <= payload_bytes <= (0 if self is _NONE else path_mtu_bytes)


_NONE, _FULL, _NON_EMPTY = PayloadRule.NONE, PayloadRule.FULL, PayloadRule.NON_EMPTY
"""Packets are compared with them: docs/verbs.md, "Speed", says why they have names of their own."""


class Opcode(IntEnum):
    """Every defined BTH opcode. The congestion notification packet is alone in its service."""

    RC_SEND_FIRST = 0x00
    RC_SEND_MIDDLE = 0x01
    RC_SEND_LAST = 0x02
    RC_SEND_LAST_IMM = 0x03
    RC_SEND_ONLY = 0x04
    RC_SEND_ONLY_IMM = 0x05
    RC_RDMA_WRITE_FIRST = 0x06
    RC_RDMA_WRITE_MIDDLE = 0x07
    RC_RDMA_WRITE_LAST = 0x08
    RC_RDMA_WRITE_LAST_IMM = 0x09
    RC_RDMA_WRITE_ONLY = 0x0A
    RC_RDMA_WRITE_ONLY_IMM = 0x0B
    RC_RDMA_READ_REQUEST = 0x0C
    RC_RDMA_READ_RESPONSE_FIRST = 0x0D
    RC_RDMA_READ_RESPONSE_MIDDLE = 0x0E
    RC_RDMA_READ_RESPONSE_LAST = 0x0F
    RC_RDMA_READ_RESPONSE_ONLY = 0x10
    RC_ACKNOWLEDGE = 0x11
    RC_ATOMIC_ACKNOWLEDGE = 0x12
    RC_CMP_SWAP = 0x13
    RC_FETCH_ADD = 0x14
    RC_SEND_LAST_INV = 0x16
    RC_SEND_ONLY_INV = 0x17

    UC_SEND_FIRST = 0x20
    UC_SEND_MIDDLE = 0x21
    UC_SEND_LAST = 0x22
    UC_SEND_LAST_IMM = 0x23
    UC_SEND_ONLY = 0x24
    UC_SEND_ONLY_IMM = 0x25
    UC_RDMA_WRITE_FIRST = 0x26
    UC_RDMA_WRITE_MIDDLE = 0x27
    UC_RDMA_WRITE_LAST = 0x28
    UC_RDMA_WRITE_LAST_IMM = 0x29
    UC_RDMA_WRITE_ONLY = 0x2A
    UC_RDMA_WRITE_ONLY_IMM = 0x2B

    RD_SEND_FIRST = 0x40
    RD_SEND_MIDDLE = 0x41
    RD_SEND_LAST = 0x42
    RD_SEND_LAST_IMM = 0x43
    RD_SEND_ONLY = 0x44
    RD_SEND_ONLY_IMM = 0x45
    RD_RDMA_WRITE_FIRST = 0x46
    RD_RDMA_WRITE_MIDDLE = 0x47
    RD_RDMA_WRITE_LAST = 0x48
    RD_RDMA_WRITE_LAST_IMM = 0x49
    RD_RDMA_WRITE_ONLY = 0x4A
    RD_RDMA_WRITE_ONLY_IMM = 0x4B
    RD_RDMA_READ_REQUEST = 0x4C
    RD_RDMA_READ_RESPONSE_FIRST = 0x4D
    RD_RDMA_READ_RESPONSE_MIDDLE = 0x4E
    RD_RDMA_READ_RESPONSE_LAST = 0x4F
    RD_RDMA_READ_RESPONSE_ONLY = 0x50
    RD_ACKNOWLEDGE = 0x51
    RD_ATOMIC_ACKNOWLEDGE = 0x52
    RD_CMP_SWAP = 0x53
    RD_FETCH_ADD = 0x54
    RD_RESYNC = 0x55

    UD_SEND_ONLY = 0x64
    UD_SEND_ONLY_IMM = 0x65

    CNP = 0x80

    XRC_SEND_FIRST = 0xA0
    XRC_SEND_MIDDLE = 0xA1
    XRC_SEND_LAST = 0xA2
    XRC_SEND_LAST_IMM = 0xA3
    XRC_SEND_ONLY = 0xA4
    XRC_SEND_ONLY_IMM = 0xA5
    XRC_RDMA_WRITE_FIRST = 0xA6
    XRC_RDMA_WRITE_MIDDLE = 0xA7
    XRC_RDMA_WRITE_LAST = 0xA8
    XRC_RDMA_WRITE_LAST_IMM = 0xA9
    XRC_RDMA_WRITE_ONLY = 0xAA
    XRC_RDMA_WRITE_ONLY_IMM = 0xAB
    XRC_RDMA_READ_REQUEST = 0xAC
    XRC_RDMA_READ_RESPONSE_FIRST = 0xAD
    XRC_RDMA_READ_RESPONSE_MIDDLE = 0xAE
    XRC_RDMA_READ_RESPONSE_LAST = 0xAF
    XRC_RDMA_READ_RESPONSE_ONLY = 0xB0
    XRC_ACKNOWLEDGE = 0xB1
    XRC_ATOMIC_ACKNOWLEDGE = 0xB2
    XRC_CMP_SWAP = 0xB3
    XRC_FETCH_ADD = 0xB4
    XRC_SEND_LAST_INV = 0xB6
    XRC_SEND_ONLY_INV = 0xB7

    @property
    def service(self) -> Service:
        """Bits 7:5."""
        return Service(self >> 5)

    @property
    def operation(self) -> Operation | None:
        """Bits 4:0; None for the congestion notification packet, which is no operation."""
        return None if self is Opcode.CNP else Operation(self & 0x1F)


class _Rule(NamedTuple):
    headers: tuple[Layout, ...]
    payload: PayloadRule
    request: bool = True


_FULL, _NON_EMPTY, _ANY, _NONE = PayloadRule.FULL, PayloadRule.NON_EMPTY, PayloadRule.ANY, PayloadRule.NONE

_RULES: Final[Mapping[Operation, _Rule]] = {
    Operation.SEND_FIRST: _Rule((), _FULL),
    Operation.SEND_MIDDLE: _Rule((), _FULL),
    Operation.SEND_LAST: _Rule((), _NON_EMPTY),
    Operation.SEND_LAST_IMM: _Rule((IMM_DT,), _NON_EMPTY),
    Operation.SEND_ONLY: _Rule((), _ANY),
    Operation.SEND_ONLY_IMM: _Rule((IMM_DT,), _ANY),
    Operation.RDMA_WRITE_FIRST: _Rule((RETH,), _FULL),
    Operation.RDMA_WRITE_MIDDLE: _Rule((), _FULL),
    Operation.RDMA_WRITE_LAST: _Rule((), _NON_EMPTY),
    Operation.RDMA_WRITE_LAST_IMM: _Rule((IMM_DT,), _NON_EMPTY),
    Operation.RDMA_WRITE_ONLY: _Rule((RETH,), _ANY),
    Operation.RDMA_WRITE_ONLY_IMM: _Rule((RETH, IMM_DT), _ANY),
    Operation.RDMA_READ_REQUEST: _Rule((RETH,), _NONE),
    Operation.RDMA_READ_RESPONSE_FIRST: _Rule((AETH,), _FULL, request=False),
    Operation.RDMA_READ_RESPONSE_MIDDLE: _Rule((), _FULL, request=False),
    Operation.RDMA_READ_RESPONSE_LAST: _Rule((AETH,), _NON_EMPTY, request=False),
    Operation.RDMA_READ_RESPONSE_ONLY: _Rule((AETH,), _ANY, request=False),
    Operation.ACKNOWLEDGE: _Rule((AETH,), _NONE, request=False),
    Operation.ATOMIC_ACKNOWLEDGE: _Rule((AETH, ATOMIC_ACK_ETH), _NONE, request=False),
    Operation.CMP_SWAP: _Rule((ATOMIC_ETH,), _NONE),
    Operation.FETCH_ADD: _Rule((ATOMIC_ETH,), _NONE),
    Operation.RESYNC: _Rule((), _NONE),
    Operation.SEND_LAST_INV: _Rule((IETH,), _NON_EMPTY),
    Operation.SEND_ONLY_INV: _Rule((IETH,), _ANY),
}

_CNP_RULE: Final = _Rule((), _ANY)


def _rule(opcode: int) -> _Rule:
    try:
        operation = Opcode(opcode).operation
    except ValueError:
        raise ValueError(f"BTH.opcode {opcode:#04x} is reserved or vendor defined") from None
    return _CNP_RULE if operation is None else _RULES[operation]


@cache
def extended_headers(opcode: int) -> tuple[Layout, ...]:
    """Layouts of the headers between BTH and payload, in wire order.

    UD adds a DETH to every packet. RD adds an RDETH to every packet and a DETH to requests.
    XRC adds an XRCETH to requests (annex A14).

    Raises:
        ValueError: a reserved or vendor-defined opcode.
    """
    rule = _rule(opcode)
    match Opcode(opcode).service:
        case Service.UD:
            return (DETH, *rule.headers)
        case Service.RD:
            return (RDETH, DETH, *rule.headers) if rule.request else (RDETH, *rule.headers)
        case Service.XRC if rule.request:
            return (XRCETH, *rule.headers)
    return rule.headers


def payload_rule(opcode: int) -> PayloadRule:
    """The payload sizes that an opcode allows.

    Raises:
        ValueError: a reserved or vendor-defined opcode.
    """
    return _rule(opcode).payload


def is_request(opcode: int) -> bool:
    """True for what a requester sends, False for READ responses and acknowledges.

    Raises:
        ValueError: a reserved or vendor-defined opcode.
    """
    return _rule(opcode).request
