"""PortInfo: state, capabilities and settings of a port (IBTA vol 1, 14.2.5.6)."""

from __future__ import annotations

from enum import IntFlag
from typing import Final

from .codes import LinkSpeed, LinkWidth, PortPhysicalState, PortState, data_vls, life_text, mtu_bytes, timer_text
from .layout import Field, Layout
from .meaning import HEX, Amount, Bits, Code, Derived

__all__ = [
    "ADAPTER_CAPABILITIES",
    "LINK_SPEED_ALL",
    "LINK_WIDTH_ALL",
    "NO_CHANGE",
    "PORT_INFO",
    "PORT_INFO_MODIFIER",
    "SMA_RESP_TIME",
    "SWITCH_CAPABILITIES",
    "CapabilityMask",
    "CapabilityMask2",
]

NO_CHANGE: Final = 0
"""Set to LinkWidthEnabled, LinkSpeedEnabled, PortState, PortPhysicalState, LinkDownDefaultState or OperationalVLs,
this leaves them as they are."""

LINK_WIDTH_ALL: Final = 0xFF
"""Set to LinkWidthEnabled, this enables all that LinkWidthSupported names."""

LINK_SPEED_ALL: Final = 0xF
"""Set to LinkSpeedEnabled, this enables all that LinkSpeedSupported names."""


class CapabilityMask(IntFlag):
    """PortInfo.CapabilityMask; the least significant bit, 0, is reserved."""

    IS_SM = 1 << 1
    IS_NOTICE_SUPPORTED = 1 << 2
    IS_TRAP_SUPPORTED = 1 << 3
    IS_OPTIONAL_IPD_SUPPORTED = 1 << 4
    IS_AUTOMATIC_MIGRATION_SUPPORTED = 1 << 5
    IS_SL_MAPPING_SUPPORTED = 1 << 6
    IS_M_KEY_NVRAM = 1 << 7
    IS_P_KEY_NVRAM = 1 << 8
    IS_LED_INFO_SUPPORTED = 1 << 9
    IS_SM_DISABLED = 1 << 10
    IS_SYSTEM_IMAGE_GUID_SUPPORTED = 1 << 11
    IS_P_KEY_SWITCH_EXTERNAL_PORT_TRAP_SUPPORTED = 1 << 12
    IS_CABLE_INFO_SUPPORTED = 1 << 13
    IS_EXTENDED_SPEEDS_SUPPORTED = 1 << 14
    IS_CAPABILITY_MASK2_SUPPORTED = 1 << 15
    IS_COMMUNICATION_MANAGEMENT_SUPPORTED = 1 << 16
    IS_SNMP_TUNNELING_SUPPORTED = 1 << 17
    IS_REINIT_SUPPORTED = 1 << 18
    IS_DEVICE_MANAGEMENT_SUPPORTED = 1 << 19
    IS_VENDOR_CLASS_SUPPORTED = 1 << 20
    IS_DR_NOTICE_SUPPORTED = 1 << 21
    IS_CAPABILITY_MASK_NOTICE_SUPPORTED = 1 << 22
    IS_BOOT_MANAGEMENT_SUPPORTED = 1 << 23
    IS_LINK_ROUND_TRIP_LATENCY_SUPPORTED = 1 << 24
    IS_CLIENT_REREGISTRATION_SUPPORTED = 1 << 25
    IS_OTHER_LOCAL_CHANGES_NOTICE_SUPPORTED = 1 << 26
    IS_LINK_SPEED_WIDTH_PAIRS_TABLE_SUPPORTED = 1 << 27
    IS_VENDOR_SPECIFIC_MADS_TABLE_SUPPORTED = 1 << 28
    IS_MULTICAST_P_KEY_TRAP_SUPPRESSION_SUPPORTED = 1 << 29
    IS_MULTICAST_FDB_TOP_SUPPORTED = 1 << 30
    IS_HIERARCHY_INFO_SUPPORTED = 1 << 31


_CAPABILITIES: Final = (
    CapabilityMask.IS_TRAP_SUPPORTED
    | CapabilityMask.IS_SL_MAPPING_SUPPORTED
    | CapabilityMask.IS_LED_INFO_SUPPORTED
    | CapabilityMask.IS_SYSTEM_IMAGE_GUID_SUPPORTED
)

SWITCH_CAPABILITIES: Final = (
    _CAPABILITIES
    | CapabilityMask.IS_P_KEY_SWITCH_EXTERNAL_PORT_TRAP_SUPPORTED
    | CapabilityMask.IS_MULTICAST_FDB_TOP_SUPPORTED
)
"""CapabilityMask of this design's switches."""

ADAPTER_CAPABILITIES: Final = (
    _CAPABILITIES
    | CapabilityMask.IS_CAPABILITY_MASK_NOTICE_SUPPORTED
    | CapabilityMask.IS_CLIENT_REREGISTRATION_SUPPORTED
)
"""CapabilityMask of this design's adapters; the host adds IS_SM."""

SMA_RESP_TIME: Final = 8
"""PortInfo.RespTimeValue: 4.096 us x 2^8 at most, about a millisecond: several SMPs may wait at each port."""


class CapabilityMask2(IntFlag):
    """PortInfo.CapabilityMask2."""

    IS_SET_NODE_DESCRIPTION_SUPPORTED = 1 << 0
    IS_PORT_INFO_EXTENDED_SUPPORTED = 1 << 1
    IS_VIRTUALIZATION_SUPPORTED = 1 << 2
    IS_SWITCH_PORT_STATE_TABLE_SUPPORTED = 1 << 3
    IS_LINK_WIDTH_2X_SUPPORTED = 1 << 4
    IS_LINK_SPEED_HDR_SUPPORTED = 1 << 5
    IS_LINK_SPEED_NDR_SUPPORTED = 1 << 10


def _mtu_text(code: int) -> str:
    return f"{mtu_bytes(code)} bytes"


def _vls_text(code: int) -> str:
    last = data_vls(code) - 1
    return f"VL0..VL{last}" if last else "VL0"


_MTU: Final = Derived(_mtu_text)
_VLS: Final = Derived(_vls_text)
_WIDTH: Final = Bits(LinkWidth)
_SPEED: Final = Bits(LinkSpeed)

PORT_INFO: Final = Layout(
    "PortInfo",
    64,
    [
        Field("m_key", 0, 64, meaning=HEX),
        Field("gid_prefix", 64, 64, meaning=HEX),
        Field("lid", 128, 16),
        Field("master_sm_lid", 144, 16),
        Field("capability_mask", 160, 32, meaning=Bits(CapabilityMask)),
        Field("diag_code", 192, 16, meaning=HEX),
        Field("m_key_lease_period", 208, 16, meaning=Amount("s")),
        Field("local_port_num", 224, 8),
        Field("link_width_enabled", 232, 8, meaning=Bits(LinkWidth, ((LINK_WIDTH_ALL, "all supported"),))),
        Field("link_width_supported", 240, 8, meaning=_WIDTH),
        Field("link_width_active", 248, 8, meaning=_WIDTH),
        Field("link_speed_supported", 256, 4, meaning=_SPEED),
        Field("port_state", 260, 4, meaning=Code(PortState)),
        Field("port_physical_state", 264, 4, meaning=Code(PortPhysicalState)),
        Field("link_down_default_state", 268, 4, meaning=Code(PortPhysicalState)),
        Field("m_key_protect_bits", 272, 2),
        Field("lmc", 277, 3),
        Field("link_speed_active", 280, 4, meaning=_SPEED),
        Field("link_speed_enabled", 284, 4, meaning=Bits(LinkSpeed, ((LINK_SPEED_ALL, "all supported"),))),
        Field("neighbor_mtu", 288, 4, meaning=_MTU),
        Field("master_sm_sl", 292, 4),
        Field("vl_cap", 296, 4, meaning=_VLS),
        Field("init_type", 300, 4, meaning=HEX),
        Field("vl_high_limit", 304, 8, meaning=Amount("x 4096 bytes")),
        Field("vl_arbitration_high_cap", 312, 8, meaning=Amount("entries")),
        Field("vl_arbitration_low_cap", 320, 8, meaning=Amount("entries")),
        Field("init_type_reply", 328, 4, meaning=HEX),
        Field("mtu_cap", 332, 4, meaning=_MTU),
        Field("vl_stall_count", 336, 3, meaning=Amount("packets")),
        Field("hoq_life", 339, 5, meaning=Derived(life_text)),
        Field("operational_vls", 344, 4, meaning=_VLS),
        Field("partition_enforcement_inbound", 348, 1),
        Field("partition_enforcement_outbound", 349, 1),
        Field("filter_raw_inbound", 350, 1),
        Field("filter_raw_outbound", 351, 1),
        Field("m_key_violations", 352, 16),
        Field("p_key_violations", 368, 16),
        Field("q_key_violations", 384, 16),
        Field("guid_cap", 400, 8),
        Field("client_reregister", 408, 1),
        Field("multicast_p_key_trap_suppression_enabled", 409, 2),
        Field("subnet_timeout", 411, 5, meaning=Derived(timer_text)),
        Field("resp_time_value", 419, 5, meaning=Derived(timer_text)),
        Field("local_phy_errors", 424, 4),
        Field("overrun_errors", 428, 4),
        Field("max_credit_hint", 432, 16),
        Field("link_round_trip_latency", 456, 24),
        Field("capability_mask2", 480, 16, meaning=Bits(CapabilityMask2)),
        Field("link_speed_ext_active", 496, 4, meaning=HEX),
        Field("link_speed_ext_supported", 500, 4, meaning=HEX),
        Field("link_speed_ext_enabled", 507, 5, meaning=HEX),
    ],
)
"""64 bytes. ``guid_cap`` and ``vl_stall_count`` are plain counts, ``local_phy_errors`` and ``overrun_errors`` the
thresholds of traps 129 and 130."""

PORT_INFO_MODIFIER: Final = Layout(
    "PortInfo AttributeModifier", 4, [Field("extended_speeds", 0, 1), Field("port", 1, 31)]
)
"""``port`` 0 is a switch's management port, and in an adapter the port that the request came in by;
``extended_speeds`` says that the Subnet Manager knows LinkSpeedExt."""
