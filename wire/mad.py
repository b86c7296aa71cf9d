"""Management datagrams: the common header, classes, methods, status, and what an attribute is (IBTA vol 1, 13.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, TypeAlias

from .codes import timer_text
from .layout import Field, Layout, Record
from .meaning import GID, HEX, Code, Derived, label
from .table import Table

__all__ = [
    "BASE_VERSION",
    "CLASS_PORT_INFO",
    "CLASS_VERSION",
    "GET",
    "GET_SET",
    "MAD_BYTES",
    "MAD_HEADER",
    "RESPONSES",
    "RESPONSE_BIT",
    "Attribute",
    "Format",
    "MadMethod",
    "MadStatus",
    "MgmtClass",
    "header_fields",
    "mad_data",
    "mad_response",
    "pack_data",
    "status_text",
]

MAD_BYTES: Final = 256
"""Every management datagram is this long (IBTA vol 1, 13.4.2)."""

BASE_VERSION: Final = 1
"""MADHeader.BaseVersion."""

CLASS_VERSION: Final = 1
"""MADHeader.ClassVersion of the subnet and performance management classes."""

RESPONSE_BIT: Final = 0x80
"""The R bit of a method: set in responses (IBTA vol 1, 13.4.5)."""


class MgmtClass(IntEnum):
    """MADHeader.MgmtClass (IBTA vol 1, 13.4.4)."""

    SUBN_LID_ROUTED = 0x01
    SUBN_ADM = 0x03
    PERF = 0x04
    BM = 0x05
    DEV_MGT = 0x06
    COMM_MGT = 0x07
    SNMP = 0x08
    CONGESTION_CONTROL = 0x21
    SUBN_DIRECTED_ROUTE = 0x81


class MadMethod(IntEnum):
    """The methods common to all classes (IBTA vol 1, 13.4.5)."""

    GET = 0x01
    SET = 0x02
    SEND = 0x03
    TRAP = 0x05
    REPORT = 0x06
    TRAP_REPRESS = 0x07
    GET_RESP = 0x81
    REPORT_RESP = 0x86


class MadStatus(IntEnum):
    """The common part of MADHeader.Status, bits 7:0 (IBTA vol 1, 13.4.7)."""

    OK = 0x00
    BUSY = 0x01
    REDIRECT_REQUIRED = 0x02
    BAD_VERSION = 0x04
    METHOD_NOT_SUPPORTED = 0x08
    METHOD_ATTRIBUTE_NOT_SUPPORTED = 0x0C
    INVALID_ATTRIBUTE_VALUE = 0x1C


RESPONSES: Final[Mapping[int, MadMethod]] = {
    MadMethod.GET: MadMethod.GET_RESP,
    MadMethod.SET: MadMethod.GET_RESP,
    MadMethod.REPORT: MadMethod.REPORT_RESP,
}
"""The method of the answer to a request; Trap, TrapRepress and answers have none."""

_CODE: Final = 0x1C


def status_text(status: int) -> str:
    """A status in words. Bit 15 is ignored: in directed-route SMPs it is the D bit."""
    words = [label(flag) for flag in (MadStatus.BUSY, MadStatus.REDIRECT_REQUIRED) if status & flag]
    code = status & _CODE
    if code:
        known = code in MadStatus.__members__.values()
        words.append(label(MadStatus(code)) if known else f"reserved code {code >> 2}")
    if status >> 8 & 0x7F:
        words.append(f"class status {status >> 8 & 0x7F:#x}")
    return ", ".join(words) or label(MadStatus.OK)


MAD_HEADER: Final = Layout(
    "MADHeader",
    24,
    [
        Field("base_version", 0, 8, BASE_VERSION),
        Field("mgmt_class", 8, 8, meaning=Code(MgmtClass)),
        Field("class_version", 16, 8, CLASS_VERSION),
        Field("method", 24, 8, meaning=Code(MadMethod)),
        Field("status", 32, 16, meaning=Derived(status_text)),
        Field("class_specific", 48, 16, meaning=HEX),
        Field("transaction_id", 64, 64, meaning=HEX),
        Field("attribute_id", 128, 16, meaning=HEX),
        Field("attribute_modifier", 160, 32, meaning=HEX),
    ],
)
"""Common MAD header, 24 bytes (IBTA vol 1, 13.4.3)."""


def header_fields(mgmt_class: MgmtClass, without: Sequence[str] = (), **defaults: int) -> list[Field]:
    """The fields of the common header for the layout of a class, whose code is their default, and those of others."""
    own = {"mgmt_class": mgmt_class, **defaults}
    return [
        replace(field, default=own.get(field.name, field.default))
        for field in MAD_HEADER.fields
        if field.name not in without
    ]


CLASS_PORT_INFO: Final = Layout(
    "ClassPortInfo",
    72,
    [
        Field("base_version", 0, 8, BASE_VERSION),
        Field("class_version", 8, 8, CLASS_VERSION),
        Field("capability_mask", 16, 16, meaning=HEX),
        Field("capability_mask2", 32, 27, meaning=HEX),
        Field("resp_time_value", 59, 5, meaning=Derived(timer_text)),
        Field("redirect_gid", 64, 128, meaning=GID),
        Field("redirect_tc", 192, 8, meaning=HEX),
        Field("redirect_sl", 200, 4),
        Field("redirect_fl", 204, 20, meaning=HEX),
        Field("redirect_lid", 224, 16),
        Field("redirect_p_key", 240, 16, meaning=HEX),
        Field("redirect_qp", 264, 24, meaning=HEX),
        Field("redirect_q_key", 288, 32, meaning=HEX),
        Field("trap_gid", 320, 128, meaning=GID),
        Field("trap_tc", 448, 8, meaning=HEX),
        Field("trap_sl", 456, 4),
        Field("trap_fl", 460, 20, meaning=HEX),
        Field("trap_lid", 480, 16),
        Field("trap_p_key", 496, 16, meaning=HEX),
        Field("trap_hl", 512, 8),
        Field("trap_qp", 520, 24, meaning=HEX),
        Field("trap_q_key", 544, 32, meaning=HEX),
    ],
)
"""What an agent of a class can do, and where else to ask; 72 bytes (IBTA vol 1, 13.4.8.1). Bits 15:8 of
``capability_mask`` belong to the class."""

Format: TypeAlias = Layout | Table
"""How an attribute's bytes are read: as fields with names, or as a block of entries of one width."""

NO_MODIFIER: Final = Layout("AttributeModifier", 4, [])
"""The AttributeModifier of an attribute that makes no use of it."""

GET: Final = frozenset({MadMethod.GET})
GET_SET: Final = frozenset({MadMethod.GET, MadMethod.SET})


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a management class (IBTA vol 1, 13.4.8).

    Attributes:
        code: the AttributeID.
        format: its bytes, from the first data byte of the MAD.
        methods: the requests that may name it.
        modifier: the fields of the AttributeModifier, a layout of 4 bytes.
    """

    code: IntEnum
    format: Format
    methods: frozenset[MadMethod]
    modifier: Layout = NO_MODIFIER

    @property
    def name(self) -> str:
        """The standard's name."""
        return self.format.name


def pack_data(layout: Layout, data: bytes) -> int:
    """The value of a MAD's field ``data`` that holds these bytes, filled up with zero bytes.

    Raises:
        ValueError: more bytes than the field has.
    """
    size = layout["data"].width // 8
    if len(data) > size:
        raise ValueError(f"{layout.name}: attribute of {len(data)} bytes, allowed up to {size}")
    return int.from_bytes(data.ljust(size, b"\0"), "big")


def mad_data(mad: Record) -> bytes:
    """The bytes of a MAD's field ``data``: the attribute, and zero bytes after it."""
    return mad.data.to_bytes(mad.layout["data"].width // 8, "big")


def mad_response(request: Record, data: bytes = b"", status: int = MadStatus.OK) -> Record:
    """The answer to a request; for a directed-route SMP see ``smp_response``.

    Raises:
        ValueError: a request of a method that is not answered, or more data than fits.
    """
    method = RESPONSES.get(request.method)
    if method is None:
        raise ValueError(f"{request.layout.name} of method {request.method:#04x} has no answer")
    return request.replace(method=method, status=status, data=pack_data(request.layout, data))
