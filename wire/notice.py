"""Notices: what an agent reports to the Subnet Manager unasked, and the details of each trap (IBTA vol 1, 13.4.8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from .layout import Field, Layout, Record
from .meaning import GID, HEX, Bits, Code
from .node_info import NodeType
from .port_info import CapabilityMask, CapabilityMask2
from .table import Table

__all__ = [
    "NOTICE",
    "NOTICE_DETAILS",
    "NOTICE_RETURN_PATH",
    "NOTICE_TYPES",
    "NOTICE_WITH_ISSUER",
    "NoticeType",
    "ProducerType",
    "TrapNumber",
    "details_of",
    "notice",
]


class NoticeType(IntEnum):
    """Notice.Type: how grave it is."""

    FATAL = 0
    URGENT = 1
    SECURITY = 2
    SUBNET_MANAGEMENT = 3
    INFORMATIONAL = 4
    EMPTY = 0x7F


class ProducerType(IntEnum):
    """Notice.ProducerType of generic notices."""

    CA = NodeType.CA
    SWITCH = NodeType.SWITCH
    ROUTER = NodeType.ROUTER
    CLASS_MANAGER = 4


class TrapNumber(IntEnum):
    """Notice.TrapNumber of generic notices of the congestion control class, 0 (IBTA vol 1, A10.4; OpenSM names its
    details so), of the subnet administration class, 64 to 67, which only go to subscribers, and of the subnet
    management class (14.2.5.1)."""

    BAD_CC_KEY = 0
    GID_IN_SERVICE = 64
    GID_OUT_OF_SERVICE = 65
    GROUP_CREATED = 66
    GROUP_DELETED = 67
    LINK_STATE_CHANGE = 128
    LOCAL_LINK_INTEGRITY = 129
    EXCESSIVE_BUFFER_OVERRUN = 130
    FLOW_CONTROL_WATCHDOG = 131
    LOCAL_CHANGES = 144
    SYSTEM_IMAGE_GUID_CHANGE = 145
    BAD_M_KEY = 256
    BAD_P_KEY = 257
    BAD_Q_KEY = 258
    BAD_P_KEY_AT_SWITCH = 259


NOTICE: Final = Layout(
    "Notice",
    64,
    [
        Field("is_generic", 0, 1, 1),
        Field("notice_type", 1, 7, meaning=Code(NoticeType)),
        Field("producer_type", 8, 24, meaning=Code(ProducerType)),
        Field("trap_number", 32, 16, meaning=Code(TrapNumber)),
        Field("issuer_lid", 48, 16),
        Field("notice_toggle", 64, 1),
        Field("notice_count", 65, 15),
        Field("data_details", 80, 432, meaning=HEX),
    ],
)
"""64 bytes. Where ``is_generic`` is 0, ``producer_type`` is a vendor and ``trap_number`` a device of it."""

NOTICE_WITH_ISSUER: Final = Layout("Notice", 80, [*NOTICE.fields, Field("issuer_gid", 512, 128, meaning=GID)])
"""As all classes but subnet management have it, whose SMPs have no place for more, and as Reports have it: 80 bytes."""

_LID: Final = Field("lid", 16, 16)
_GID_EVENT: Final = Layout("Notice details, GID", 54, [Field("gid", 48, 128, meaning=GID)])
_PORT_EVENT: Final = Layout("Notice details, port", 54, [_LID, Field("port", 32, 8)])


def _bad_key(name: str) -> Layout:
    return Layout(
        f"Notice details, {name}",
        54,
        [
            Field("lid1", 16, 16),
            Field("lid2", 32, 16),
            Field("key", 48, 32, meaning=HEX),
            Field("sl", 80, 4),
            Field("qp1", 88, 24),
            Field("qp2", 120, 24),
            Field("gid1", 144, 128, meaning=GID),
            Field("gid2", 272, 128, meaning=GID),
        ],
    )


NOTICE_DETAILS: Final[Mapping[int, Layout]] = {
    TrapNumber.BAD_CC_KEY: Layout(
        "Notice details, CC_Key",
        54,
        [
            Field("slid", 0, 16),
            Field("method", 16, 8, meaning=HEX),
            Field("attribute_id", 32, 16, meaning=HEX),
            Field("attribute_modifier", 64, 32, meaning=HEX),
            Field("qp", 104, 24, meaning=HEX),
            Field("cc_key", 128, 64, meaning=HEX),
            Field("source_gid", 192, 128, meaning=GID),
        ],
    ),
    TrapNumber.GID_IN_SERVICE: _GID_EVENT,
    TrapNumber.GID_OUT_OF_SERVICE: _GID_EVENT,
    TrapNumber.GROUP_CREATED: _GID_EVENT,
    TrapNumber.GROUP_DELETED: _GID_EVENT,
    TrapNumber.LINK_STATE_CHANGE: Layout("Notice details, link state", 54, [Field("lid", 0, 16)]),
    TrapNumber.LOCAL_LINK_INTEGRITY: _PORT_EVENT,
    TrapNumber.EXCESSIVE_BUFFER_OVERRUN: _PORT_EVENT,
    TrapNumber.FLOW_CONTROL_WATCHDOG: _PORT_EVENT,
    TrapNumber.LOCAL_CHANGES: Layout(
        "Notice details, local changes",
        54,
        [
            _LID,
            Field("other_local_changes", 47, 1),
            Field("capability_mask", 48, 32, meaning=Bits(CapabilityMask)),
            Field("sm_priority_change", 92, 1),
            Field("link_speed_enabled_change", 93, 1),
            Field("link_width_enabled_change", 94, 1),
            Field("node_description_change", 95, 1),
            Field("capability_mask2", 96, 16, meaning=Bits(CapabilityMask2)),
        ],
    ),
    TrapNumber.SYSTEM_IMAGE_GUID_CHANGE: Layout(
        "Notice details, system image GUID", 54, [_LID, Field("system_image_guid", 48, 64, meaning=HEX)]
    ),
    TrapNumber.BAD_M_KEY: Layout(
        "Notice details, M_Key",
        54,
        [
            _LID,
            Field("dr_slid", 32, 16),
            Field("method", 48, 8, meaning=HEX),
            Field("attribute_id", 64, 16, meaning=HEX),
            Field("attribute_modifier", 80, 32, meaning=HEX),
            Field("m_key", 112, 64, meaning=HEX),
            Field("dr_notice", 184, 1),
            Field("dr_path_truncated", 185, 1),
            Field("dr_hop_count", 186, 6),
            Field("dr_notice_return_path", 192, 240, meaning=HEX),
        ],
    ),
    TrapNumber.BAD_P_KEY: _bad_key("P_Key"),
    TrapNumber.BAD_Q_KEY: _bad_key("Q_Key"),
    TrapNumber.BAD_P_KEY_AT_SWITCH: Layout(
        "Notice details, P_Key at a switch",
        54,
        [
            Field("data_valid", 0, 16, meaning=HEX),
            Field("lid1", 16, 16),
            Field("lid2", 32, 16),
            Field("p_key", 48, 16, meaning=HEX),
            Field("sl", 64, 4),
            Field("qp1", 72, 24),
            Field("qp2", 104, 24),
            Field("gid1", 128, 128, meaning=GID),
            Field("gid2", 256, 128, meaning=GID),
            Field("sw_lid", 384, 16),
            Field("port", 400, 8),
        ],
    ),
}
"""Notice.DataDetails of each trap, 54 bytes (IBTA vol 1, 14.2.5.1). ``lid`` is the port that the notice is about;
of two LIDs, GIDs and QPs the first is the packet's source, the second its destination."""

NOTICE_RETURN_PATH: Final = Table("DRNoticeReturnPath", 30, Field("port", 0, 8))
"""The entries of ``dr_notice_return_path``: the first 30 of an SMP's ReturnPath, entry 0 included."""

NOTICE_TYPES: Final[Mapping[int, NoticeType]] = {
    TrapNumber.BAD_CC_KEY: NoticeType.SECURITY,
    TrapNumber.GID_IN_SERVICE: NoticeType.SUBNET_MANAGEMENT,
    TrapNumber.GID_OUT_OF_SERVICE: NoticeType.SUBNET_MANAGEMENT,
    TrapNumber.GROUP_CREATED: NoticeType.SUBNET_MANAGEMENT,
    TrapNumber.GROUP_DELETED: NoticeType.SUBNET_MANAGEMENT,
    TrapNumber.LINK_STATE_CHANGE: NoticeType.URGENT,
    TrapNumber.LOCAL_LINK_INTEGRITY: NoticeType.URGENT,
    TrapNumber.EXCESSIVE_BUFFER_OVERRUN: NoticeType.URGENT,
    TrapNumber.FLOW_CONTROL_WATCHDOG: NoticeType.URGENT,
    TrapNumber.LOCAL_CHANGES: NoticeType.INFORMATIONAL,
    TrapNumber.SYSTEM_IMAGE_GUID_CHANGE: NoticeType.INFORMATIONAL,
    TrapNumber.BAD_M_KEY: NoticeType.SECURITY,
    TrapNumber.BAD_P_KEY: NoticeType.SECURITY,
    TrapNumber.BAD_Q_KEY: NoticeType.SECURITY,
    TrapNumber.BAD_P_KEY_AT_SWITCH: NoticeType.SECURITY,
}
"""The type that each trap's notice has."""


def notice(trap: TrapNumber, producer: ProducerType, issuer_lid: int, **details: int) -> Record:
    """The notice of a trap, ``details`` being fields of ``NOTICE_DETAILS[trap]``.

    Raises:
        ValueError: a detail that the trap does not have, or a value that does not fit.
    """
    return NOTICE.record(
        notice_type=NOTICE_TYPES[trap],
        producer_type=producer,
        trap_number=trap,
        issuer_lid=issuer_lid,
        data_details=NOTICE_DETAILS[trap].to_int(details),
    )


def details_of(record: Record) -> Record | None:
    """The details of a generic notice; None of a vendor's, and of a trap that is not among ``NOTICE_DETAILS``."""
    layout = NOTICE_DETAILS.get(record.trap_number) if record.is_generic else None
    return None if layout is None else layout.from_int(record.data_details)
