"""What numbers mean, for people."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, IntFlag
from typing import Final

from ironband.verbs.enums import (
    ibv_access_flags,
    ibv_device_cap_flags,
    ibv_event_type,
    ibv_gid_type,
    ibv_mig_state,
    ibv_node_type,
    ibv_port_cap_flags,
    ibv_port_state,
    ibv_qp_state,
    ibv_qp_type,
    ibv_transport_type,
    ibv_wc_flags,
    ibv_wc_opcode,
    ibv_wc_status,
)

__all__ = [
    "access_flags_to_str",
    "cqe_flags_to_str",
    "cqe_opcode_to_str",
    "cqe_status_to_str",
    "guid_format",
    "mig_state_to_str",
    "mtu_to_str",
    "phys_state_to_str",
    "port_state_to_str",
    "qp_state_to_str",
    "qp_type_to_str",
    "speed_to_str",
    "translate_device_caps",
    "translate_event_type",
    "translate_gid_type",
    "translate_link_layer",
    "translate_mtu",
    "translate_node_type",
    "translate_port_cap_flags",
    "translate_transport_type",
    "width_to_str",
]

_MTUS: Final = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
_WIDTHS: Final = {1: "1X", 2: "4X", 4: "8X", 8: "12X", 16: "2X"}
_SPEEDS: Final = {1: "2.5 Gbps", 2: "5.0 Gbps", 4: "10.0 Gbps"}
_PHYSICAL: Final = {1: "Sleep", 2: "Polling", 3: "Disabled", 4: "Training", 5: "LinkUp", 6: "Recovery", 7: "PhyTest"}
_LINK_LAYERS: Final = {0: "Unspecified", 1: "InfiniBand", 2: "Ethernet"}
_GUID_BYTES: Final = 8


def _named(group: type[IntEnum], prefix: str, value: int) -> str:
    """What the member of a group is called without what all of them begin with."""
    return group(value).name.removeprefix(prefix) if value in set(group) else f"Invalid ({value})"


def _flagged(group: Iterable[IntFlag], value: int) -> str:
    return " ".join(flag.name or "" for flag in group if flag & value) or "none"


def qp_type_to_str(qp_type: int) -> str:
    """A type of queue pairs."""
    return _named(ibv_qp_type, "IBV_QPT_", qp_type)


def qp_state_to_str(qp_state: int) -> str:
    """A state of queue pairs."""
    return _named(ibv_qp_state, "IBV_QPS_", qp_state)


def mig_state_to_str(mig_state: int) -> str:
    """A state of path migration."""
    return _named(ibv_mig_state, "IBV_MIG_", mig_state)


def mtu_to_str(mtu: int) -> int | str:
    """Bytes of an MTU."""
    return _MTUS.get(mtu, f"Invalid ({mtu})")


def translate_mtu(mtu: int) -> str:
    """Bytes of an MTU."""
    return str(mtu_to_str(mtu))


def access_flags_to_str(flags: int) -> str:
    """Rights."""
    return _flagged(ibv_access_flags, flags)


def cqe_status_to_str(status: int) -> str:
    """How a work request ended."""
    return _named(ibv_wc_status, "IBV_WC_", status)


def cqe_opcode_to_str(opcode: int) -> str:
    """What was completed."""
    return _named(ibv_wc_opcode, "IBV_WC_", opcode)


def cqe_flags_to_str(flags: int) -> str:
    """What a completion brings besides."""
    return _flagged(ibv_wc_flags, flags)


def guid_format(num: int) -> str:
    """A GUID in four groups."""
    digits = f"{num:0{2 * _GUID_BYTES}x}"
    return ":".join(digits[at : at + 4] for at in range(0, len(digits), 4))


def port_state_to_str(port_state: int) -> str:
    """A port's state."""
    return _named(ibv_port_state, "IBV_PORT_", port_state)


def phys_state_to_str(phys: int) -> str:
    """A port's physical state."""
    return _PHYSICAL.get(phys, f"Invalid ({phys})")


def width_to_str(width: int) -> str:
    """A link's width."""
    return _WIDTHS.get(width, f"Invalid ({width})")


def speed_to_str(speed: int) -> str:
    """A lane's speed."""
    return _SPEEDS.get(speed, f"Invalid ({speed})")


def translate_link_layer(ll: int) -> str:
    """A link layer."""
    return _LINK_LAYERS.get(ll, f"Invalid ({ll})")


def translate_node_type(node_type: int) -> str:
    """A type of nodes."""
    return _named(ibv_node_type, "IBV_NODE_", node_type)


def translate_transport_type(transport_type: int) -> str:
    """A type of transports."""
    return _named(ibv_transport_type, "IBV_TRANSPORT_", transport_type)


def translate_gid_type(gid_type: int) -> str:
    """A type of GIDs."""
    return _named(ibv_gid_type, "IBV_GID_TYPE_", gid_type)


def translate_event_type(event_type: int) -> str:
    """An asynchronous event."""
    return _named(ibv_event_type, "IBV_EVENT_", event_type)


def translate_device_caps(flags: int) -> str:
    """What a device can do."""
    return _flagged(ibv_device_cap_flags, flags)


def translate_port_cap_flags(flags: int) -> str:
    """What a port can do."""
    return _flagged(ibv_port_cap_flags, flags)
