"""How a connection's queue pair is modified, in the kernel's terms: struct ib_uverbs_qp_attr."""

from __future__ import annotations

import errno
from enum import IntFlag
from typing import Final

from doors.mads.host_port import HostPort
from doors.mads.umad_device import DeviceError
from doors.rdma_cm.layouts import QP_ATTR
from doors.uverbs.layouts import AH_ATTR
from verbs.address import AddressVector
from verbs.cm_parameters import Negotiated
from verbs.states import QpState
from wire.codes import mtu_code

__all__ = ["ah_attr", "bare_attributes", "connected_attributes"]


class _Mask(IntFlag):
    """enum ibv_qp_attr_mask."""

    STATE = 1 << 0
    ACCESS_FLAGS = 1 << 3
    PKEY_INDEX = 1 << 4
    PORT = 1 << 5
    QKEY = 1 << 6
    AV = 1 << 7
    PATH_MTU = 1 << 8
    TIMEOUT = 1 << 9
    RETRY_CNT = 1 << 10
    RNR_RETRY = 1 << 11
    RQ_PSN = 1 << 12
    MAX_QP_RD_ATOMIC = 1 << 13
    MIN_RNR_TIMER = 1 << 15
    SQ_PSN = 1 << 16
    MAX_DEST_RD_ATOMIC = 1 << 17
    DEST_QPN = 1 << 20


_NAMES: Final = {
    # The kernel's words for those of `verbs.states.QpChanges`.
    "p_key_index": ("pkey_index", _Mask.PKEY_INDEX),
    "port": ("port_num", _Mask.PORT),
    "access": ("qp_access_flags", _Mask.ACCESS_FLAGS),
    "path": ("ah_attr", _Mask.AV),
    "path_mtu": ("path_mtu", _Mask.PATH_MTU),
    "dest_qp": ("dest_qp_num", _Mask.DEST_QPN),
    "rq_psn": ("rq_psn", _Mask.RQ_PSN),
    "sq_psn": ("sq_psn", _Mask.SQ_PSN),
    "max_dest_rd_atomic": ("max_dest_rd_atomic", _Mask.MAX_DEST_RD_ATOMIC),
    "max_rd_atomic": ("max_rd_atomic", _Mask.MAX_QP_RD_ATOMIC),
    "min_rnr_timer": ("min_rnr_timer", _Mask.MIN_RNR_TIMER),
    "timeout": ("timeout", _Mask.TIMEOUT),
    "retry_cnt": ("retry_cnt", _Mask.RETRY_CNT),
    "rnr_retry": ("rnr_retry", _Mask.RNR_RETRY),
}


def ah_attr(path: AddressVector, rate: int = 0) -> bytes:
    """A struct ib_uverbs_ah_attr; RATE is a code, 0 the port's own."""
    route = path.route
    grh: dict[str, int | bytes] = {}
    if route is not None:
        grh = {
            "dgid": route.dgid.to_bytes(16, "big"),
            "flow_label": route.flow_label,
            "sgid_index": route.sgid_index,
            "hop_limit": route.hop_limit,
            "traffic_class": route.traffic_class,
            "is_global": 1,
        }
    ends = {"dlid": path.dlid, "src_path_bits": path.src_path_bits, "port_num": path.port}
    return AH_ATTR.pack(**ends, sl=path.sl, static_rate=rate, **grh)


def bare_attributes(state: int, port: HostPort, p_key_index: int, q_key: int | None) -> bytes:
    """Of a queue pair without a connection: a datagram one, if there is a Q_Key, or one that has none yet.

    Raises:
        DeviceError: a state that it cannot get into.
    """
    mask = _Mask.STATE | _Mask.PKEY_INDEX | _Mask.PORT
    if q_key is None:
        if state != QpState.INIT:
            raise DeviceError(errno.EINVAL)
        mask |= _Mask.ACCESS_FLAGS
    else:
        mask |= _Mask.QKEY
    return QP_ATTR.pack(
        qp_attr_mask=mask, qp_state=state, pkey_index=p_key_index, port_num=port.number, qkey=q_key or 0
    )


def connected_attributes(state: int, negotiated: Negotiated, ack_timeout: int | None) -> bytes:
    """Of a connection's queue pair; ACK_TIMEOUT is the code of a Local ACK Timeout other than the connection's.

    Raises:
        DeviceError: a state that it cannot get into.
    """
    try:
        changes = negotiated.changes(QpState(state))
    except ValueError:
        raise DeviceError(errno.EINVAL) from None
    if ack_timeout is not None and "timeout" in changes:
        changes["timeout"] = ack_timeout
    mask, values = _Mask.STATE, dict[str, int | bytes]()
    for name, value in changes.items():
        theirs, bit = _NAMES[name]
        mask |= bit
        match value:
            case AddressVector():
                values[theirs] = ah_attr(value)
            case int() if name == "path_mtu":
                values[theirs] = int(mtu_code(value))
            case int():
                values[theirs] = int(value)
    return QP_ATTR.pack(qp_attr_mask=mask, qp_state=state, **values)
