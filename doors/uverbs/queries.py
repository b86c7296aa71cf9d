"""What a program asks of a verbs device: its context, what the adapter can do, and how its ports are."""

from __future__ import annotations

from typing import Any, Final

from doors.uverbs.context import Command, Context, Reply, check
from doors.uverbs.layouts import (
    EX_QUERY_DEVICE_TAIL,
    GET_CONTEXT_RESP,
    QUERY_DEVICE_RESP,
    QUERY_PORT_RESP,
)
from doors.uverbs.rxe_rings import Ring
from verbs.work import MAX_MESSAGE_BYTES
from wire.node_info import NODE_INFO
from wire.port_tables import GUID_INFO
from wire.sma import SmaAttribute

__all__ = ["get_context", "query_device", "query_device_ex", "query_port"]

_ATOMIC_HCA: Final = 1
"""Among adapters alone: a program's own accesses come between."""

_CAPABILITIES: Final = {
    "BAD_PKEY_CNTR": 1 << 1,
    "BAD_QKEY_CNTR": 1 << 2,
    "CHANGE_PHY_PORT": 1 << 4,
    "CURR_QP_STATE_MOD": 1 << 7,
    "SHUTDOWN_PORT": 1 << 8,
    "PORT_ACTIVE_EVENT": 1 << 10,
    "SYS_IMAGE_GUID": 1 << 11,
    "RC_RNR_NAK_GEN": 1 << 12,
    "SRQ_RESIZE": 1 << 13,
    "MEM_WINDOW": 1 << 17,
    "MEM_MGT_EXTENSIONS": 1 << 21,
    "MEM_WINDOW_TYPE_2B": 1 << 24,
}
"""enum ibv_device_cap_flags (infiniband/verbs.h)."""

_CAPABILITY_FLAGS: Final = sum(
    _CAPABILITIES[name]
    for name in (
        "CURR_QP_STATE_MOD",
        "PORT_ACTIVE_EVENT",
        "SYS_IMAGE_GUID",
        "RC_RNR_NAK_GEN",
        "SRQ_RESIZE",
        "MEM_WINDOW",
        "MEM_MGT_EXTENSIONS",
        "MEM_WINDOW_TYPE_2B",
    )
)

_NO_VENDOR: Final = 0xFF_FFFF
"""Programs expect one."""

_ODP_SUPPORT: Final = 3
"""Memory is reached as it is at the time, page by page, and a region may be all that a program has."""

_ODP_EVERYTHING: Final = 0x3F
"""SEND, RECV, WRITE, READ, atomics, shared receive queues."""

_LINK_LAYER_INFINIBAND: Final = 1


def get_context(context: Context, _fields: Any, _command: Command) -> Reply:
    """The program's context, with the pipe of asynchronous events."""
    events = context.open_events()
    return Reply(GET_CONTEXT_RESP.pack(num_comp_vectors=1), descriptor=events.take_end())


def _attributes(context: Context) -> bytes:
    port, limits = context.host.ports[0], context.host.adapter.limits
    info = NODE_INFO.unpack(port.known[SmaAttribute.NODE_INFO])
    return QUERY_DEVICE_RESP.pack(
        fw_ver=1 << 32,
        node_guid=info.node_guid.to_bytes(8, "big"),
        sys_image_guid=info.system_image_guid.to_bytes(8, "big"),
        max_mr_size=limits.max_mr_size,
        page_size_cap=0xFFFF_F000,
        vendor_id=info.vendor_id or _NO_VENDOR,
        vendor_part_id=info.device_id,
        hw_ver=info.revision,
        max_qp=limits.max_qp,
        max_qp_wr=Ring.most(limits.max_qp_wr),
        device_cap_flags=_CAPABILITY_FLAGS,
        max_sge=limits.max_sge,
        max_sge_rd=limits.max_sge_rd,
        max_cq=limits.max_cq,
        max_cqe=limits.max_cqe,
        max_mr=limits.max_mr,
        max_pd=limits.max_pd,
        max_qp_rd_atom=limits.max_qp_rd_atom,
        max_res_rd_atom=limits.max_qp_rd_atom * limits.max_qp,
        max_qp_init_rd_atom=limits.max_qp_init_rd_atom,
        atomic_cap=_ATOMIC_HCA,
        max_mw=limits.max_mw,
        max_mcast_grp=limits.max_mcast_grp,
        max_mcast_qp_attach=limits.max_mcast_qp_attach,
        max_total_mcast_qp_attach=limits.max_mcast_grp * limits.max_mcast_qp_attach,
        max_ah=limits.max_ah,
        max_srq=limits.max_srq,
        max_srq_wr=limits.max_srq_wr,
        max_srq_sge=limits.max_srq_sge,
        max_pkeys=len(port.p_keys),
        local_ca_ack_delay=limits.local_ca_ack_delay,
        phys_port_cnt=len(context.host.ports),
    )


def query_device(context: Context, _fields: Any, _command: Command) -> Reply:
    """What the adapter can do."""
    return Reply(_attributes(context))


def query_device_ex(context: Context, _fields: Any, _command: Command) -> Reply:
    """The same, and more."""
    tail = EX_QUERY_DEVICE_TAIL.pack(
        response_length=QUERY_DEVICE_RESP.size + EX_QUERY_DEVICE_TAIL.size,
        general_caps=_ODP_SUPPORT,
        rc_odp_caps=_ODP_EVERYTHING,
        uc_odp_caps=_ODP_EVERYTHING,
        ud_odp_caps=_ODP_EVERYTHING,
    )
    return Reply(_attributes(context) + tail)


def query_port(context: Context, fields: Any, _command: Command) -> Reply:
    """How a port is."""
    check(1 <= fields.port_num <= len(context.host.ports))
    port = context.host.ports[fields.port_num - 1]
    transport = context.host.adapter.ports[fields.port_num - 1]
    info = port.info
    guids = GUID_INFO.unpack(port.known[SmaAttribute.GUID_INFO])
    return Reply(
        QUERY_PORT_RESP.pack(
            port_cap_flags=info.capability_mask,
            max_msg_sz=MAX_MESSAGE_BYTES,
            bad_pkey_cntr=transport.p_key_violations,
            qkey_viol_cntr=transport.q_key_violations,
            gid_tbl_len=len(guids[: info.guid_cap]),
            pkey_tbl_len=len(port.p_keys),
            lid=info.lid,
            sm_lid=info.master_sm_lid,
            state=info.port_state,
            max_mtu=info.mtu_cap,
            active_mtu=info.neighbor_mtu,
            lmc=info.lmc,
            max_vl_num=info.vl_cap,
            sm_sl=info.master_sm_sl,
            subnet_timeout=info.subnet_timeout,
            active_width=info.link_width_active,
            active_speed=info.link_speed_active,
            phys_state=info.port_physical_state,
            link_layer=_LINK_LAYER_INFINIBAND,
        )
    )
