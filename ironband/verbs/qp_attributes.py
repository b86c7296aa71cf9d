"""What queue pairs are made with and what is set at them: sizes, attributes, masks."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final, cast

from ironband.verbs.addresses import AHAttr
from ironband.verbs.base import PyverbsObject
from ironband.verbs.completion_queue import CompletionSource
from ironband.verbs.enums import (
    ibv_mig_state,
    ibv_mtu,
    ibv_qp_attr_mask,
    ibv_qp_create_send_ops_flags,
    ibv_qp_state,
    ibv_qp_type,
)
from ironband.verbs.mr import access_of
from ironband.verbs.pd import PD
from ironband.verbs.pyverbs_error import PyverbsRDMAError
from ironband.verbs.reliable_domain import QPT_EEC, QPT_RD, RDD
from ironband.verbs.srq import SRQ
from ironband.verbs.xrcd import XRCD
from verbs.queue_pair import QpCapabilities
from verbs.states import QpAttributes, QpChanges
from wire.codes import MTU, mtu_bytes, mtu_code

__all__ = ["QPAttr", "QPCap", "QPInitAttr", "QPInitAttrEx", "changes_of", "mask_of_step"]


_SEND_OPERATIONS: Final = sum(ibv_qp_create_send_ops_flags) & ~(
    ibv_qp_create_send_ops_flags.IBV_QP_EX_WITH_TSO | ibv_qp_create_send_ops_flags.IBV_QP_EX_WITH_ATOMIC_WRITE
)


class QPCap(PyverbsObject):
    """Sizes of a queue pair's queues."""

    def __init__(
        self,
        max_send_wr: int = 1,
        max_recv_wr: int = 10,
        max_send_sge: int = 1,
        max_recv_sge: int = 1,
        max_inline_data: int = 0,
    ) -> None:
        super().__init__()
        self.max_send_wr = max_send_wr
        self.max_recv_wr = max_recv_wr
        self.max_send_sge = max_send_sge
        self.max_recv_sge = max_recv_sge
        self.max_inline_data = max_inline_data

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """All of them."""
        return self.max_send_wr, self.max_recv_wr, self.max_send_sge, self.max_recv_sge, self.max_inline_data

    @property
    def capabilities(self) -> QpCapabilities:
        """The same for the adapter."""
        return QpCapabilities(*map(int, self.sizes))

    @classmethod
    def of(cls, sizes: QpCapabilities) -> QPCap:
        """The adapter's for programs."""
        return cls(sizes.max_send_wr, sizes.max_recv_wr, sizes.max_send_sge, sizes.max_recv_sge, sizes.max_inline_data)

    def __str__(self) -> str:
        return "".join(f"{name.replace('_', ' '):20}: {value:<20}\n" for name, value in _numbers(self))


class _Size:
    """A size of `cap`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, attr: QPInitAttr, owner: type | None = None) -> int:
        return int(getattr(attr.cap, self._name))

    def __set__(self, attr: QPInitAttr, value: int) -> None:
        setattr(attr.cap, self._name, value)


class QPInitAttr(PyverbsObject):
    """What a queue pair is made with. With SQ_SIG_ALL, each work request ends with a completion."""

    def __init__(
        self,
        qp_type: int = ibv_qp_type.IBV_QPT_UD,
        qp_context: object = None,
        scq: CompletionSource | None = None,
        rcq: CompletionSource | None = None,
        srq: SRQ | None = None,
        cap: QPCap | None = None,
        sq_sig_all: int = 1,
    ) -> None:
        super().__init__()
        self.qp_type = qp_type
        self.qp_context = qp_context
        self.send_cq = scq
        self.recv_cq = rcq
        self.srq = srq
        self.cap = QPCap(*(cap or QPCap()).sizes)
        self.sq_sig_all = sq_sig_all
        self.pd: PD | None = None
        self.xrcd: XRCD | None = None
        self.rdd: RDD | None = None

    max_send_wr = _Size()
    max_recv_wr = _Size()
    max_send_sge = _Size()
    max_recv_sge = _Size()
    max_inline_data = _Size()

    def check_supported(self) -> None:
        """Raises PyverbsRDMAError if it asks for what there is not."""


class QPInitAttrEx(QPInitAttr):
    """Likewise, for a queue pair that is made of a context: the protection domain is among it."""

    def __init__(
        self,
        qp_type: int = ibv_qp_type.IBV_QPT_UD,
        qp_context: object = None,
        scq: CompletionSource | None = None,
        rcq: CompletionSource | None = None,
        srq: SRQ | None = None,
        cap: QPCap | None = None,
        sq_sig_all: int = 0,
        comp_mask: int = 0,
        pd: PD | None = None,
        xrcd: XRCD | None = None,
        create_flags: int = 0,
        max_tso_header: int = 0,
        source_qpn: int = 0,
        hash_conf: object = None,
        ind_table: object = None,
        send_ops_flags: int = 0,
        rdd: RDD | None = None,
    ) -> None:
        """CREATE_FLAGS, and what follows it up to IND_TABLE, is refused unless it says nothing. RDD is ours."""
        super().__init__(qp_type, qp_context, scq, rcq, srq, cap, sq_sig_all)
        self.comp_mask = comp_mask
        self.pd = pd
        self.xrcd = xrcd
        self.create_flags = create_flags
        self.max_tso_header = max_tso_header
        self.source_qpn = source_qpn
        self.hash_conf = hash_conf
        self.ind_table = ind_table
        self.send_ops_flags = send_ops_flags
        self.rdd = rdd

    def check_supported(self) -> None:
        """See `QPInitAttr`."""
        for name in ("create_flags", "max_tso_header", "source_qpn", "hash_conf", "ind_table"):
            if value := getattr(self, name):
                raise PyverbsRDMAError(f"Failed to create QP: {name} {value}, allowed none", errno.EOPNOTSUPP)
        if odd := self.send_ops_flags & ~_SEND_OPERATIONS:
            named = ", ".join(flag.name or "" for flag in ibv_qp_create_send_ops_flags if flag & odd)
            raise PyverbsRDMAError(f"Failed to create QP: operations {named or hex(odd)}", errno.EOPNOTSUPP)


class QPAttr(PyverbsObject):
    """What is set at a queue pair; a mask says which of it."""

    def __init__(
        self,
        qp_state: int = ibv_qp_state.IBV_QPS_INIT,
        cur_qp_state: int = ibv_qp_state.IBV_QPS_RESET,
        port_num: int = 1,
        path_mtu: int = ibv_mtu.IBV_MTU_1024,
    ) -> None:
        super().__init__()
        self.qp_state = qp_state
        self.cur_qp_state = cur_qp_state
        self.port_num = port_num
        self.path_mtu = path_mtu
        self.path_mig_state: int = ibv_mig_state.IBV_MIG_MIGRATED
        self.qkey = 0
        self.rq_psn = 0
        self.sq_psn = 0
        self.dest_qp_num = 0
        self.qp_access_flags = 0
        self.cap = QPCap(0, 0, 0, 0, 0)
        self.ah_attr = AHAttr()
        self.alt_ah_attr = AHAttr()
        self.pkey_index = 0
        self.alt_pkey_index = 0
        self.en_sqd_async_notify = 0
        self.sq_draining = 0
        self.max_rd_atomic = 0
        self.max_dest_rd_atomic = 0
        self.min_rnr_timer = 0
        self.timeout = 0
        self.retry_cnt = 0
        self.rnr_retry = 0
        self.alt_port_num = 0
        self.alt_timeout = 0
        self.rate_limit = 0

    @classmethod
    def of(cls, attributes: QpAttributes, state: int, sizes: QpCapabilities) -> QPAttr:
        """What the adapter has."""
        attr = cls(state, state, attributes.port, mtu_code(attributes.path_mtu))
        attr.qkey, attr.dest_qp_num = attributes.q_key, attributes.dest_qp
        attr.rq_psn, attr.sq_psn = attributes.rq_psn, attributes.sq_psn
        attr.qp_access_flags = int(attributes.access)
        attr.cap = QPCap.of(sizes)
        attr.ah_attr = AHAttr.of(attributes.path)
        attr.pkey_index = attributes.p_key_index
        attr.en_sqd_async_notify = int(attributes.sqd_notify)
        for name in ("max_rd_atomic", "max_dest_rd_atomic", "min_rnr_timer", "timeout", "retry_cnt", "rnr_retry"):
            setattr(attr, name, getattr(attributes, name))
        return attr

    def __str__(self) -> str:
        return "".join(f"{name.replace('_', ' '):22}: {value:<20}\n" for name, value in _numbers(self))


def _numbers(thing: object) -> list[tuple[str, int]]:
    return [(name, value) for name, value in vars(thing).items() if isinstance(value, int)]


_Mask = ibv_qp_attr_mask
_CHANGES: Final[tuple[tuple[int, str, Callable[[QPAttr], object]], ...]] = (
    (_Mask.IBV_QP_EN_SQD_ASYNC_NOTIFY, "sqd_notify", lambda attr: bool(attr.en_sqd_async_notify)),
    (_Mask.IBV_QP_ACCESS_FLAGS, "access", lambda attr: access_of(attr.qp_access_flags)),
    (_Mask.IBV_QP_PKEY_INDEX, "p_key_index", lambda attr: int(attr.pkey_index)),
    (_Mask.IBV_QP_PORT, "port", lambda attr: int(attr.port_num)),
    (_Mask.IBV_QP_QKEY, "q_key", lambda attr: int(attr.qkey)),
    (_Mask.IBV_QP_AV, "path", lambda attr: attr.ah_attr.vector()),
    (_Mask.IBV_QP_PATH_MTU, "path_mtu", lambda attr: _mtu_bytes(attr.path_mtu)),
    (_Mask.IBV_QP_TIMEOUT, "timeout", lambda attr: int(attr.timeout)),
    (_Mask.IBV_QP_RETRY_CNT, "retry_cnt", lambda attr: int(attr.retry_cnt)),
    (_Mask.IBV_QP_RNR_RETRY, "rnr_retry", lambda attr: int(attr.rnr_retry)),
    (_Mask.IBV_QP_RQ_PSN, "rq_psn", lambda attr: int(attr.rq_psn)),
    (_Mask.IBV_QP_SQ_PSN, "sq_psn", lambda attr: int(attr.sq_psn)),
    (_Mask.IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", lambda attr: int(attr.max_rd_atomic)),
    (_Mask.IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", lambda attr: int(attr.max_dest_rd_atomic)),
    (_Mask.IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", lambda attr: int(attr.min_rnr_timer)),
    (_Mask.IBV_QP_DEST_QPN, "dest_qp", lambda attr: int(attr.dest_qp_num)),
)
"""By bit of the mask, the adapter's attribute and what it becomes."""

_HANDLED: Final = (
    sum(bit for bit, _name, _value in _CHANGES)
    | _Mask.IBV_QP_STATE
    | _Mask.IBV_QP_CUR_STATE
    | _Mask.IBV_QP_PATH_MIG_STATE
)

_TO_INIT: Final = _Mask.IBV_QP_STATE | _Mask.IBV_QP_PKEY_INDEX | _Mask.IBV_QP_PORT
_TO_RTR: Final = (
    _Mask.IBV_QP_STATE | _Mask.IBV_QP_AV | _Mask.IBV_QP_PATH_MTU | _Mask.IBV_QP_DEST_QPN | _Mask.IBV_QP_RQ_PSN
)
_TO_RTS: Final = _Mask.IBV_QP_STATE | _Mask.IBV_QP_SQ_PSN
_RETRIES: Final = _Mask.IBV_QP_TIMEOUT | _Mask.IBV_QP_RETRY_CNT | _Mask.IBV_QP_RNR_RETRY

_RESPONDS: Final = _Mask.IBV_QP_MAX_DEST_RD_ATOMIC | _Mask.IBV_QP_MIN_RNR_TIMER
_REQUESTS: Final = _RETRIES | _Mask.IBV_QP_MAX_QP_RD_ATOMIC
_ACCESS: Final = _Mask.IBV_QP_ACCESS_FLAGS
_ONLY: Final = _Mask.IBV_QP_STATE

_STEPS: Final[dict[int, tuple[int, int, int]]] = {
    ibv_qp_type.IBV_QPT_RC: (_TO_INIT | _ACCESS, _TO_RTR | _RESPONDS, _TO_RTS | _REQUESTS),
    ibv_qp_type.IBV_QPT_UC: (_TO_INIT | _ACCESS, _TO_RTR, _TO_RTS),
    ibv_qp_type.IBV_QPT_UD: (_TO_INIT | _Mask.IBV_QP_QKEY, _ONLY, _TO_RTS),
    ibv_qp_type.IBV_QPT_XRC_SEND: (_TO_INIT | _ACCESS, _TO_RTR, _TO_RTS | _REQUESTS),
    ibv_qp_type.IBV_QPT_XRC_RECV: (_TO_INIT | _ACCESS, _TO_RTR | _RESPONDS, _TO_RTS | _Mask.IBV_QP_TIMEOUT),
    QPT_RD: (_ONLY | _ACCESS | _Mask.IBV_QP_QKEY, _ONLY | _Mask.IBV_QP_MIN_RNR_TIMER, _ONLY),
    QPT_EEC: (_TO_INIT, _TO_RTR | _Mask.IBV_QP_MAX_DEST_RD_ATOMIC, _TO_RTS | _REQUESTS),
}
"""By type, what the steps to INIT, RTR and RTS have to set."""


def mask_of_step(qp_type: int, state: int) -> int:
    """What has to be set when a queue pair of this type goes to a state from the one before."""
    return _STEPS[qp_type][state - ibv_qp_state.IBV_QPS_INIT]


def changes_of(attr: QPAttr, mask: int) -> QpChanges:
    """What MASK of `ibv_qp_attr_mask` says of ATTR, for the adapter; states are not among it.

    Raises:
        ValueError: the mask has bits that there is nothing for here, or a value that there is not.
    """
    if mask & ~_HANDLED:
        odd = [bit.name or hex(bit) for bit in ibv_qp_attr_mask if bit & mask & ~_HANDLED]
        raise ValueError(f"attribute mask {mask:#x}: there is nothing to be set for {', '.join(odd) or 'it'}")
    return cast(QpChanges, {name: value(attr) for bit, name, value in _CHANGES if mask & bit})


def _mtu_bytes(code: int) -> int:
    if code not in set(MTU):
        raise ValueError(f"path_mtu {code}: allowed codes 1..5")
    return mtu_bytes(MTU(code))
