"""Congestion control: the MAD of class 0x21 and its attributes (IBTA vol 1, annex A10.4; fields as OpenSM has them).

An attribute is laid out from byte 32 of the MAD on: CongestionLog begins there, with the log data, all others
with their management data at byte 64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum, IntFlag
from typing import Final

from .codes import SERVICE_LEVELS
from .forwarding_tables import BLOCK_MODIFIER
from .layout import Field, Layout, Record
from .mad import (
    CLASS_PORT_INFO,
    GET,
    GET_SET,
    MAD_BYTES,
    Attribute,
    MadMethod,
    MgmtClass,
    header_fields,
    pack_data,
)
from .meaning import HEX, Amount, Bits, Code, Derived
from .notice import NOTICE_WITH_ISSUER

__all__ = [
    "CA_CONGESTION_ENTRY",
    "CA_CONGESTION_LOG",
    "CA_CONGESTION_LOG_EVENT",
    "CA_CONGESTION_SETTING",
    "CCT_ENTRY",
    "CC_ATTRIBUTES",
    "CC_CAPABILITIES",
    "CC_CLASS_PORT_INFO",
    "CC_CLASS_VERSION",
    "CC_DATA_BYTES",
    "CC_MAD",
    "CC_NOTICE",
    "CC_RESP_TIME",
    "CONGESTION_CONTROL_TABLE",
    "CONGESTION_INFO",
    "CONGESTION_KEY_INFO",
    "CONGESTION_LOG",
    "CONGESTION_LOG_EVENT",
    "CONGESTION_LOG_EVENTS",
    "CONGESTION_TIME_STAMP",
    "SWITCH_CONGESTION_INFO",
    "SWITCH_CONGESTION_SETTING",
    "SWITCH_PORT_CONGESTION_ELEMENT",
    "SWITCH_PORT_CONGESTION_SETTING",
    "CcAttribute",
    "CongestionInfo",
    "LogType",
    "SwitchControl",
    "cc_request",
]

CC_CLASS_VERSION: Final = 2
"""MADHeader.ClassVersion of the class."""

CC_DATA_BYTES: Final = 224
"""Bytes of a MAD from byte 32 on: log data (32), management data (192)."""

CC_CAPABILITIES: Final = 1 << 0
"""ClassPortInfo.CapabilityMask of the agents here: they send traps (IBTA vol 1, 13.4.8.1)."""

CC_RESP_TIME: Final = 8
"""RespTimeValue of the agents here: 4.096 us x 2^8 at most, about a millisecond."""

CC_MAD: Final = Layout(
    "CongestionControlMAD",
    MAD_BYTES,
    [
        *header_fields(MgmtClass.CONGESTION_CONTROL, class_version=CC_CLASS_VERSION),
        Field("cc_key", 192, 64, meaning=HEX),
        Field("data", 256, 8 * CC_DATA_BYTES, meaning=HEX),
    ],
)
"""Congestion control MAD, 256 bytes (IBTA vol 1, A10.4.1)."""


class CcAttribute(IntEnum):
    """AttributeIDs of the class (IBTA vol 1, A10.4.3)."""

    CLASS_PORT_INFO = 0x0001
    NOTICE = 0x0002
    CONGESTION_INFO = 0x0011
    CONGESTION_KEY_INFO = 0x0012
    CONGESTION_LOG = 0x0013
    SWITCH_CONGESTION_SETTING = 0x0014
    SWITCH_PORT_CONGESTION_SETTING = 0x0015
    CA_CONGESTION_SETTING = 0x0016
    CONGESTION_CONTROL_TABLE = 0x0017
    TIME_STAMP = 0x0018


class CongestionInfo(IntFlag):
    """CongestionInfo.CongestionInfo: what a node can do."""

    CREDIT_STARVATION = 1 << 0
    PORT_THRESHOLD = 1 << 1
    PORT_PACKET_SIZE = 1 << 2
    PORT_MARKING_RATE = 1 << 3
    PORT_CS_THRESHOLD = 1 << 4
    PORT_CS_RETURN_DELAY = 1 << 5
    QP_BASED = 1 << 6
    SL_BASED = 1 << 7


SWITCH_CONGESTION_INFO: Final = (
    CongestionInfo.PORT_THRESHOLD | CongestionInfo.PORT_PACKET_SIZE | CongestionInfo.PORT_MARKING_RATE
)
"""A switch's: each port may have settings of its own."""


class LogType(IntEnum):
    """CongestionLog.LogType."""

    SWITCH = 1
    CA = 2


class SwitchControl(IntFlag):
    """SwitchCongestionSetting.Control_Map: which components a Set is about."""

    VICTIM_MASK = 1 << 0
    CREDIT_MASK = 1 << 1
    THRESHOLD = 1 << 2
    """And Packet_Size."""
    CREDIT_STARVATION = 1 << 3
    """CS_Threshold and CS_ReturnDelay."""
    MARKING_RATE = 1 << 4


_LOG_BYTES: Final = 32


def _management(name: str, size_bytes: int, fields: Iterable[Field]) -> Layout:
    """An attribute whose fields are given as they are in the management data."""
    moved = [replace(field, offset_bits=field.offset_bits + 8 * _LOG_BYTES) for field in fields]
    return Layout(name, _LOG_BYTES + size_bytes, moved)


def _parts_text(parts: Layout, value: int) -> str:
    return ", ".join(f"{name} {parts[name].text(part)}" for name, part in parts.from_int(value).items())


def _event_text(value: int) -> str:
    return _parts_text(CONGESTION_LOG_EVENT, value)


def _ca_event_text(value: int) -> str:
    return _parts_text(CA_CONGESTION_LOG_EVENT, value)


def _element_text(value: int) -> str:
    return _parts_text(SWITCH_PORT_CONGESTION_ELEMENT, value)


def _ca_entry_text(value: int) -> str:
    return _parts_text(CA_CONGESTION_ENTRY, value)


def _delay_text(value: int) -> str:
    return _parts_text(CCT_ENTRY, value)


_BLOCKS: Final = Amount("x 64 bytes")
_TIME: Final = Amount("x 1.024 us")

CC_CLASS_PORT_INFO: Final = _management("ClassPortInfo", CLASS_PORT_INFO.size_bytes, CLASS_PORT_INFO.fields)

CC_NOTICE: Final = _management("Notice", NOTICE_WITH_ISSUER.size_bytes, NOTICE_WITH_ISSUER.fields)
"""What a trap of the class says (IBTA vol 1, 13.4.8.2)."""

CONGESTION_INFO: Final = _management(
    "CongestionInfo",
    3,
    [
        Field("congestion_info", 0, 16, meaning=Bits(CongestionInfo)),
        Field("control_table_cap", 16, 8, meaning=Amount("x 64 entries")),
    ],
)
"""What a node can do (IBTA vol 1, A10.4.3.3); ``control_table_cap`` is a channel adapter's."""

CONGESTION_KEY_INFO: Final = _management(
    "CongestionKeyInfo",
    14,
    [
        Field("cc_key", 0, 64, meaning=HEX),
        Field("protect_bit", 64, 1),
        Field("lease_period", 80, 16, meaning=Amount("s")),
        Field("violations", 96, 16),
    ],
)
"""Who may set congestion control (IBTA vol 1, A10.4.3.4)."""

CONGESTION_LOG_EVENT: Final = Layout(
    "CongestionLogEvent",
    12,
    [Field("slid", 0, 16), Field("dlid", 16, 16), Field("sl", 32, 4), Field("time_stamp", 64, 32, meaning=_TIME)],
)
"""An event of a switch: it marked a packet."""

CONGESTION_LOG_EVENTS: Final = 15
"""Events that a switch's log holds."""

CONGESTION_LOG: Final = Layout(
    "CongestionLog",
    40 + CONGESTION_LOG_EVENTS * CONGESTION_LOG_EVENT.size_bytes,
    [
        Field("log_type", 0, 8, LogType.SWITCH, meaning=Code(LogType)),
        Field("congestion_flags", 8, 8, meaning=HEX),
        Field("log_events_counter", 16, 16),
        Field("current_time_stamp", 32, 32, meaning=_TIME),
        Field("port_map", 64, 256, meaning=HEX),
        *(Field(f"event{index}", 320 + 96 * index, 96, meaning=Derived(_event_text)) for index in range(15)),
    ],
)
"""A switch's (IBTA vol 1, A10.4.3.5): bit p of ``port_map`` is port p's; the latest event is the first."""

CA_CONGESTION_LOG_EVENT: Final = Layout(
    "CongestionLogEvent",
    16,
    [
        Field("local_qp", 0, 24, meaning=HEX),
        Field("sl", 24, 4),
        Field("service_type", 28, 4),
        Field("remote_qp", 32, 24, meaning=HEX),
        Field("local_lid", 64, 16),
        Field("remote_lid", 80, 16),
        Field("time_stamp", 96, 32, meaning=_TIME),
    ],
)
"""An event of a channel adapter: the CCTI of a queue pair reached its threshold. Places as libibmad reads them."""

CA_CONGESTION_LOG: Final = Layout(
    "CongestionLog",
    12 + 13 * CA_CONGESTION_LOG_EVENT.size_bytes,
    [
        Field("log_type", 0, 8, LogType.CA, meaning=Code(LogType)),
        Field("congestion_flags", 8, 8, meaning=HEX),
        Field("threshold_event_counter", 16, 16),
        Field("threshold_congestion_event_map", 32, 16, meaning=HEX),
        Field("current_time_stamp", 64, 32, meaning=_TIME),
        *(Field(f"event{index}", 96 + 128 * index, 128, meaning=Derived(_ca_event_text)) for index in range(13)),
    ],
)
"""A channel adapter's; ``threshold_congestion_event_map`` has a bit for each SL. Places as libibmad reads them."""

SWITCH_CONGESTION_SETTING: Final = _management(
    "SwitchCongestionSetting",
    76,
    [
        Field("control_map", 0, 32, meaning=Bits(SwitchControl)),
        Field("victim_mask", 32, 256, meaning=HEX),
        Field("credit_mask", 288, 256, meaning=HEX),
        Field("threshold", 544, 4),
        Field("packet_size", 552, 8, meaning=_BLOCKS),
        Field("cs_threshold", 560, 4),
        Field("cs_return_delay", 576, 16, meaning=Derived(_delay_text)),
        Field("marking_rate", 592, 16),
    ],
)
"""When a switch marks packets (IBTA vol 1, A10.4.3.6): bit p of a mask is port p's; ``threshold`` 0 never, 15 soonest;
``packet_size`` is that of the smallest packet that is marked; ``marking_rate`` how many go between two marks."""

SWITCH_PORT_CONGESTION_ELEMENT: Final = Layout(
    "SwitchPortCongestionSettingElement",
    4,
    [
        Field("valid", 0, 1),
        Field("control_type", 1, 1),
        Field("threshold", 4, 4),
        Field("packet_size", 8, 8, meaning=_BLOCKS),
        Field("marking_rate", 16, 16),
    ],
)
"""A port's own (IBTA vol 1, A10.4.3.7), where ``valid``; with ``control_type`` 1 it is about credit starvation."""

SWITCH_PORT_CONGESTION_SETTING: Final = _management(
    "SwitchPortCongestionSetting",
    128,
    [Field(f"element{index}", 32 * index, 32, meaning=Derived(_element_text)) for index in range(32)],
)
"""Block b: the elements of ports 32 b to 32 b + 31."""

CA_CONGESTION_ENTRY: Final = Layout(
    "CACongestionEntry",
    8,
    [
        Field("ccti_timer", 0, 16, meaning=_TIME),
        Field("ccti_increase", 16, 8),
        Field("trigger_threshold", 24, 8),
        Field("ccti_min", 32, 8),
    ],
)
"""How an SL's flows slow down (IBTA vol 1, A10.4.3.8): by how many entries of the table with each BECN, and how soon
one back."""

CA_CONGESTION_SETTING: Final = _management(
    "CACongestionSetting",
    132,
    [
        Field("port_control", 0, 16, meaning=HEX),
        Field("control_map", 16, 16, meaning=HEX),
        *(Field(f"entry{sl}", 32 + 64 * sl, 64, meaning=Derived(_ca_entry_text)) for sl in range(SERVICE_LEVELS)),
    ],
)
"""A channel adapter's: bit 0 of ``port_control`` slows down SLs, not queue pairs; ``control_map`` has a bit for each
entry that a Set is about."""

CCT_ENTRY: Final = Layout("CongestionControlTableEntry", 2, [Field("shift", 0, 2), Field("multiplier", 2, 14)])
"""The delay behind a packet: its time on the link >> ``shift``, x ``multiplier`` (IBTA vol 1, A10.4.3.9)."""

CONGESTION_CONTROL_TABLE: Final = _management(
    "CongestionControlTable",
    132,
    [
        Field("ccti_limit", 0, 16),
        *(Field(f"entry{index}", 32 + 16 * index, 16, meaning=Derived(_delay_text)) for index in range(64)),
    ],
)
"""Block b: entries 64 b to 64 b + 63, and ``ccti_limit``, the last that is used, of all blocks."""

CONGESTION_TIME_STAMP: Final = _management("TimeStamp", 4, [Field("time_stamp", 0, 32, meaning=_TIME)])
"""The clock of the log's events."""

CC_ATTRIBUTES: Final[Mapping[int, Attribute]] = {
    attribute.code: attribute
    for attribute in (
        Attribute(CcAttribute.CLASS_PORT_INFO, CC_CLASS_PORT_INFO, GET_SET),
        Attribute(CcAttribute.NOTICE, CC_NOTICE, frozenset({MadMethod.TRAP, MadMethod.TRAP_REPRESS})),
        Attribute(CcAttribute.CONGESTION_INFO, CONGESTION_INFO, GET),
        Attribute(CcAttribute.CONGESTION_KEY_INFO, CONGESTION_KEY_INFO, GET_SET),
        Attribute(CcAttribute.CONGESTION_LOG, CONGESTION_LOG, GET),
        Attribute(CcAttribute.SWITCH_CONGESTION_SETTING, SWITCH_CONGESTION_SETTING, GET_SET),
        Attribute(
            CcAttribute.SWITCH_PORT_CONGESTION_SETTING,
            SWITCH_PORT_CONGESTION_SETTING,
            GET_SET,
            BLOCK_MODIFIER,
        ),
        Attribute(CcAttribute.CA_CONGESTION_SETTING, CA_CONGESTION_SETTING, GET_SET),
        Attribute(CcAttribute.CONGESTION_CONTROL_TABLE, CONGESTION_CONTROL_TABLE, GET_SET, BLOCK_MODIFIER),
        Attribute(CcAttribute.TIME_STAMP, CONGESTION_TIME_STAMP, GET),
    )
}
"""The attributes of the class by their codes; CongestionLog as a switch has it."""


def cc_request(
    method: MadMethod,
    attribute_id: int,
    data: bytes = b"",
    *,
    transaction_id: int,
    modifier: int = 0,
    cc_key: int = 0,
) -> Record:
    """A request to a congestion control agent, or its trap, ``data`` filled up with zero bytes.

    Raises:
        ValueError: more than 224 bytes of data, or a value that does not fit its field.
    """
    return CC_MAD.record(
        method=method,
        attribute_id=attribute_id,
        attribute_modifier=modifier,
        transaction_id=transaction_id,
        cc_key=cc_key,
        data=pack_data(CC_MAD, data),
    )
