"""Queue pairs as all of them are."""

from __future__ import annotations

import errno
from typing import Final

from ironband.verbs.base import PyverbsCM, inc_rkey, refusals
from ironband.verbs.completion_queue import CompletionSource
from ironband.verbs.device import Context
from ironband.verbs.enums import ibv_qp_attr_mask, ibv_qp_state, ibv_qp_type, ibv_wr_opcode
from ironband.verbs.mr import MW, MWBind
from ironband.verbs.pd import PD
from ironband.verbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from ironband.verbs.qp_attributes import QPAttr, QPInitAttr, QPInitAttrEx, changes_of, mask_of_step
from ironband.verbs.wr import RecvWR, SendWR, post_all
from verbs.states import QpState, QpType

__all__ = ["QP"]

_STATES: Final = (ibv_qp_state.IBV_QPS_INIT, ibv_qp_state.IBV_QPS_RTR, ibv_qp_state.IBV_QPS_RTS)
_KINDS: Final = {int(kind) for kind in QpType}


class QP(PyverbsCM):
    """A queue pair.

    Attributes:
        pd: its protection domain.
        queue_pair: the adapter's.
    """

    def __init__(self, creator: PD | Context, init_attr: QPInitAttr, qp_attr: QPAttr | None = None) -> None:
        """Of a protection domain, or of a context if INIT_ATTR names one.

        With QP_ATTR, it goes on as far as that says all that is needed: to RTS if it is UD, else to INIT.
        """
        if isinstance(creator, Context):
            if not isinstance(init_attr, QPInitAttrEx) or init_attr.pd is None:
                raise PyverbsUserError("QP of a context: expected QPInitAttrEx with pd=")
            pd = init_attr.pd
        else:
            pd = creator
        if init_attr.send_cq is None or init_attr.recv_cq is None:
            raise PyverbsRDMAError("Failed to create QP: expected scq= and rcq=", errno.EINVAL)
        if init_attr.qp_type not in _KINDS:
            allowed = ", ".join(f"{kind.name} {int(kind)}" for kind in QpType)
            raise PyverbsRDMAError(
                f"Failed to create QP: type {int(init_attr.qp_type)}, allowed {allowed}", errno.EOPNOTSUPP
            )
        init_attr.check_supported()
        queues: dict[CompletionSource, None] = {init_attr.send_cq: None, init_attr.recv_cq: None}
        for queue in queues:
            if queue.context is not pd.context:
                raise PyverbsRDMAError("Failed to create QP: a completion queue is of another context", errno.EINVAL)
        if init_attr.srq is not None and init_attr.srq.pd.context is not pd.context:
            raise PyverbsRDMAError("Failed to create QP: the shared receive queue is of another context", errno.EINVAL)
        super().__init__(pd, *queues, *([] if init_attr.srq is None else [init_attr.srq]))
        self.pd = pd
        self._queues = tuple(queues)
        self._adapter = pd.context.adapter
        self._signals_all = bool(init_attr.sq_sig_all)
        self._init_attr = init_attr
        with refusals("Failed to create QP"):
            self.queue_pair = self._adapter.create_qp(
                QpType(init_attr.qp_type),
                pd.domain,
                init_attr.send_cq.queue,
                init_attr.recv_cq.queue,
                srq=None if init_attr.srq is None else init_attr.srq.queue,
                capabilities=init_attr.cap.capabilities,
            )
        pd.context.listen_to(self.qp_num)
        self.made()
        if qp_attr is not None:
            if self.qp_type == ibv_qp_type.IBV_QPT_UD:
                self.to_rts(qp_attr)
            else:
                self.to_init(qp_attr)

    def _end(self) -> None:
        self._adapter.destroy_qp(self.queue_pair)
        self._forget_completions()
        self.pd.context.forget(self.qp_num)

    @property
    def qp_num(self) -> int:
        """QPN."""
        return self.queue_pair.number

    @property
    def qp_type(self) -> int:
        """Of `ibv_qp_type`."""
        return ibv_qp_type(self.queue_pair.pair.kind)

    @property
    def qp_state(self) -> int:
        """Of `ibv_qp_state`, as it is."""
        return ibv_qp_state(self.queue_pair.state)

    # States.

    def modify(self, qp_attr: QPAttr, comp_mask: int) -> None:
        """Sets what COMP_MASK of `ibv_qp_attr_mask` says."""
        self._modify(qp_attr, comp_mask, "Failed to modify QP")

    def _modify(self, attr: QPAttr, mask: int, what: str) -> None:
        self.check_open()
        pair = self.queue_pair
        with refusals(what):
            if mask & ibv_qp_attr_mask.IBV_QP_CUR_STATE and attr.cur_qp_state != pair.state:
                raise ValueError(f"it is in {pair.state.name}, not in {QpState(attr.cur_qp_state).name}")
            to = QpState(attr.qp_state) if mask & ibv_qp_attr_mask.IBV_QP_STATE else None
            pair.modify(to, **changes_of(attr, mask))
        if to is QpState.RESET:
            self._forget_completions()

    def _forget_completions(self) -> None:
        for queue in self._queues:
            queue.forget(self.qp_num)

    def to_init(self, qp_attr: QPAttr) -> None:
        """RESET to INIT."""
        self._go(qp_attr, 0)

    def to_rtr(self, qp_attr: QPAttr) -> None:
        """To RTR, by way of INIT unless it is there."""
        self._go(qp_attr, 1)

    def to_rts(self, qp_attr: QPAttr) -> None:
        """To RTS, by way of INIT and RTR unless it is there."""
        self._go(qp_attr, 2)

    def _go(self, attr: QPAttr, last: int) -> None:
        before = self.qp_state
        first = _STATES.index(before) + 1 if before in _STATES[:last] else 0
        for state in _STATES[first : last + 1]:
            attr.qp_state = state
            name = QpState(state).name
            self._modify(attr, mask_of_step(self.qp_type, state), f"Failed to modify QP state to {name}")

    def query(self, attr_mask: int = 0) -> tuple[QPAttr, QPInitAttr]:
        """All attributes as they are, whatever ATTR_MASK says, and what it was made with."""
        self.check_open()
        pair = self.queue_pair
        return QPAttr.of(pair.query(), self.qp_state, pair.capabilities), self._init_attr

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

    def __str__(self) -> str:
        shown = (
            ("QP type", QpType(self.qp_type).name),
            ("  number", self.qp_num),
            ("  state", QpState(self.qp_state).name),
        )
        return "".join(f"{name:22}: {value:<20}\n" for name, value in shown)
