"""What devices and ports say of themselves when they are queried."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ironband.verbs.enums import (
    IBV_LINK_LAYER_INFINIBAND,
    ibv_atomic_cap,
    ibv_device_cap_flags,
    ibv_odp_general_caps,
    ibv_odp_transport_cap_bits,
    ibv_port_state,
)
from ironband.verbs.network import Host
from verbs.limits import AdapterLimits
from verbs.port import Port
from verbs.work import MAX_MESSAGE_BYTES
from wire.codes import MTU, mtu_code
from wire.node_info import DEVICE_ID, VENDOR_ID

__all__ = ["DeviceAttr", "DeviceAttrEx", "ODPCaps", "PortAttr", "TSOCaps", "device_attr", "port_attr"]

_CAPABILITIES: Final = (
    ibv_device_cap_flags.IBV_DEVICE_BAD_PKEY_CNTR
    | ibv_device_cap_flags.IBV_DEVICE_BAD_QKEY_CNTR
    | ibv_device_cap_flags.IBV_DEVICE_CURR_QP_STATE_MOD
    | ibv_device_cap_flags.IBV_DEVICE_RC_RNR_NAK_GEN
    | ibv_device_cap_flags.IBV_DEVICE_SRQ_RESIZE
    | ibv_device_cap_flags.IBV_DEVICE_MEM_WINDOW
    | ibv_device_cap_flags.IBV_DEVICE_MEM_MGT_EXTENSIONS
    | ibv_device_cap_flags.IBV_DEVICE_MEM_WINDOW_TYPE_2B
    | ibv_device_cap_flags.IBV_DEVICE_XRC
)
_LIMITS: Final = AdapterLimits()
_NONE: Final = 0
_DATAGRAMS: Final = ibv_odp_transport_cap_bits.IBV_ODP_SUPPORT_SEND | ibv_odp_transport_cap_bits.IBV_ODP_SUPPORT_RECV
_NO_VENDOR: Final = 0xFF_FFFF
"""Programs take 0 for a device that was not queried."""


@dataclass(frozen=True)
class DeviceAttr:
    """An adapter; the limits are those of `verbs.limits`."""

    node_guid: int
    sys_image_guid: int
    phys_port_cnt: int
    max_mr_size: int
    max_qp: int
    max_qp_wr: int
    max_sge: int
    max_sge_rd: int
    max_cq: int
    max_cqe: int
    max_mr: int
    max_pd: int
    max_qp_rd_atom: int
    max_qp_init_rd_atom: int
    max_mw: int
    max_ah: int
    max_srq: int
    max_srq_wr: int
    max_srq_sge: int
    max_mcast_grp: int
    max_mcast_qp_attach: int
    local_ca_ack_delay: int
    max_pkeys: int
    fw_version: str = "ironband"
    page_size_cap: int = 0xFFFF_F000
    vendor_id: int = VENDOR_ID or _NO_VENDOR
    vendor_part_id: int = DEVICE_ID
    hw_ver: int = 0
    device_cap_flags: int = _CAPABILITIES
    atomic_caps: int = ibv_atomic_cap.IBV_ATOMIC_HCA
    max_ee: int = _NONE
    max_rdd: int = _NONE
    max_ee_rd_atom: int = _NONE
    max_ee_init_rd_atom: int = _NONE
    max_raw_ipv6_qps: int = _NONE
    max_raw_ethy_qp: int = _NONE
    max_fmr: int = _NONE
    max_map_per_fmr: int = _NONE

    @property
    def max_res_rd_atom(self) -> int:
        """READs and atomics outstanding at all queue pairs as responders."""
        return self.max_qp * self.max_qp_rd_atom


@dataclass(frozen=True)
class ODPCaps:
    """On-demand paging: no memory is held for a region, it is met as it is used."""

    general_caps: int = sum(ibv_odp_general_caps)
    rc_odp_caps: int = sum(ibv_odp_transport_cap_bits)
    uc_odp_caps: int = _DATAGRAMS
    ud_odp_caps: int = _DATAGRAMS
    xrc_odp_caps: int = sum(ibv_odp_transport_cap_bits)


@dataclass(frozen=True)
class TSOCaps:
    """Segmentation of TCP, which is Ethernet's."""

    max_tso: int = _NONE
    supported_qpts: int = _NONE


@dataclass(frozen=True)
class DeviceAttrEx:
    """An adapter, and what came later. Time stamps of completions are cycles."""

    orig_attr: DeviceAttr
    comp_mask: int = _NONE
    odp_caps: ODPCaps = field(default_factory=ODPCaps)
    tso_caps: TSOCaps = field(default_factory=TSOCaps)
    completion_timestamp_mask: int = (1 << 64) - 1
    hca_core_clock: int = 250_000
    device_cap_flags_ex: int = _CAPABILITIES
    raw_packet_caps: int = _NONE
    max_wq_type_rq: int = _NONE
    max_dm_size: int = _NONE

    @property
    def phys_port_cnt_ex(self) -> int:
        """Ports."""
        return self.orig_attr.phys_port_cnt


@dataclass(frozen=True)
class PortAttr:
    """A port. MTUs, widths and speeds are codes."""

    state: int
    max_mtu: int
    active_mtu: int
    gid_tbl_len: int
    pkey_tbl_len: int
    lid: int
    lmc: int
    sm_lid: int
    bad_pkey_cntr: int
    qkey_viol_cntr: int
    max_vl_num: int = 1
    port_cap_flags: int = _NONE
    port_cap_flags2: int = _NONE
    max_msg_sz: int = MAX_MESSAGE_BYTES
    sm_sl: int = _NONE
    subnet_timeout: int = _NONE
    init_type_reply: int = _NONE
    active_width: int = 2
    active_speed: int = 1
    phys_state: int = 5
    link_layer: int = IBV_LINK_LAYER_INFINIBAND
    flags: int = _NONE


def device_attr(host: Host) -> DeviceAttr:
    """Of a host's adapter."""
    adapter = host.adapter
    limits = {name: getattr(adapter.limits, name) for name in DeviceAttr.__dataclass_fields__ if hasattr(_LIMITS, name)}
    ports = adapter.ports
    p_keys = max(len(port.p_keys) for port in ports)
    return DeviceAttr(
        node_guid=host.node_guid,
        sys_image_guid=host.node_guid,
        phys_port_cnt=len(ports),
        max_pkeys=p_keys,
        **limits,
    )


def port_attr(host: Host, port: Port) -> PortAttr:
    """Of one of a host's ports."""
    return PortAttr(
        state=ibv_port_state.IBV_PORT_ACTIVE if port.lid else ibv_port_state.IBV_PORT_INIT,
        max_mtu=MTU.MTU_4096,
        active_mtu=mtu_code(port.mtu),
        gid_tbl_len=len(port.gids),
        pkey_tbl_len=len(port.p_keys),
        lid=port.lid,
        lmc=port.lmc,
        sm_lid=host.sm_lid,
        bad_pkey_cntr=port.p_key_violations,
        qkey_viol_cntr=port.q_key_violations,
    )
