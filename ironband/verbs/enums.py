"""The numbers of the verbs interface, under the names and in the groups that pyverbs has them.

They are those of the C interface (infiniband/verbs.h), which programs know. All names are this module's too:
`enums.IBV_QPT_RC` is `enums.ibv_qp_type.IBV_QPT_RC`. What is for Ethernet alone is not here.
"""

from __future__ import annotations

from enum import EnumType, IntEnum, IntFlag
from typing import Any, Final

ibv_access_flags = IntFlag(
    "ibv_access_flags",
    {
        "IBV_ACCESS_LOCAL_WRITE": 1 << 0,
        "IBV_ACCESS_REMOTE_WRITE": 1 << 1,
        "IBV_ACCESS_REMOTE_READ": 1 << 2,
        "IBV_ACCESS_REMOTE_ATOMIC": 1 << 3,
        "IBV_ACCESS_MW_BIND": 1 << 4,
        "IBV_ACCESS_ZERO_BASED": 1 << 5,
        "IBV_ACCESS_ON_DEMAND": 1 << 6,
        "IBV_ACCESS_HUGETLB": 1 << 7,
        "IBV_ACCESS_RELAXED_ORDERING": 1 << 20,
    },
)
ibv_atomic_cap = IntEnum(
    "ibv_atomic_cap",
    "IBV_ATOMIC_NONE IBV_ATOMIC_HCA IBV_ATOMIC_GLOB",
    start=0,
)
ibv_cq_init_attr_mask = IntFlag(
    "ibv_cq_init_attr_mask",
    {
        "IBV_CQ_INIT_ATTR_MASK_FLAGS": 1 << 0,
        "IBV_CQ_INIT_ATTR_MASK_PD": 1 << 1,
    },
)
ibv_create_cq_attr_flags = IntFlag(
    "ibv_create_cq_attr_flags",
    {
        "IBV_CREATE_CQ_ATTR_SINGLE_THREADED": 1 << 0,
        "IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN": 1 << 1,
    },
)
ibv_create_cq_wc_flags = IntFlag(
    "ibv_create_cq_wc_flags",
    {
        "IBV_WC_EX_WITH_BYTE_LEN": 1 << 0,
        "IBV_WC_EX_WITH_IMM": 1 << 1,
        "IBV_WC_EX_WITH_QP_NUM": 1 << 2,
        "IBV_WC_EX_WITH_SRC_QP": 1 << 3,
        "IBV_WC_EX_WITH_SLID": 1 << 4,
        "IBV_WC_EX_WITH_SL": 1 << 5,
        "IBV_WC_EX_WITH_DLID_PATH_BITS": 1 << 6,
        "IBV_WC_EX_WITH_COMPLETION_TIMESTAMP": 1 << 7,
        "IBV_WC_EX_WITH_CVLAN": 1 << 8,
        "IBV_WC_EX_WITH_FLOW_TAG": 1 << 9,
        "IBV_WC_EX_WITH_TM_INFO": 1 << 10,
        "IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK": 1 << 11,
    },
)
ibv_device_cap_flags = IntFlag(
    "ibv_device_cap_flags",
    {
        "IBV_DEVICE_RESIZE_MAX_WR": 1 << 0,
        "IBV_DEVICE_BAD_PKEY_CNTR": 1 << 1,
        "IBV_DEVICE_BAD_QKEY_CNTR": 1 << 2,
        "IBV_DEVICE_RAW_MULTI": 1 << 3,
        "IBV_DEVICE_AUTO_PATH_MIG": 1 << 4,
        "IBV_DEVICE_CHANGE_PHY_PORT": 1 << 5,
        "IBV_DEVICE_UD_AV_PORT_ENFORCE": 1 << 6,
        "IBV_DEVICE_CURR_QP_STATE_MOD": 1 << 7,
        "IBV_DEVICE_SHUTDOWN_PORT": 1 << 8,
        "IBV_DEVICE_INIT_TYPE": 1 << 9,
        "IBV_DEVICE_PORT_ACTIVE_EVENT": 1 << 10,
        "IBV_DEVICE_SYS_IMAGE_GUID": 1 << 11,
        "IBV_DEVICE_RC_RNR_NAK_GEN": 1 << 12,
        "IBV_DEVICE_SRQ_RESIZE": 1 << 13,
        "IBV_DEVICE_N_NOTIFY_CQ": 1 << 14,
        "IBV_DEVICE_MEM_WINDOW": 1 << 17,
        "IBV_DEVICE_UD_IP_CSUM": 1 << 18,
        "IBV_DEVICE_XRC": 1 << 20,
        "IBV_DEVICE_MEM_MGT_EXTENSIONS": 1 << 21,
        "IBV_DEVICE_MEM_WINDOW_TYPE_2A": 1 << 23,
        "IBV_DEVICE_MEM_WINDOW_TYPE_2B": 1 << 24,
        "IBV_DEVICE_RC_IP_CSUM": 1 << 25,
        "IBV_DEVICE_RAW_IP_CSUM": 1 << 26,
        "IBV_DEVICE_MANAGED_FLOW_STEERING": 1 << 29,
    },
)
ibv_event_type = IntEnum(
    "ibv_event_type",
    "IBV_EVENT_CQ_ERR IBV_EVENT_QP_FATAL IBV_EVENT_QP_REQ_ERR IBV_EVENT_QP_ACCESS_ERR IBV_EVENT_COMM_EST "
    "IBV_EVENT_SQ_DRAINED IBV_EVENT_PATH_MIG IBV_EVENT_PATH_MIG_ERR IBV_EVENT_DEVICE_FATAL IBV_EVENT_PORT_ACTIVE "
    "IBV_EVENT_PORT_ERR IBV_EVENT_LID_CHANGE IBV_EVENT_PKEY_CHANGE IBV_EVENT_SM_CHANGE IBV_EVENT_SRQ_ERR "
    "IBV_EVENT_SRQ_LIMIT_REACHED IBV_EVENT_QP_LAST_WQE_REACHED IBV_EVENT_CLIENT_REREGISTER IBV_EVENT_GID_CHANGE "
    "IBV_EVENT_WQ_FATAL",
    start=0,
)
ibv_gid_type = IntEnum(
    "ibv_gid_type",
    "IBV_GID_TYPE_IB IBV_GID_TYPE_ROCE_V1 IBV_GID_TYPE_ROCE_V2",
    start=0,
)
ibv_gid_type_sysfs = IntEnum(
    "ibv_gid_type_sysfs",
    "IBV_GID_TYPE_SYSFS_IB_ROCE_V1 IBV_GID_TYPE_SYSFS_ROCE_V2",
    start=0,
)
ibv_mig_state = IntEnum(
    "ibv_mig_state",
    "IBV_MIG_MIGRATED IBV_MIG_REARM IBV_MIG_ARMED",
    start=0,
)
ibv_mtu = IntEnum(
    "ibv_mtu",
    "IBV_MTU_256 IBV_MTU_512 IBV_MTU_1024 IBV_MTU_2048 IBV_MTU_4096",
)
ibv_mw_type = IntEnum(
    "ibv_mw_type",
    "IBV_MW_TYPE_1 IBV_MW_TYPE_2",
)
ibv_node_type = IntEnum(
    "ibv_node_type",
    {
        "IBV_NODE_UNKNOWN": -1,
        "IBV_NODE_CA": 1,
        "IBV_NODE_SWITCH": 2,
        "IBV_NODE_ROUTER": 3,
        "IBV_NODE_RNIC": 4,
        "IBV_NODE_USNIC": 5,
        "IBV_NODE_USNIC_UDP": 6,
        "IBV_NODE_UNSPECIFIED": 7,
    },
)
ibv_odp_general_caps = IntFlag(
    "ibv_odp_general_caps",
    {
        "IBV_ODP_SUPPORT": 1 << 0,
        "IBV_ODP_SUPPORT_IMPLICIT": 1 << 1,
    },
)
ibv_odp_transport_cap_bits = IntFlag(
    "ibv_odp_transport_cap_bits",
    {
        "IBV_ODP_SUPPORT_SEND": 1 << 0,
        "IBV_ODP_SUPPORT_RECV": 1 << 1,
        "IBV_ODP_SUPPORT_WRITE": 1 << 2,
        "IBV_ODP_SUPPORT_READ": 1 << 3,
        "IBV_ODP_SUPPORT_ATOMIC": 1 << 4,
        "IBV_ODP_SUPPORT_SRQ_RECV": 1 << 5,
    },
)
ibv_port_cap_flags = IntFlag(
    "ibv_port_cap_flags",
    {
        "IBV_PORT_SM": 1 << 1,
        "IBV_PORT_NOTICE_SUP": 1 << 2,
        "IBV_PORT_TRAP_SUP": 1 << 3,
        "IBV_PORT_OPT_IPD_SUP": 1 << 4,
        "IBV_PORT_AUTO_MIGR_SUP": 1 << 5,
        "IBV_PORT_SL_MAP_SUP": 1 << 6,
        "IBV_PORT_MKEY_NVRAM": 1 << 7,
        "IBV_PORT_PKEY_NVRAM": 1 << 8,
        "IBV_PORT_LED_INFO_SUP": 1 << 9,
        "IBV_PORT_SYS_IMAGE_GUID_SUP": 1 << 11,
        "IBV_PORT_PKEY_SW_EXT_PORT_TRAP_SUP": 1 << 12,
        "IBV_PORT_EXTENDED_SPEEDS_SUP": 1 << 14,
        "IBV_PORT_CAP_MASK2_SUP": 1 << 15,
        "IBV_PORT_CM_SUP": 1 << 16,
        "IBV_PORT_SNMP_TUNNEL_SUP": 1 << 17,
        "IBV_PORT_REINIT_SUP": 1 << 18,
        "IBV_PORT_DEVICE_MGMT_SUP": 1 << 19,
        "IBV_PORT_VENDOR_CLASS_SUP": 1 << 20,
        "IBV_PORT_DR_NOTICE_SUP": 1 << 21,
        "IBV_PORT_CAP_MASK_NOTICE_SUP": 1 << 22,
        "IBV_PORT_BOOT_MGMT_SUP": 1 << 23,
        "IBV_PORT_LINK_LATENCY_SUP": 1 << 24,
        "IBV_PORT_CLIENT_REG_SUP": 1 << 25,
        "IBV_PORT_IP_BASED_GIDS": 1 << 26,
    },
)
ibv_port_state = IntEnum(
    "ibv_port_state",
    "IBV_PORT_NOP IBV_PORT_DOWN IBV_PORT_INIT IBV_PORT_ARMED IBV_PORT_ACTIVE IBV_PORT_ACTIVE_DEFER",
    start=0,
)
ibv_qp_attr_mask = IntFlag(
    "ibv_qp_attr_mask",
    {
        "IBV_QP_STATE": 1 << 0,
        "IBV_QP_CUR_STATE": 1 << 1,
        "IBV_QP_EN_SQD_ASYNC_NOTIFY": 1 << 2,
        "IBV_QP_ACCESS_FLAGS": 1 << 3,
        "IBV_QP_PKEY_INDEX": 1 << 4,
        "IBV_QP_PORT": 1 << 5,
        "IBV_QP_QKEY": 1 << 6,
        "IBV_QP_AV": 1 << 7,
        "IBV_QP_PATH_MTU": 1 << 8,
        "IBV_QP_TIMEOUT": 1 << 9,
        "IBV_QP_RETRY_CNT": 1 << 10,
        "IBV_QP_RNR_RETRY": 1 << 11,
        "IBV_QP_RQ_PSN": 1 << 12,
        "IBV_QP_MAX_QP_RD_ATOMIC": 1 << 13,
        "IBV_QP_ALT_PATH": 1 << 14,
        "IBV_QP_MIN_RNR_TIMER": 1 << 15,
        "IBV_QP_SQ_PSN": 1 << 16,
        "IBV_QP_MAX_DEST_RD_ATOMIC": 1 << 17,
        "IBV_QP_PATH_MIG_STATE": 1 << 18,
        "IBV_QP_CAP": 1 << 19,
        "IBV_QP_DEST_QPN": 1 << 20,
        "IBV_QP_RATE_LIMIT": 1 << 25,
    },
)
ibv_qp_create_send_ops_flags = IntFlag(
    "ibv_qp_create_send_ops_flags",
    {
        "IBV_QP_EX_WITH_RDMA_WRITE": 1 << 0,
        "IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM": 1 << 1,
        "IBV_QP_EX_WITH_SEND": 1 << 2,
        "IBV_QP_EX_WITH_SEND_WITH_IMM": 1 << 3,
        "IBV_QP_EX_WITH_RDMA_READ": 1 << 4,
        "IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP": 1 << 5,
        "IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD": 1 << 6,
        "IBV_QP_EX_WITH_LOCAL_INV": 1 << 7,
        "IBV_QP_EX_WITH_BIND_MW": 1 << 8,
        "IBV_QP_EX_WITH_SEND_WITH_INV": 1 << 9,
        "IBV_QP_EX_WITH_TSO": 1 << 10,
        "IBV_QP_EX_WITH_ATOMIC_WRITE": 1 << 12,
    },
)
ibv_qp_init_attr_mask = IntFlag(
    "ibv_qp_init_attr_mask",
    {
        "IBV_QP_INIT_ATTR_PD": 1 << 0,
        "IBV_QP_INIT_ATTR_XRCD": 1 << 1,
        "IBV_QP_INIT_ATTR_CREATE_FLAGS": 1 << 2,
        "IBV_QP_INIT_ATTR_MAX_TSO_HEADER": 1 << 3,
        "IBV_QP_INIT_ATTR_IND_TABLE": 1 << 4,
        "IBV_QP_INIT_ATTR_RX_HASH": 1 << 5,
        "IBV_QP_INIT_ATTR_SEND_OPS_FLAGS": 1 << 6,
    },
)
ibv_qp_state = IntEnum(
    "ibv_qp_state",
    "IBV_QPS_RESET IBV_QPS_INIT IBV_QPS_RTR IBV_QPS_RTS IBV_QPS_SQD IBV_QPS_SQE IBV_QPS_ERR IBV_QPS_UNKNOWN",
    start=0,
)
ibv_qp_type = IntEnum(
    "ibv_qp_type",
    {
        "IBV_QPT_RC": 2,
        "IBV_QPT_UC": 3,
        "IBV_QPT_UD": 4,
        "IBV_QPT_RAW_PACKET": 8,
        "IBV_QPT_XRC_SEND": 9,
        "IBV_QPT_XRC_RECV": 10,
        "IBV_QPT_DRIVER": 255,
    },
)
ibv_rereg_mr_flags = IntFlag(
    "ibv_rereg_mr_flags",
    {
        "IBV_REREG_MR_CHANGE_TRANSLATION": 1 << 0,
        "IBV_REREG_MR_CHANGE_PD": 1 << 1,
        "IBV_REREG_MR_CHANGE_ACCESS": 1 << 2,
    },
)
ibv_send_flags = IntFlag(
    "ibv_send_flags",
    {
        "IBV_SEND_FENCE": 1 << 0,
        "IBV_SEND_SIGNALED": 1 << 1,
        "IBV_SEND_SOLICITED": 1 << 2,
        "IBV_SEND_INLINE": 1 << 3,
        "IBV_SEND_IP_CSUM": 1 << 4,
    },
)
ibv_srq_attr_mask = IntFlag(
    "ibv_srq_attr_mask",
    {
        "IBV_SRQ_MAX_WR": 1 << 0,
        "IBV_SRQ_LIMIT": 1 << 1,
    },
)
ibv_srq_init_attr_mask = IntFlag(
    "ibv_srq_init_attr_mask",
    {
        "IBV_SRQ_INIT_ATTR_TYPE": 1 << 0,
        "IBV_SRQ_INIT_ATTR_PD": 1 << 1,
        "IBV_SRQ_INIT_ATTR_XRCD": 1 << 2,
        "IBV_SRQ_INIT_ATTR_CQ": 1 << 3,
        "IBV_SRQ_INIT_ATTR_TM": 1 << 4,
    },
)
ibv_srq_type = IntEnum(
    "ibv_srq_type",
    "IBV_SRQT_BASIC IBV_SRQT_XRC IBV_SRQT_TM",
    start=0,
)
ibv_transport_type = IntEnum(
    "ibv_transport_type",
    "IBV_TRANSPORT_UNKNOWN IBV_TRANSPORT_IB IBV_TRANSPORT_IWARP IBV_TRANSPORT_USNIC IBV_TRANSPORT_USNIC_UDP",
    start=-1,
)
ibv_wc_flags = IntFlag(
    "ibv_wc_flags",
    {
        "IBV_WC_GRH": 1 << 0,
        "IBV_WC_WITH_IMM": 1 << 1,
        "IBV_WC_IP_CSUM_OK": 1 << 2,
        "IBV_WC_WITH_INV": 1 << 3,
        "IBV_WC_TM_SYNC_REQ": 1 << 4,
        "IBV_WC_TM_MATCH": 1 << 5,
        "IBV_WC_TM_DATA_VALID": 1 << 6,
    },
)
ibv_wc_opcode = IntEnum(
    "ibv_wc_opcode",
    {
        "IBV_WC_SEND": 0,
        "IBV_WC_RDMA_WRITE": 1,
        "IBV_WC_RDMA_READ": 2,
        "IBV_WC_COMP_SWAP": 3,
        "IBV_WC_FETCH_ADD": 4,
        "IBV_WC_BIND_MW": 5,
        "IBV_WC_LOCAL_INV": 6,
        "IBV_WC_TSO": 7,
        "IBV_WC_ATOMIC_WRITE": 9,
        "IBV_WC_RECV": 128,
        "IBV_WC_RECV_RDMA_WITH_IMM": 129,
        "IBV_WC_TM_ADD": 130,
        "IBV_WC_TM_DEL": 131,
        "IBV_WC_TM_SYNC": 132,
        "IBV_WC_TM_RECV": 133,
        "IBV_WC_TM_NO_TAG": 134,
        "IBV_WC_DRIVER2": 136,
        "IBV_WC_DRIVER3": 137,
    },
)
ibv_wc_status = IntEnum(
    "ibv_wc_status",
    "IBV_WC_SUCCESS IBV_WC_LOC_LEN_ERR IBV_WC_LOC_QP_OP_ERR IBV_WC_LOC_EEC_OP_ERR IBV_WC_LOC_PROT_ERR "
    "IBV_WC_WR_FLUSH_ERR IBV_WC_MW_BIND_ERR IBV_WC_BAD_RESP_ERR IBV_WC_LOC_ACCESS_ERR IBV_WC_REM_INV_REQ_ERR "
    "IBV_WC_REM_ACCESS_ERR IBV_WC_REM_OP_ERR IBV_WC_RETRY_EXC_ERR IBV_WC_RNR_RETRY_EXC_ERR "
    "IBV_WC_LOC_RDD_VIOL_ERR IBV_WC_REM_INV_RD_REQ_ERR IBV_WC_REM_ABORT_ERR IBV_WC_INV_EECN_ERR "
    "IBV_WC_INV_EEC_STATE_ERR IBV_WC_FATAL_ERR IBV_WC_RESP_TIMEOUT_ERR IBV_WC_GENERAL_ERR IBV_WC_TM_ERR "
    "IBV_WC_TM_RNDV_INCOMPLETE",
    start=0,
)
ibv_wr_opcode = IntEnum(
    "ibv_wr_opcode",
    {
        "IBV_WR_RDMA_WRITE": 0,
        "IBV_WR_RDMA_WRITE_WITH_IMM": 1,
        "IBV_WR_SEND": 2,
        "IBV_WR_SEND_WITH_IMM": 3,
        "IBV_WR_RDMA_READ": 4,
        "IBV_WR_ATOMIC_CMP_AND_SWP": 5,
        "IBV_WR_ATOMIC_FETCH_AND_ADD": 6,
        "IBV_WR_LOCAL_INV": 7,
        "IBV_WR_BIND_MW": 8,
        "IBV_WR_SEND_WITH_INV": 9,
        "IBV_WR_TSO": 10,
        "IBV_WR_ATOMIC_WRITE": 15,
    },
)

IBV_LINK_LAYER_UNSPECIFIED: Final = 0
IBV_LINK_LAYER_INFINIBAND: Final = 1
IBV_LINK_LAYER_ETHERNET: Final = 2
IBV_QPF_GRH_REQUIRED: Final = 1
IBV_WC_STANDARD_FLAGS: Final = 0x7F

_MEMBERS: Final[dict[str, Any]] = {}
for _group in [group for group in vars().values() if isinstance(group, EnumType)]:
    _MEMBERS.update(_group.__members__)

__all__ = [name for name in vars() if name.startswith(("ibv_", "IBV_"))]
__all__ += _MEMBERS


def __getattr__(name: str) -> Any:
    """A member of any group."""
    if name not in _MEMBERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _MEMBERS[name]
