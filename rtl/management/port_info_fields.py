"""PortInfo's fields in the three kinds of port (docs/management.md, section 4.2)."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from wire.codes import LINK_WIDTHS, LinkSpeed, LinkWidth, PortPhysicalState, PortState, mtu_code, operational_vls
from wire.parameters import NodeParameters, vl_arbitration_entries
from wire.port_info import ADAPTER_CAPABILITIES, SMA_RESP_TIME, SWITCH_CAPABILITIES
from wire.port_tables import GUID_INFO
from wire.registers import PORT_RESET_VALUES, PortRegister
from wire.time_limits import NO_LIMIT

__all__ = ["LINK_SPEEDS", "WRITABLE", "PortKind", "at_reset"]


class PortKind(Enum):
    """Which of the fields a port has."""

    BASE = "0"
    """Port 0 of a switch."""
    EXTERNAL = "E"
    """Any other port of a switch."""
    ADAPTER = "A"


_NODE = frozenset({PortKind.BASE, PortKind.ADAPTER})
_LINK = frozenset({PortKind.EXTERNAL, PortKind.ADAPTER})

LINK_SPEEDS: Final = LinkSpeed.SDR

WRITABLE: Final[Mapping[str, frozenset[PortKind]]] = {
    "m_key": _NODE,
    "gid_prefix": _NODE,
    "lid": _NODE,
    "master_sm_lid": _NODE,
    "m_key_lease_period": _NODE,
    "link_width_enabled": _LINK,
    "link_down_default_state": _LINK,
    "lmc": frozenset({PortKind.ADAPTER}),
    "neighbor_mtu": _LINK,
    "master_sm_sl": _NODE,
    "init_type": _NODE,
    "vl_high_limit": _LINK,
    "vl_stall_count": _LINK,
    "hoq_life": _LINK,
    "operational_vls": _LINK,
    "partition_enforcement_inbound": frozenset({PortKind.EXTERNAL}),
    "partition_enforcement_outbound": frozenset({PortKind.EXTERNAL}),
    "filter_raw_inbound": frozenset({PortKind.EXTERNAL}),
    "filter_raw_outbound": frozenset({PortKind.EXTERNAL}),
    "subnet_timeout": _NODE,
    "local_phy_errors": _LINK,
    "overrun_errors": _LINK,
}
"""The fields that a Set may change and the attribute memory keeps, and where. M_KeyProtectBits is kept with the M_Key;
LinkSpeedEnabled can only be what it is."""


def at_reset(kind: PortKind, parameters: NodeParameters) -> dict[str, int]:
    """What PortInfo's fields in the attribute memory are at reset, where not 0. What is read elsewhere is 0 here."""
    vls = operational_vls(parameters.vls)
    mtu = mtu_code(parameters.mtu)
    values: dict[str, int] = {"mtu_cap": mtu, "vl_cap": vls}
    if kind in _NODE:
        values["gid_prefix"] = 0xFE80 << 48
        values["capability_mask"] = ADAPTER_CAPABILITIES if kind is PortKind.ADAPTER else SWITCH_CAPABILITIES
        values["guid_cap"] = GUID_INFO.count
        values["resp_time_value"] = SMA_RESP_TIME
    values |= {
        "link_width_enabled": LINK_WIDTHS,
        "link_width_supported": LINK_WIDTHS,
        "link_speed_supported": LINK_SPEEDS,
        "link_speed_active": LINK_SPEEDS,
        "link_speed_enabled": LINK_SPEEDS,
        "link_down_default_state": PortPhysicalState.POLLING,
        "neighbor_mtu": mtu,
        "operational_vls": vls,
    }
    if kind in _LINK:
        values |= {
            "hoq_life": NO_LIMIT,
            "local_phy_errors": PORT_RESET_VALUES[PortRegister.LOCAL_PHY_ERRORS],
            "overrun_errors": PORT_RESET_VALUES[PortRegister.OVERRUN_ERRORS],
            "vl_arbitration_high_cap": vl_arbitration_entries(parameters.vls),
            "vl_arbitration_low_cap": vl_arbitration_entries(parameters.vls),
        }
    else:
        values |= {
            "link_width_active": LinkWidth.X4,
            "port_state": PortState.ACTIVE,
            "port_physical_state": PortPhysicalState.LINK_UP,
        }
    return values
