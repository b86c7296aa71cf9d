"""What the kernel's rdma_cm device is written and answers: rdma/rdma_user_cm.h and rdma/ib_user_sa.h."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from doors.uverbs.c_struct import CStruct

__all__ = [
    "ACCEPT",
    "BIND",
    "BIND_IP",
    "CMD_HDR",
    "CONNECT",
    "CONN_PARAM",
    "CREATE_ID",
    "CREATE_ID_RESP",
    "DESTROY_ID",
    "EVENTS_RESP",
    "EVENT_RESP",
    "GET_EVENT",
    "INIT_QP_ATTR",
    "JOIN_IP_MCAST",
    "JOIN_MCAST",
    "LISTEN",
    "MIGRATE_ID",
    "NOTIFY",
    "ONLY_ID",
    "PATH_DATA",
    "QP_ATTR",
    "QUERY",
    "QUERY_ADDR_RESP",
    "QUERY_PATH_RESP",
    "QUERY_ROUTE_RESP",
    "REJECT",
    "RESOLVE_ADDR",
    "RESOLVE_IP",
    "RESOLVE_ROUTE",
    "SET_OPTION",
    "UCM_ABI_VERSION",
    "UD_PARAM",
    "USER_PATH_REC",
    "CmCommand",
    "CmEventCode",
    "CmQuery",
    "JoinFlag",
]

UCM_ABI_VERSION: Final = 4
"""RDMA_USER_CM_ABI_VERSION."""


class CmCommand(IntEnum):
    """RDMA_USER_CM_CMD_*."""

    CREATE_ID = 0
    DESTROY_ID = 1
    BIND_IP = 2
    RESOLVE_IP = 3
    RESOLVE_ROUTE = 4
    QUERY_ROUTE = 5
    CONNECT = 6
    LISTEN = 7
    ACCEPT = 8
    REJECT = 9
    DISCONNECT = 10
    INIT_QP_ATTR = 11
    GET_EVENT = 12
    GET_OPTION = 13
    SET_OPTION = 14
    NOTIFY = 15
    JOIN_IP_MCAST = 16
    LEAVE_MCAST = 17
    MIGRATE_ID = 18
    QUERY = 19
    BIND = 20
    RESOLVE_ADDR = 21
    JOIN_MCAST = 22


class CmEventCode(IntEnum):
    """enum rdma_cm_event_type of librdmacm."""

    ADDR_RESOLVED = 0
    ADDR_ERROR = 1
    ROUTE_RESOLVED = 2
    ROUTE_ERROR = 3
    CONNECT_REQUEST = 4
    CONNECT_RESPONSE = 5
    CONNECT_ERROR = 6
    UNREACHABLE = 7
    REJECTED = 8
    ESTABLISHED = 9
    DISCONNECTED = 10
    MULTICAST_JOIN = 12
    MULTICAST_ERROR = 13
    TIMEWAIT_EXIT = 15


class JoinFlag(IntEnum):
    """RDMA_MC_JOIN_FLAG_*."""

    FULL_MEMBER = 0
    SEND_ONLY_FULL_MEMBER = 1


class CmQuery(IntEnum):
    """RDMA_USER_CM_QUERY_*."""

    ADDR = 0
    PATH = 1
    GID = 2


CMD_HDR: Final = CStruct("rdma_ucm_cmd_hdr", "I command, H in_bytes, H out_bytes")

CREATE_ID: Final = CStruct("rdma_ucm_create_id", "Q uid, Q response, H ps, B qp_type, 5x")
CREATE_ID_RESP: Final = CStruct("rdma_ucm_create_id_resp", "I id")
DESTROY_ID: Final = CStruct("rdma_ucm_destroy_id", "Q response, I id, 4x")
EVENTS_RESP: Final = CStruct("rdma_ucm_destroy_id_resp and _migrate_resp", "I events_reported")
BIND_IP: Final = CStruct("rdma_ucm_bind_ip", "Q response, 28s addr, I id")
BIND: Final = CStruct("rdma_ucm_bind", "I id, H addr_size, H reserved, 128s addr")
RESOLVE_IP: Final = CStruct("rdma_ucm_resolve_ip", "28s src_addr, 28s dst_addr, I id, I timeout_ms")
RESOLVE_ADDR: Final = CStruct(
    "rdma_ucm_resolve_addr", "I id, I timeout_ms, H src_size, H dst_size, I reserved, 128s src_addr, 128s dst_addr"
)
RESOLVE_ROUTE: Final = CStruct("rdma_ucm_resolve_route", "I id, I timeout_ms")
QUERY: Final = CStruct("rdma_ucm_query", "Q response, I id, I option")

USER_PATH_REC: Final = CStruct(
    "ib_user_path_rec",
    "16s dgid, 16s sgid, 2s dlid, 2s slid, I raw_traffic, 4s flow_label, I reversible, I mtu, 2s pkey, B hop_limit,"
    "B traffic_class, B numb_path, B sl, B mtu_selector, B rate_selector, B rate, B packet_life_time_selector,"
    "B packet_life_time, B preference",
)
PATH_DATA: Final = CStruct("ib_path_rec_data", "I flags, 4x, 64s path_rec")
QUERY_ROUTE_RESP: Final = CStruct(
    "rdma_ucm_query_route_resp",
    "8s node_guid, 64s ib_route, 64s alternate, 28s src_addr, 28s dst_addr, I num_paths, B port_num, 3x,"
    "I ibdev_index, 4x",
)
QUERY_ADDR_RESP: Final = CStruct(
    "rdma_ucm_query_addr_resp",
    "8s node_guid, B port_num, x, 2s pkey, H src_size, H dst_size, 128s src_addr, 128s dst_addr, I ibdev_index, 4x",
)
QUERY_PATH_RESP: Final = CStruct("rdma_ucm_query_path_resp", "I num_paths, 4x")

CONN_PARAM: Final = CStruct(
    "rdma_ucm_conn_param",
    "I qp_num, I qkey, 256s private_data, B private_data_len, B srq, B responder_resources, B initiator_depth,"
    "B flow_control, B retry_count, B rnr_retry_count, B valid",
)
UD_PARAM: Final = CStruct(
    "rdma_ucm_ud_param", "I qp_num, I qkey, 32s ah_attr, 256s private_data, B private_data_len, 7x"
)
CONNECT: Final = CStruct("rdma_ucm_connect", "272s conn_param, I id, 4x")
ACCEPT: Final = CStruct("rdma_ucm_accept", "Q uid, 272s conn_param, I id, 4x")
"""Of these two, `ece` may follow, which newer libraries have."""

LISTEN: Final = CStruct("rdma_ucm_listen", "I id, i backlog")
REJECT: Final = CStruct("rdma_ucm_reject", "I id, B private_data_len, B reason, 2x, 256s private_data")
ONLY_ID: Final = CStruct("rdma_ucm_disconnect", "I id")
INIT_QP_ATTR: Final = CStruct("rdma_ucm_init_qp_attr", "Q response, I id, I qp_state")
QP_ATTR: Final = CStruct(
    "ib_uverbs_qp_attr",
    "I qp_attr_mask, I qp_state, I cur_qp_state, I path_mtu, I path_mig_state, I qkey, I rq_psn, I sq_psn,"
    "I dest_qp_num, I qp_access_flags, 32s ah_attr, 32s alt_ah_attr, I max_send_wr, I max_recv_wr, I max_send_sge,"
    "I max_recv_sge, I max_inline_data, H pkey_index, H alt_pkey_index, B en_sqd_async_notify, B sq_draining,"
    "B max_rd_atomic, B max_dest_rd_atomic, B min_rnr_timer, B port_num, B timeout, B retry_cnt, B rnr_retry,"
    "B alt_port_num, B alt_timeout, 5x",
)
NOTIFY: Final = CStruct("rdma_ucm_notify", "I id, I event")
JOIN_IP_MCAST: Final = CStruct("rdma_ucm_join_ip_mcast", "Q response, Q uid, 28s addr, I id")
JOIN_MCAST: Final = CStruct("rdma_ucm_join_mcast", "Q response, Q uid, I id, H addr_size, H join_flags, 128s addr")
GET_EVENT: Final = CStruct("rdma_ucm_get_event", "Q response")
EVENT_RESP: Final = CStruct("rdma_ucm_event_resp", "Q uid, I id, I event, i status, 304s param, 12x")
SET_OPTION: Final = CStruct("rdma_ucm_set_option", "Q optval, I id, I level, I optname, I optlen")
MIGRATE_ID: Final = CStruct("rdma_ucm_migrate_id", "Q response, I id, I fd")
