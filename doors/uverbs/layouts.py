"""What the kernel's verbs devices are written and answer: rdma/ib_user_verbs.h and rdma/rdma_user_rxe.h.

A command begins with CMD_HDR, an extended one with EX_CMD_HDR besides, then its own structure. The first member of one
that is not extended is the address of the answer.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from doors.uverbs.c_struct import CStruct

UVERBS_ABI_VERSION: Final = 6
"""IB_USER_VERBS_ABI_VERSION."""

EXTENDED: Final = 1 << 31
"""IB_USER_VERBS_CMD_FLAG_EXTENDED."""


class Verb(IntEnum):
    """enum ib_uverbs_write_cmds; those that there are here."""

    GET_CONTEXT = 0
    QUERY_DEVICE = 1
    QUERY_PORT = 2
    ALLOC_PD = 3
    DEALLOC_PD = 4
    CREATE_AH = 5
    DESTROY_AH = 8
    REG_MR = 9
    REREG_MR = 11
    DEREG_MR = 13
    ALLOC_MW = 14
    DEALLOC_MW = 16
    CREATE_COMP_CHANNEL = 17
    CREATE_CQ = 18
    RESIZE_CQ = 19
    DESTROY_CQ = 20
    REQ_NOTIFY_CQ = 23
    CREATE_QP = 24
    QUERY_QP = 25
    MODIFY_QP = 26
    DESTROY_QP = 27
    POST_SEND = 28
    ATTACH_MCAST = 30
    DETACH_MCAST = 31
    CREATE_SRQ = 32
    MODIFY_SRQ = 33
    QUERY_SRQ = 34
    DESTROY_SRQ = 35
    CREATE_XSRQ = 39
    EX_QUERY_DEVICE = EXTENDED | 1
    EX_CREATE_CQ = EXTENDED | 18
    EX_CREATE_QP = EXTENDED | 24


CMD_HDR: Final = CStruct("ib_uverbs_cmd_hdr", "I command, H in_words, H out_words")
EX_CMD_HDR: Final = CStruct(
    "ib_uverbs_ex_cmd_hdr", "Q response, H provider_in_words, H provider_out_words, I cmd_hdr_reserved"
)
EX_TAIL: Final = CStruct("what every extended answer ends with", "I comp_mask, I response_length")

ASYNC_EVENT_DESC: Final = CStruct("ib_uverbs_async_event_desc", "Q element, I event_type, I reserved")
COMP_EVENT_DESC: Final = CStruct("ib_uverbs_comp_event_desc", "Q cq_handle")

GET_CONTEXT: Final = CStruct("ib_uverbs_get_context", "Q response")
GET_CONTEXT_RESP: Final = CStruct("ib_uverbs_get_context_resp", "I async_fd, I num_comp_vectors")

QUERY_DEVICE: Final = CStruct("ib_uverbs_query_device", "Q response")
QUERY_DEVICE_RESP: Final = CStruct(
    "ib_uverbs_query_device_resp",
    "Q fw_ver, 8s node_guid, 8s sys_image_guid, Q max_mr_size, Q page_size_cap, I vendor_id, I vendor_part_id,"
    "I hw_ver, I max_qp, I max_qp_wr, I device_cap_flags, I max_sge, I max_sge_rd, I max_cq, I max_cqe, I max_mr,"
    "I max_pd, I max_qp_rd_atom, I max_ee_rd_atom, I max_res_rd_atom, I max_qp_init_rd_atom, I max_ee_init_rd_atom,"
    "I atomic_cap, I max_ee, I max_rdd, I max_mw, I max_raw_ipv6_qp, I max_raw_ethy_qp, I max_mcast_grp,"
    "I max_mcast_qp_attach, I max_total_mcast_qp_attach, I max_ah, I max_fmr, I max_map_per_fmr, I max_srq,"
    "I max_srq_wr, I max_srq_sge, H max_pkeys, B local_ca_ack_delay, B phys_port_cnt, 4x",
)
EX_QUERY_DEVICE: Final = CStruct("ib_uverbs_ex_query_device", "I comp_mask, I reserved")
EX_QUERY_DEVICE_TAIL: Final = CStruct(
    "ib_uverbs_ex_query_device_resp after its base",
    "I comp_mask, I response_length, Q general_caps, I rc_odp_caps, I uc_odp_caps, I ud_odp_caps, 4x,"
    "Q timestamp_mask, Q hca_core_clock, Q device_cap_flags_ex, I rss_supported_qpts,"
    "I max_rwq_indirection_tables, I max_rwq_indirection_table_size, 4x, I max_wq_type_rq, I raw_packet_caps,"
    "I max_rndv_hdr_size, I max_num_tags, I tm_flags, I tm_max_ops, I tm_max_sge, 4x, H max_cq_moderation_count,"
    "H max_cq_moderation_period, 4x, Q max_dm_size, I xrc_odp_caps, 4x",
)

QUERY_PORT: Final = CStruct("ib_uverbs_query_port", "Q response, B port_num, 7x")
QUERY_PORT_RESP: Final = CStruct(
    "ib_uverbs_query_port_resp",
    "I port_cap_flags, I max_msg_sz, I bad_pkey_cntr, I qkey_viol_cntr, I gid_tbl_len, H pkey_tbl_len, H lid,"
    "H sm_lid, B state, B max_mtu, B active_mtu, B lmc, B max_vl_num, B sm_sl, B subnet_timeout, B init_type_reply,"
    "B active_width, B active_speed, B phys_state, B link_layer, B flags, x",
)

ALLOC_PD: Final = CStruct("ib_uverbs_alloc_pd", "Q response")
ALLOC_PD_RESP: Final = CStruct("ib_uverbs_alloc_pd_resp", "I pd_handle")
DESTROY: Final = CStruct("ib_uverbs_dealloc_pd and others that have a handle alone", "I handle")

REG_MR: Final = CStruct("ib_uverbs_reg_mr", "Q response, Q start, Q length, Q hca_va, I pd_handle, I access_flags")
REG_MR_RESP: Final = CStruct("ib_uverbs_reg_mr_resp", "I mr_handle, I lkey, I rkey")
REREG_MR: Final = CStruct(
    "ib_uverbs_rereg_mr",
    "Q response, I mr_handle, I flags, Q start, Q length, Q hca_va, I pd_handle, I access_flags",
)
REREG_MR_RESP: Final = CStruct("ib_uverbs_rereg_mr_resp", "I lkey, I rkey")
ALLOC_MW: Final = CStruct("ib_uverbs_alloc_mw", "Q response, I pd_handle, B mw_type, 3x")
ALLOC_MW_RESP: Final = CStruct("ib_uverbs_alloc_mw_resp", "I mw_handle, I rkey")

CREATE_COMP_CHANNEL: Final = CStruct("ib_uverbs_create_comp_channel", "Q response")
CREATE_COMP_CHANNEL_RESP: Final = CStruct("ib_uverbs_create_comp_channel_resp", "I fd")
CREATE_CQ: Final = CStruct(
    "ib_uverbs_create_cq", "Q response, Q user_handle, I cqe, I comp_vector, i comp_channel, I reserved"
)
CREATE_CQ_RESP: Final = CStruct("ib_uverbs_create_cq_resp", "I cq_handle, I cqe")
EX_CREATE_CQ: Final = CStruct(
    "ib_uverbs_ex_create_cq",
    "Q user_handle, I cqe, I comp_vector, i comp_channel, I comp_mask, I flags, I reserved",
)
RESIZE_CQ: Final = CStruct("ib_uverbs_resize_cq", "Q response, I cq_handle, I cqe")
RESIZE_CQ_RESP: Final = CStruct("ib_uverbs_resize_cq_resp", "I cqe, I reserved")
REQ_NOTIFY_CQ: Final = CStruct("ib_uverbs_req_notify_cq", "I cq_handle, I solicited_only")
DESTROY_CQ: Final = CStruct("ib_uverbs_destroy_cq", "Q response, I cq_handle, I reserved")
DESTROY_CQ_RESP: Final = CStruct("ib_uverbs_destroy_cq_resp", "I comp_events_reported, I async_events_reported")
WC: Final = CStruct(
    "ib_uverbs_wc",
    "Q wr_id, I status, I opcode, I vendor_err, I byte_len, 4s ex, I qp_num, I src_qp, I wc_flags, H pkey_index,"
    "H slid, B sl, B dlid_path_bits, B port_num, x",
)

_CAPABILITIES: Final = "I max_send_wr, I max_recv_wr, I max_send_sge, I max_recv_sge, I max_inline_data"
_QP_OBJECTS: Final = f"I pd_handle, I send_cq_handle, I recv_cq_handle, I srq_handle, {_CAPABILITIES}"
CREATE_QP: Final = CStruct(
    "ib_uverbs_create_qp", f"Q response, Q user_handle, {_QP_OBJECTS}, B sq_sig_all, B qp_type, B is_srq, x"
)
EX_CREATE_QP: Final = CStruct(
    "ib_uverbs_ex_create_qp",
    f"Q user_handle, {_QP_OBJECTS}, B sq_sig_all, B qp_type, B is_srq, x, I comp_mask, I create_flags,"
    "I rwq_ind_tbl_handle, I source_qpn",
)
CREATE_QP_RESP: Final = CStruct("ib_uverbs_create_qp_resp", f"I qp_handle, I qpn, {_CAPABILITIES}, I reserved")

QP_DEST: Final = CStruct(
    "ib_uverbs_qp_dest",
    "16s dgid, I flow_label, H dlid, 2x, B sgid_index, B hop_limit, B traffic_class, B sl, B src_path_bits,"
    "B static_rate, B is_global, B port_num",
)
QUERY_QP: Final = CStruct("ib_uverbs_query_qp", "Q response, I qp_handle, I attr_mask")
QUERY_QP_RESP: Final = CStruct(
    "ib_uverbs_query_qp_resp",
    f"32s dest, 32s alt_dest, {_CAPABILITIES}, I qkey, I rq_psn, I sq_psn, I dest_qp_num, I qp_access_flags,"
    "H pkey_index, H alt_pkey_index, B qp_state, B cur_qp_state, B path_mtu, B path_mig_state, B sq_draining,"
    "B max_rd_atomic, B max_dest_rd_atomic, B min_rnr_timer, B port_num, B timeout, B retry_cnt, B rnr_retry,"
    "B alt_port_num, B alt_timeout, B sq_sig_all, 5x",
)
MODIFY_QP: Final = CStruct(
    "ib_uverbs_modify_qp",
    "32s dest, 32s alt_dest, I qp_handle, I attr_mask, I qkey, I rq_psn, I sq_psn, I dest_qp_num, I qp_access_flags,"
    "H pkey_index, H alt_pkey_index, B qp_state, B cur_qp_state, B path_mtu, B path_mig_state, B en_sqd_async_notify,"
    "B max_rd_atomic, B max_dest_rd_atomic, B min_rnr_timer, B port_num, B timeout, B retry_cnt, B rnr_retry,"
    "B alt_port_num, B alt_timeout, 2x",
)
DESTROY_WITH_EVENTS: Final = CStruct("ib_uverbs_destroy_qp and _srq", "Q response, I handle, I reserved")
DESTROY_EVENTS_RESP: Final = CStruct("ib_uverbs_destroy_qp_resp and _srq_resp", "I events_reported")
POST_SEND: Final = CStruct("ib_uverbs_post_send", "Q response, I qp_handle, I wr_count, I sge_count, I wqe_size")
POST_SEND_RESP: Final = CStruct("ib_uverbs_post_send_resp", "I bad_wr")

CREATE_SRQ: Final = CStruct(
    "ib_uverbs_create_srq", "Q response, Q user_handle, I pd_handle, I max_wr, I max_sge, I srq_limit"
)
CREATE_XSRQ: Final = CStruct(
    "ib_uverbs_create_xsrq",
    "Q response, Q user_handle, I srq_type, I pd_handle, I max_wr, I max_sge, I srq_limit, I max_num_tags,"
    "I xrcd_handle, I cq_handle",
)
CREATE_SRQ_RESP: Final = CStruct("ib_uverbs_create_srq_resp", "I srq_handle, I max_wr, I max_sge, I srqn")
MODIFY_SRQ: Final = CStruct("ib_uverbs_modify_srq", "I srq_handle, I attr_mask, I max_wr, I srq_limit")
QUERY_SRQ: Final = CStruct("ib_uverbs_query_srq", "Q response, I srq_handle, I reserved")
QUERY_SRQ_RESP: Final = CStruct("ib_uverbs_query_srq_resp", "I max_wr, I max_sge, I srq_limit, I reserved")

AH_ATTR: Final = CStruct(
    "ib_uverbs_ah_attr",
    "16s dgid, I flow_label, B sgid_index, B hop_limit, B traffic_class, x, H dlid, B sl, B src_path_bits,"
    "B static_rate, B is_global, B port_num, x",
)
CREATE_AH: Final = CStruct("ib_uverbs_create_ah", "Q response, Q user_handle, I pd_handle, I reserved, 32s attr")
CREATE_AH_RESP: Final = CStruct("ib_uverbs_create_ah_resp", "I ah_handle")
ATTACH_MCAST: Final = CStruct("ib_uverbs_attach_mcast and _detach_mcast", "16s gid, I qp_handle, H mlid, H reserved")

MMINFO: Final = CStruct("mminfo", "Q offset, I size, I pad")
RXE_CREATE_AH_RESP: Final = CStruct("rxe_create_ah_resp", "I ah_num, I reserved")
RXE_CREATE_SRQ_TAIL: Final = CStruct("rxe_create_srq_resp after its mminfo", "I srq_num, I reserved")
RXE_MODIFY_SRQ_CMD: Final = CStruct("rxe_modify_srq_cmd", "Q mmap_info_addr")
