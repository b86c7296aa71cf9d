"""The files in which a host finds its channel adapter: /sys/class/infiniband, infiniband_mad, infiniband_verbs."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from doors.mads.host_port import HostPort
from doors.mads.user_mad import ABI_VERSION
from doors.rdma_cm.address_plan import NETMASK, AddressPlan
from doors.uverbs.layouts import UVERBS_ABI_VERSION
from toolchain.atomic_files import writing
from wire.codes import LinkWidth, PortPhysicalState, PortState
from wire.node_info import NODE_INFO, node_description_text
from wire.port_tables import GUID_INFO
from wire.sma import SmaAttribute

__all__ = ["DEVICES", "HostFiles"]

DEVICES: Final = Path("dev/infiniband")
_CLASS: Final = Path("sys/class/infiniband")
_MAD_CLASS: Final = Path("sys/class/infiniband_mad")
_VERBS_CLASS: Final = Path("sys/class/infiniband_verbs")
_PROVIDER_ABI_VERSION: Final = 2
_ADAPTER: Final = "rxe_ironband"
"""What begins with "rxe" is of the provider of that name."""

_ADDRESSES: Final = Path("sys/class/infiniband_addresses")
"""No kernel has this file: by it the preloaded library knows what interfaces there are."""

_LANES: Final = {LinkWidth.X1: 1, LinkWidth.X4: 4}
_LANE_GBIT: Final = 2.5

_STATES: Final = {
    PortState.NO_CHANGE: "NOP",
    PortState.DOWN: "DOWN",
    PortState.INITIALIZE: "INIT",
    PortState.ARMED: "ARMED",
    PortState.ACTIVE: "ACTIVE",
    PortState.ACTIVE_DEFER: "ACTIVE_DEFER",
}
_PHYSICAL_STATES: Final = {
    PortPhysicalState.NO_CHANGE: "<unknown>",
    PortPhysicalState.SLEEP: "Sleep",
    PortPhysicalState.POLLING: "Polling",
    PortPhysicalState.DISABLED: "Disabled",
    PortPhysicalState.PORT_CONFIGURATION_TRAINING: "PortConfigurationTraining",
    PortPhysicalState.LINK_UP: "LinkUp",
    PortPhysicalState.LINK_ERROR_RECOVERY: "LinkErrorRecovery",
    PortPhysicalState.PHY_TEST: "Phy Test",
}
"""The kernel's words."""


class HostFiles:
    """The files of a machine, which is one host or has the adapters of several, kept as its ports' attributes are."""

    def __init__(self, root: Path, ports: Sequence[HostPort], plan: AddressPlan) -> None:
        """ROOT stands in for the root of the machine's files; PORTS are those of its adapters."""
        self._root = root
        self._plan = plan
        self._ports = ports
        self._written: dict[Path, str] = {}
        self._first: dict[str, Path] = {}  # by text, a file that had it
        self._write(_MAD_CLASS / "abi_version", str(ABI_VERSION))
        self._write(_VERBS_CLASS / "abi_version", str(UVERBS_ABI_VERSION))
        self._write(DEVICES / "rdma_cm", "")
        self._adapters = {name: f"{_ADAPTER}{index}" for index, name in enumerate(dict.fromkeys(p.host for p in ports))}
        for index, adapter in enumerate(self._adapters.values()):
            device = f"uverbs{index}"
            self._write(DEVICES / device, "")
            self._write(_VERBS_CLASS / device / "ibdev", adapter)
            self._write(_VERBS_CLASS / device / "dev", f"231:{192 + index}")
            self._write(_VERBS_CLASS / device / "abi_version", str(_PROVIDER_ABI_VERSION))
        for index, port in enumerate(ports):
            for device in (f"umad{index}", f"issm{index}"):
                self._write(DEVICES / device, "")
                self._write(_MAD_CLASS / device / "ibdev", self._adapters[port.host])
                self._write(_MAD_CLASS / device / "port", str(port.number))
                self._write(_MAD_CLASS / device / "dev", f"231:{index + 64 * device.startswith('issm')}")

    def update(self) -> None:
        """Write what has changed."""
        for port in self._ports:
            folder = _CLASS / self._adapters[port.host]
            for name, text in _adapter(port):
                self._write(folder / name, text)
            for name, text in _port(port):
                self._write(folder / "ports" / str(port.number) / name, text)

        interfaces = ((f"ib{index}", self._plan.address_of(port)) for index, port in enumerate(self._ports))
        lines = [f"{name} {address} {NETMASK}" for name, address in interfaces if address is not None]
        self._write(_ADDRESSES, "\n".join(lines))

    def _write(self, name: Path, text: str) -> None:
        """Write a file if it says something new; a reader finds the old text or the new one.

        Of many new files with one text, such as tables' entries, all are links to the first: no file changes in place.

        Raises:
            OutputError: it cannot be written, of a full disk most often.
        """
        if self._written.get(name) == text:
            return
        path = self._root / name
        with writing(f"{path}"):
            self._replace(name, path, text)
        self._written[name] = text

    def _replace(self, name: Path, path: Path, text: str) -> None:
        if name not in self._written:
            path.parent.mkdir(parents=True, exist_ok=True)
            first = self._first.setdefault(text, name)
            if self._written.get(first) == text:
                path.hardlink_to(self._root / first)
            else:
                path.write_text(f"{text}\n")
        else:
            new = path.with_name(f".{path.name}")
            new.write_text(f"{text}\n")
            new.replace(path)


def _adapter(port: HostPort) -> Iterator[tuple[str, str]]:
    known = port.known
    info = NODE_INFO.unpack(known[SmaAttribute.NODE_INFO])
    yield "node_type", "1: CA"
    yield "node_guid", _words(info.node_guid.to_bytes(8, "big"))
    yield "sys_image_guid", _words(info.system_image_guid.to_bytes(8, "big"))
    yield "node_desc", node_description_text(known[SmaAttribute.NODE_DESCRIPTION])
    yield "fw_ver", "1.0.0"
    yield "hca_type", f"IB{info.device_id:04X}"
    yield "hw_rev", f"{info.revision:x}"
    yield "board_id", "Ironband"


def _port(port: HostPort) -> Iterator[tuple[str, str]]:
    info = port.info
    lanes = _LANES.get(LinkWidth(info.link_width_active), 4)
    yield "lid", f"{info.lid:#x}"
    yield "lid_mask_count", str(info.lmc)
    yield "sm_lid", f"{info.master_sm_lid:#x}"
    yield "sm_sl", str(info.master_sm_sl)
    yield "state", f"{info.port_state}: {_STATES.get(PortState(info.port_state), 'INVALID STATE')}"
    yield "phys_state", f"{info.port_physical_state}: {_PHYSICAL_STATES[PortPhysicalState(info.port_physical_state)]}"
    yield "rate", f"{lanes * _LANE_GBIT * info.link_speed_active:g} Gb/sec ({lanes}X)"
    yield "link_layer", "InfiniBand"
    yield "cap_mask", f"{info.capability_mask:#010x}"
    prefix = info.gid_prefix
    for index, guid in enumerate(GUID_INFO.unpack(port.known[SmaAttribute.GUID_INFO])[: info.guid_cap]):
        yield f"gids/{index}", _words(struct.pack(">QQ", prefix if guid else 0, guid))
        yield f"gid_attrs/types/{index}", "IB/RoCE v1"
    for index, p_key in enumerate(port.p_keys):
        yield f"pkeys/{index}", f"{p_key:#06x}"


def _words(data: bytes) -> str:
    return ":".join(data[at : at + 2].hex() for at in range(0, len(data), 2))
