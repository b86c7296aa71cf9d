"""Subnet administration: datagrams, methods, statuses, records and their components (IBTA vol 1, 15.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum, IntFlag
from typing import Final

from .layout import Field, Layout
from .mad import CLASS_PORT_INFO, MAD_BYTES, MadMethod, MgmtClass, header_fields
from .mc_member_record import MC_MEMBER_RECORD
from .meaning import GID, HEX, TEXT, Code
from .node_info import NODE_DESCRIPTION, NODE_INFO
from .notice import NOTICE_WITH_ISSUER, NoticeType, ProducerType, TrapNumber
from .path_record import PATH_RECORD
from .port_info import PORT_INFO
from .port_tables import P_KEY_TABLE
from .rmpp import RMPP_HEADER
from .sma import SM_INFO

__all__ = [
    "INFORM_INFO",
    "INFORM_INFO_RECORD",
    "LEASE_INDEFINITE",
    "LINK_RECORD",
    "NODE_RECORD",
    "PORT_INFO_RECORD",
    "P_KEY_TABLE_RECORD",
    "SA_CLASS_VERSION",
    "SA_DATA_BYTES",
    "SA_HEADER_BYTES",
    "SA_MAD",
    "SA_RECORDS",
    "SA_RESPONSES",
    "SERVICE_RECORD",
    "SM_INFO_RECORD",
    "SaAttribute",
    "SaCapability",
    "SaCapability2",
    "SaMethod",
    "SaStatus",
    "components",
]

SA_CLASS_VERSION: Final = 2
"""MADHeader.ClassVersion of the subnet administration class."""

SA_HEADER_BYTES: Final = 56
SA_DATA_BYTES: Final = MAD_BYTES - SA_HEADER_BYTES


class SaMethod(IntEnum):
    """The methods of the class (IBTA vol 1, 15.2.2); those of all classes have the numbers they have there."""

    GET = MadMethod.GET
    SET = MadMethod.SET
    REPORT = MadMethod.REPORT
    GET_TABLE = 0x12
    DELETE = 0x15
    GET_RESP = MadMethod.GET_RESP
    REPORT_RESP = MadMethod.REPORT_RESP
    GET_TABLE_RESP = 0x92
    DELETE_RESP = 0x95


SA_RESPONSES: Final[Mapping[int, SaMethod]] = {
    SaMethod.GET: SaMethod.GET_RESP,
    SaMethod.SET: SaMethod.GET_RESP,
    SaMethod.GET_TABLE: SaMethod.GET_TABLE_RESP,
    SaMethod.DELETE: SaMethod.DELETE_RESP,
}
"""The method of the answer to a request that clients make."""


class SaStatus(IntEnum):
    """The class's own part of MADHeader.Status, bits 15:8 (IBTA vol 1, 15.2.3)."""

    NO_RESOURCES = 0x0100
    REQ_INVALID = 0x0200
    NO_RECORDS = 0x0300
    TOO_MANY_RECORDS = 0x0400
    REQ_INVALID_GID = 0x0500
    REQ_INSUFFICIENT_COMPONENTS = 0x0600
    REQ_DENIED = 0x0700


class SaCapability(IntFlag):
    """ClassPortInfo.CapabilityMask of the class, of what our Subnet Administrator has (IBTA vol 1, 15.2.1.2)."""

    IS_UD_MULTICAST_SUPPORTED = 1 << 9
    IS_PORT_INFO_CAPABILITY_MASK_MATCH_SUPPORTED = 1 << 13


class SaCapability2(IntFlag):
    """ClassPortInfo.CapabilityMask2 of the class, likewise."""

    IS_MULTICAST_FDB_TOP_SUPPORTED = 1 << 3
    IS_SEND_ONLY_FULL_MEMBER_SUPPORTED = 1 << 12


class SaAttribute(IntEnum):
    """AttributeIDs of the class, of those that our Subnet Administrator has (IBTA vol 1, 15.2.5)."""

    CLASS_PORT_INFO = 0x0001
    NOTICE = 0x0002
    INFORM_INFO = 0x0003
    NODE_RECORD = 0x0011
    PORT_INFO_RECORD = 0x0012
    SM_INFO_RECORD = 0x0018
    LINK_RECORD = 0x0020
    SERVICE_RECORD = 0x0031
    P_KEY_TABLE_RECORD = 0x0033
    PATH_RECORD = 0x0035
    MC_MEMBER_RECORD = 0x0038
    INFORM_INFO_RECORD = 0x00F3


SA_MAD: Final = Layout(
    "SubnAdmMAD",
    MAD_BYTES,
    [
        *header_fields(MgmtClass.SUBN_ADM, class_version=SA_CLASS_VERSION),
        *RMPP_HEADER.fields,
        Field("sm_key", 288, 64, meaning=HEX),
        Field("attribute_offset", 352, 16),
        Field("component_mask", 384, 64, meaning=HEX),
        Field("data", 448, 8 * SA_DATA_BYTES, meaning=HEX),
    ],
)
"""A datagram of the class, 256 bytes (IBTA vol 1, 15.2.1.1). ``attribute_offset`` is the distance of two records in a
table, in 8 bytes; bit i of ``component_mask`` says that component i of the record counts."""


def _at(layout: Layout, offset_bits: int) -> list[Field]:
    """The fields of a layout where it begins at this bit of another."""
    return [replace(field, offset_bits=field.offset_bits + offset_bits) for field in layout.fields]


NODE_RECORD: Final = Layout(
    "NodeRecord", 108, [Field("endport_lid", 0, 16), *_at(NODE_INFO, 32), *_at(NODE_DESCRIPTION, 352)]
)
"""NodeInfo and NodeDescription of the node of an end port; 108 bytes (IBTA vol 1, 15.2.5.2)."""

PORT_INFO_RECORD: Final = Layout(
    "PortInfoRecord", 68, [Field("endport_lid", 0, 16), Field("port_num", 16, 8), *_at(PORT_INFO, 32)]
)
"""PortInfo of a port, of a switch by port 0's LID; 68 bytes (IBTA vol 1, 15.2.5.3)."""

SM_INFO_RECORD: Final = Layout("SMInfoRecord", 28, [Field("endport_lid", 0, 16), *_at(SM_INFO, 32)])
"""SMInfo of a Subnet Manager; 25 bytes used of 28 (IBTA vol 1, 15.2.5.10)."""

LINK_RECORD: Final = Layout(
    "LinkRecord",
    8,
    [Field("from_lid", 0, 16), Field("from_port", 16, 8), Field("to_port", 24, 8), Field("to_lid", 32, 16)],
)
"""A link as one of its ends sees it; 6 bytes used of 8 (IBTA vol 1, 15.2.5.13)."""

P_KEY_TABLE_RECORD: Final = Layout(
    "P_KeyTableRecord",
    72,
    [
        Field("endport_lid", 0, 16),
        Field("block_num", 16, 16),
        Field("port_num", 32, 8),
        *(replace(P_KEY_TABLE.field(i), offset_bits=64 + 16 * i) for i in range(P_KEY_TABLE.count)),
    ],
)
"""A block of the P_Key table of a port, of a switch by port 0's LID; 72 bytes (IBTA vol 1, 15.2.5.11)."""

LEASE_INDEFINITE: Final = 0xFFFF_FFFF
"""A ServiceLease that does not end."""

SERVICE_RECORD: Final = Layout(
    "ServiceRecord",
    176,
    [
        Field("service_id", 0, 64, meaning=HEX),
        Field("service_gid", 64, 128, meaning=GID),
        Field("service_p_key", 192, 16, meaning=HEX),
        Field("service_lease", 224, 32),
        Field("service_key", 256, 128, meaning=HEX),
        Field("service_name", 384, 512, meaning=TEXT),
        *(Field(f"service_data8_{i}", 896 + 8 * i, 8) for i in range(16)),
        *(Field(f"service_data16_{i}", 1024 + 16 * i, 16) for i in range(8)),
        *(Field(f"service_data32_{i}", 1152 + 32 * i, 32) for i in range(4)),
        *(Field(f"service_data64_{i}", 1280 + 64 * i, 64) for i in range(2)),
    ],
)
"""A service that a port offers, with a lease in seconds; 176 bytes (IBTA vol 1, 15.2.5.14)."""

INFORM_INFO: Final = Layout(
    "InformInfo",
    36,
    [
        Field("gid", 0, 128, meaning=GID),
        Field("lid_range_begin", 128, 16),
        Field("lid_range_end", 144, 16),
        Field("is_generic", 176, 8),
        Field("subscribe", 184, 8),
        Field("notice_type", 192, 16, meaning=Code(NoticeType)),
        Field("trap_number", 208, 16, meaning=Code(TrapNumber)),
        Field("qpn", 224, 24, meaning=HEX),
        Field("resp_time_value", 251, 5),
        Field("producer_type", 264, 24, meaning=Code(ProducerType)),
    ],
)
"""Which notices somebody wants to be told of; 36 bytes (IBTA vol 1, 13.4.8.3). All ones in a field are all of its
kind; the GID counts unless it is 0, and the LIDs if it is."""

INFORM_INFO_RECORD: Final = Layout(
    "InformInfoRecord",
    60,
    [Field("subscriber_gid", 0, 128, meaning=GID), Field("subscriber_enum", 128, 16), *_at(INFORM_INFO, 192)],
)
"""A subscription; 60 bytes (IBTA vol 1, 15.2.5.12)."""

SA_RECORDS: Final[Mapping[int, Layout]] = {
    SaAttribute.CLASS_PORT_INFO: CLASS_PORT_INFO,
    SaAttribute.NOTICE: NOTICE_WITH_ISSUER,
    SaAttribute.INFORM_INFO: INFORM_INFO,
    SaAttribute.NODE_RECORD: NODE_RECORD,
    SaAttribute.PORT_INFO_RECORD: PORT_INFO_RECORD,
    SaAttribute.SM_INFO_RECORD: SM_INFO_RECORD,
    SaAttribute.LINK_RECORD: LINK_RECORD,
    SaAttribute.SERVICE_RECORD: SERVICE_RECORD,
    SaAttribute.P_KEY_TABLE_RECORD: P_KEY_TABLE_RECORD,
    SaAttribute.PATH_RECORD: PATH_RECORD,
    SaAttribute.MC_MEMBER_RECORD: MC_MEMBER_RECORD,
    SaAttribute.INFORM_INFO_RECORD: INFORM_INFO_RECORD,
}
"""The layout of each attribute."""


def components(layout: Layout) -> tuple[str | None, ...]:
    """The components of a record by their bits in ComponentMask: its fields in order, None for what is reserved
    between two of them (IBTA vol 1, 15.2.5). The ServiceID of a PathRecord counts as two."""
    names: list[str | None] = ["service_id"] if layout == PATH_RECORD else []
    end = 0
    for field in layout.fields:
        if field.offset_bits > end:
            names.append(None)
        names.append(field.name)
        end = field.end_bits
    return tuple(names)
