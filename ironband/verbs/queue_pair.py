"""Queue pairs as all of them are."""

from __future__ import annotations

import errno
from typing import Final

from ironband.verbs.base import inc_rkey, refusals
from ironband.verbs.device import Context
from ironband.verbs.enums import ibv_wr_opcode
from ironband.verbs.mr import MW, MWBind
from ironband.verbs.pd import PD
from ironband.verbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from ironband.verbs.qp_attributes import QPAttr, QPInitAttr
from ironband.verbs.stateful_pair import StatefulPair
from ironband.verbs.wr import RecvWR, SendWR, post_all
from verbs.queue_pair import QueuePair
from verbs.states import QpType

__all__ = ["QP"]

_CQS: Final = {
    QpType.RC: (True, True),
    QpType.UC: (True, True),
    QpType.UD: (True, True),
    QpType.XRC_SEND: (True, False),
    QpType.XRC_RECV: (False, False),
    QpType.RD: (True, True),
}
"""By type, whether there has to be a completion queue of requests sent, and one of those received."""


class QP(StatefulPair):
    """A queue pair.

    Attributes:
        pd: its protection domain; None of one that only receives for XRC.
    """

    def __init__(self, creator: PD | Context, init_attr: QPInitAttr, qp_attr: QPAttr | None = None) -> None:
        """Of a protection domain, or of a context if INIT_ATTR names the domain.

        With QP_ATTR, it goes on as far as that says all that is needed: to RTS if it is UD, else to INIT.
        """
        init_attr.check_supported()
        kind = _kind(init_attr.qp_type)
        self.pd = _domain(kind, creator, init_attr)
        context = creator if isinstance(creator, Context) else creator.context
        queues = [init_attr.send_cq, init_attr.recv_cq]
        for queue, name, needed in zip(queues, ("scq", "rcq"), _CQS[kind], strict=True):
            if needed and queue is None:
                raise PyverbsRDMAError(f"Failed to create QP: {kind.name} without {name}=", errno.EINVAL)
        self._queues = [queue for queue in dict.fromkeys(queues) if queue is not None]
        owners = [self.pd, *self._queues, init_attr.srq, init_attr.xrcd, init_attr.rdd]
        for owner in owners:
            if owner is not None and owner.context is not context:
                what = type(owner).__name__
                raise PyverbsRDMAError(f"Failed to create QP: its {what} is of another context", errno.EINVAL)
        super().__init__(context, *(owner for owner in owners if owner is not None))
        self._signals_all = bool(init_attr.sq_sig_all)
        self._init_attr = init_attr
        with refusals("Failed to create QP"):
            self.has(self._create(kind, init_attr))
        if qp_attr is not None:
            if kind is QpType.UD:
                self.to_rts(qp_attr)
            else:
                self.to_init(qp_attr)

    def _create(self, kind: QpType, attr: QPInitAttr) -> QueuePair:
        adapter = self.context.adapter
        if attr.xrcd is not None and kind is QpType.XRC_RECV:
            return adapter.create_xrc_target(attr.xrcd.domain)
        if self.pd is None or attr.send_cq is None:
            raise ValueError(f"{kind.name}: expected a protection domain and a completion queue")
        return adapter.create_qp(
            kind,
            self.pd.domain,
            attr.send_cq.queue,
            (attr.recv_cq or attr.send_cq).queue,
            srq=None if attr.srq is None else attr.srq.queue,
            capabilities=attr.cap.capabilities,
            rdd=None if attr.rdd is None else attr.rdd.domain,
        )

    def _clear(self) -> None:
        for queue in self._queues:
            queue.forget(self.qp_num)

    def query(self, attr_mask: int = 0) -> tuple[QPAttr, QPInitAttr]:
        """All attributes as they are, whatever ATTR_MASK says, and what it was made with."""
        return self.query_attr(), self._init_attr

    def query_data_in_order(self, op: int, flags: int = 0) -> int:
        """Whether data is stored in order: 1, as it always is."""
        return 1

    # Work.

    def post_send(self, wr: SendWR, bad_wr: SendWR | None = None) -> None:
        """Posts a work request and those that follow it; BAD_WR becomes the first that is refused."""
        self.check_open()
        post_all("Failed to post send", wr, bad_wr, self._send)

    def _send(self, wr: SendWR) -> None:
        self.queue_pair.post_send(wr.request(always_signaled=self._signals_all))

    def post_recv(self, wr: RecvWR, bad_wr: RecvWR | None = None) -> None:
        """Likewise, receive requests."""
        self.check_open()
        post_all("Failed to post recv", wr, bad_wr, lambda one: self.queue_pair.post_receive(one.request()))

    def bind_mw(self, mw: MW, mw_bind: MWBind) -> None:
        """Binds a window of type 1."""
        if mw.type != 1:
            raise PyverbsRDMAError(f"Failed to Bind MW: it is of type {mw.type}, allowed 1", errno.EINVAL)
        wr = SendWR(mw_bind.wr_id, ibv_wr_opcode.IBV_WR_BIND_MW, send_flags=mw_bind.send_flags)
        wr.set_bind_wr(mw, mw_bind.info)
        post_all("Failed to Bind MW", wr, None, self._send)
        mw.next_key = inc_rkey(mw.rkey)


def _kind(number: int) -> QpType:
    try:
        kind = QpType(number)
    except ValueError:
        kind = QpType.EEC
    if kind not in _CQS:
        allowed = ", ".join(f"{kind.name} {int(kind)}" for kind in _CQS)
        raise PyverbsRDMAError(f"Failed to create QP: type {int(number)}, allowed {allowed}", errno.EOPNOTSUPP)
    return kind


def _domain(kind: QpType, creator: PD | Context, attr: QPInitAttr) -> PD | None:
    """The protection domain of a queue pair; None of one that only receives for XRC, which has a domain of XRC."""
    if kind is QpType.XRC_RECV:
        if attr.xrcd is None:
            raise PyverbsUserError("QP that receives for XRC: expected QPInitAttrEx with xrcd=")
        return None
    pd = attr.pd if isinstance(creator, Context) else creator
    if pd is None:
        raise PyverbsUserError("QP of a context: expected QPInitAttrEx with pd=")
    return pd
