"""Performance management: the MAD, its attributes and the port counters (IBTA vol 1, 16.1)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from typing import Final

from .codes import VL15
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
from .meaning import HEX, Amount, Code, Derived

__all__ = [
    "ALL_PORTS",
    "PERF_MAD",
    "PMA_ATTRIBUTES",
    "PMA_CAPABILITIES",
    "PMA_COUNTERS",
    "PMA_COUNTERS_EXTENDED",
    "PMA_DATA_BYTES",
    "PMA_RCV_ERROR_DETAILS",
    "PMA_RESP_TIME",
    "PMA_VL_XMIT_WAIT",
    "PMA_XMIT_DISCARD_DETAILS",
    "PORT_COUNTERS",
    "PORT_COUNTERS_EXTENDED",
    "PORT_RCV_ERROR_DETAILS",
    "PORT_SAMPLES_CONTROL",
    "PORT_SAMPLES_RESULT",
    "PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS",
    "PORT_VL_XMIT_WAIT_COUNTERS",
    "PORT_XMIT_DISCARD_DETAILS",
    "PerfCapability",
    "PmaAttribute",
    "SampleStatus",
    "perf_request",
]

PMA_DATA_BYTES: Final = 192
"""Bytes of an attribute in a performance management MAD, from byte 64 on (IBTA vol 1, 16.1.1)."""

PERF_MAD: Final = Layout(
    "PerfMAD",
    MAD_BYTES,
    [
        *header_fields(MgmtClass.PERF),
        Field("data", 512, 8 * PMA_DATA_BYTES, meaning=HEX),
    ],
)
"""Performance management MAD, 256 bytes (IBTA vol 1, 16.1.1)."""


class PmaAttribute(IntEnum):
    """AttributeIDs of the performance management class (IBTA vol 1, 16.1.2)."""

    CLASS_PORT_INFO = 0x0001
    PORT_SAMPLES_CONTROL = 0x0010
    PORT_SAMPLES_RESULT = 0x0011
    PORT_COUNTERS = 0x0012
    PORT_RCV_ERROR_DETAILS = 0x0015
    PORT_XMIT_DISCARD_DETAILS = 0x0016
    PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS = 0x001B
    PORT_VL_XMIT_WAIT_COUNTERS = 0x001C
    PORT_COUNTERS_EXTENDED = 0x001D


class PerfCapability(IntFlag):
    """ClassPortInfo.CapabilityMask of the class (IBTA vol 1, 16.1.3.1)."""

    ALL_PORT_SELECT = 1 << 8
    EXTENDED_WIDTH = 1 << 9
    EXTENDED_WIDTH_NO_IETF = 1 << 10
    SAMPLES_ONLY = 1 << 11
    PORT_COUNTERS_XMIT_WAIT = 1 << 12


PMA_CAPABILITIES: Final = (
    PerfCapability.ALL_PORT_SELECT | PerfCapability.EXTENDED_WIDTH | PerfCapability.PORT_COUNTERS_XMIT_WAIT
)
"""What the nodes' agents can do: PortSelect 255, PortCountersExtended, and PortXmitWait."""

ALL_PORTS: Final = 0xFF
"""PortSelect that stands for all ports."""

PMA_RESP_TIME: Final = 8
"""RespTimeValue of the nodes' agents: 4.096 us x 2^8 at most, about a millisecond."""


class SampleStatus(IntEnum):
    """PortSamplesControl.SampleStatus."""

    DONE = 0
    STARTED = 1
    RUNNING = 2


def _tick_text(tick: int) -> str:
    return f"{tick + 1} symbol times"


_WORDS: Final = Amount("x 4 bytes")
_TICKS: Final = Amount("ticks")
_PACKETS: Final = Amount("packets")

PORT_SAMPLES_CONTROL: Final = Layout(
    "PortSamplesControl",
    PMA_DATA_BYTES,
    [
        Field("op_code", 0, 8, meaning=HEX),
        Field("port_select", 8, 8),
        Field("tick", 16, 8, meaning=Derived(_tick_text)),
        Field("counter_width", 29, 3),
        *(Field(f"counter_mask{index}", 34 + 3 * index, 3, meaning=HEX) for index in range(10)),
        *(Field(f"counter_mask{index}", 65 + 3 * (index - 10), 3, meaning=HEX) for index in range(10, 15)),
        Field("sample_mechanisms", 80, 8, meaning=HEX),
        Field("sample_status", 94, 2, meaning=Code(SampleStatus)),
        Field("option_mask", 96, 64, meaning=HEX),
        Field("vendor_mask", 160, 64, meaning=HEX),
        Field("sample_start", 224, 32, meaning=_TICKS),
        Field("sample_interval", 256, 32, meaning=_TICKS),
        Field("tag", 288, 16, meaning=HEX),
        *(Field(f"counter_select{index}", 304 + 16 * index, 16, meaning=HEX) for index in range(15)),
        Field("samples_only_option_mask", 576, 64, meaning=HEX),
    ],
)
"""192 bytes (IBTA vol 1, 16.1.3.2). ``tick`` is the unit of PortXmitWait too."""

PORT_SAMPLES_RESULT: Final = Layout(
    "PortSamplesResult",
    64,
    [
        Field("tag", 0, 16, meaning=HEX),
        Field("sample_status", 30, 2, meaning=Code(SampleStatus)),
        *(Field(f"counter{index}", 32 + 32 * index, 32) for index in range(15)),
    ],
)
"""64 bytes (IBTA vol 1, 16.1.3.4)."""

PORT_COUNTERS: Final = Layout(
    "PortCounters",
    44,
    [
        Field("port_select", 8, 8),
        Field("counter_select", 16, 16, meaning=HEX),
        Field("symbol_error_counter", 32, 16),
        Field("link_error_recovery_counter", 48, 8),
        Field("link_downed_counter", 56, 8),
        Field("port_rcv_errors", 64, 16),
        Field("port_rcv_remote_physical_errors", 80, 16),
        Field("port_rcv_switch_relay_errors", 96, 16),
        Field("port_xmit_discards", 112, 16),
        Field("port_xmit_constraint_errors", 128, 8),
        Field("port_rcv_constraint_errors", 136, 8),
        Field("counter_select2", 144, 8, meaning=HEX),
        Field("local_link_integrity_errors", 152, 4),
        Field("excessive_buffer_overrun_errors", 156, 4),
        Field("vl15_dropped", 176, 16),
        Field("port_xmit_data", 192, 32, meaning=_WORDS),
        Field("port_rcv_data", 224, 32, meaning=_WORDS),
        Field("port_xmit_pkts", 256, 32, meaning=_PACKETS),
        Field("port_rcv_pkts", 288, 32, meaning=_PACKETS),
        Field("port_xmit_wait", 320, 32, meaning=_TICKS),
    ],
)
"""44 bytes (IBTA vol 1, 16.1.3.5). Counters stop at all ones."""

PORT_COUNTERS_EXTENDED: Final = Layout(
    "PortCountersExtended",
    72,
    [
        Field("port_select", 8, 8),
        Field("counter_select", 16, 16, meaning=HEX),
        Field("port_xmit_data", 64, 64, meaning=_WORDS),
        Field("port_rcv_data", 128, 64, meaning=_WORDS),
        Field("port_xmit_pkts", 192, 64, meaning=_PACKETS),
        Field("port_rcv_pkts", 256, 64, meaning=_PACKETS),
        Field("port_unicast_xmit_pkts", 320, 64, meaning=_PACKETS),
        Field("port_unicast_rcv_pkts", 384, 64, meaning=_PACKETS),
        Field("port_multicast_xmit_pkts", 448, 64, meaning=_PACKETS),
        Field("port_multicast_rcv_pkts", 512, 64, meaning=_PACKETS),
    ],
)
"""72 bytes (IBTA vol 1, 16.1.4.11)."""

PORT_RCV_ERROR_DETAILS: Final = Layout(
    "PortRcvErrorDetails",
    16,
    [
        Field("port_select", 8, 8),
        Field("counter_select", 16, 16, meaning=HEX),
        Field("port_local_physical_errors", 32, 16),
        Field("port_malformed_packet_errors", 48, 16),
        Field("port_buffer_overrun_errors", 64, 16),
        Field("port_dlid_mapping_errors", 80, 16),
        Field("port_vl_mapping_errors", 96, 16),
        Field("port_looping_errors", 112, 16),
    ],
)
"""16 bytes (IBTA vol 1, 16.1.4.1): the first three are PortRcvErrors, the others PortRcvSwitchRelayErrors."""

PORT_XMIT_DISCARD_DETAILS: Final = Layout(
    "PortXmitDiscardDetails",
    12,
    [
        Field("port_select", 8, 8),
        Field("counter_select", 16, 16, meaning=HEX),
        Field("port_inactive_discards", 32, 16),
        Field("port_neighbor_mtu_discards", 48, 16),
        Field("port_sw_lifetime_limit_discards", 64, 16),
        Field("port_sw_hoq_limit_discards", 80, 16),
    ],
)
"""12 bytes (IBTA vol 1, 16.1.4.2): why packets are PortXmitDiscards."""

PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS: Final = Layout(
    "PortVLXmitFlowCtlUpdateErrors",
    8,
    [
        Field("port_select", 8, 8),
        Field("counter_select", 16, 16, meaning=HEX),
        *(Field(f"port_vl_xmit_flow_ctl_update_errors{vl}", 32 + 2 * vl, 2) for vl in range(VL15 + 1)),
    ],
)
"""8 bytes (IBTA vol 1, 16.1.4.7): how often each VL had no flow control packet for too long."""

PORT_VL_XMIT_WAIT_COUNTERS: Final = Layout(
    "PortVLXmitWaitCounters",
    36,
    [
        Field("port_select", 8, 8),
        Field("counter_select", 16, 16, meaning=HEX),
        *(Field(f"port_vl_xmit_wait{vl}", 32 + 16 * vl, 16, meaning=_TICKS) for vl in range(VL15 + 1)),
    ],
)
"""36 bytes (IBTA vol 1, 16.1.4.8): PortXmitWait by VL."""

_SELECTORS: Final = ("port_select", "counter_select", "counter_select2")

PMA_COUNTERS: Final = tuple(field for field in PORT_COUNTERS.fields if field.name not in _SELECTORS)
"""The counters of PortCounters: Set writes the one at index i where bit i of CounterSelect is set; the last,
PortXmitWait, goes by bit 0 of CounterSelect2 (IBTA vol 1, 16.1.3.5)."""

PMA_COUNTERS_EXTENDED: Final = tuple(field for field in PORT_COUNTERS_EXTENDED.fields if field.name not in _SELECTORS)
"""The counters of PortCountersExtended, by the bits of its CounterSelect."""

PMA_RCV_ERROR_DETAILS: Final = tuple(field for field in PORT_RCV_ERROR_DETAILS.fields if field.name not in _SELECTORS)
PMA_XMIT_DISCARD_DETAILS: Final = tuple(
    field for field in PORT_XMIT_DISCARD_DETAILS.fields if field.name not in _SELECTORS
)
PMA_VL_XMIT_WAIT: Final = tuple(field for field in PORT_VL_XMIT_WAIT_COUNTERS.fields if field.name not in _SELECTORS)
"""The counters of those attributes, likewise."""

PMA_ATTRIBUTES: Final[Mapping[int, Attribute]] = {
    attribute.code: attribute
    for attribute in (
        Attribute(PmaAttribute.CLASS_PORT_INFO, CLASS_PORT_INFO, GET),
        Attribute(PmaAttribute.PORT_SAMPLES_CONTROL, PORT_SAMPLES_CONTROL, GET_SET),
        Attribute(PmaAttribute.PORT_SAMPLES_RESULT, PORT_SAMPLES_RESULT, GET),
        Attribute(PmaAttribute.PORT_COUNTERS, PORT_COUNTERS, GET_SET),
        Attribute(PmaAttribute.PORT_RCV_ERROR_DETAILS, PORT_RCV_ERROR_DETAILS, GET_SET),
        Attribute(PmaAttribute.PORT_XMIT_DISCARD_DETAILS, PORT_XMIT_DISCARD_DETAILS, GET_SET),
        Attribute(PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, GET_SET),
        Attribute(PmaAttribute.PORT_VL_XMIT_WAIT_COUNTERS, PORT_VL_XMIT_WAIT_COUNTERS, GET_SET),
        Attribute(PmaAttribute.PORT_COUNTERS_EXTENDED, PORT_COUNTERS_EXTENDED, GET_SET),
    )
}
"""The attributes of the class by their codes."""


def perf_request(method: MadMethod, attribute_id: int, data: bytes = b"", *, transaction_id: int) -> Record:
    """A request to a performance management agent, ``data`` filled up with zero bytes.

    Raises:
        ValueError: more than 192 bytes of data, or a value that does not fit its field.
    """
    return PERF_MAD.record(
        method=method, attribute_id=attribute_id, transaction_id=transaction_id, data=pack_data(PERF_MAD, data)
    )
