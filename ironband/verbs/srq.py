"""Shared receive queues."""

from __future__ import annotations

import errno
from typing import Final

from ironband.verbs.base import PyverbsCM, PyverbsObject, refusals
from ironband.verbs.completion_queue import CompletionSource
from ironband.verbs.device import Context
from ironband.verbs.enums import ibv_srq_attr_mask, ibv_srq_type
from ironband.verbs.pd import PD
from ironband.verbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from ironband.verbs.wr import RecvWR, post_all
from ironband.verbs.xrcd import XRCD
from verbs.receive_queue import SharedReceiveQueue

__all__ = ["SRQ", "SrqAttr", "SrqInitAttr", "SrqInitAttrEx"]

_BASIC: Final = ibv_srq_type.IBV_SRQT_BASIC


class SrqAttr(PyverbsObject):
    """Sizes and limit."""

    def __init__(self, max_wr: int = 100, max_sge: int = 1, srq_limit: int = 0) -> None:
        super().__init__()
        self.max_wr = max_wr
        self.max_sge = max_sge
        self.srq_limit = srq_limit


class SrqInitAttr(SrqAttr):
    """Those that a queue begins with."""

    def __init__(self, attr: SrqAttr | None = None) -> None:
        given = attr or SrqAttr()
        super().__init__(given.max_wr, given.max_sge, given.srq_limit)


class SrqInitAttrEx(SrqAttr):
    """Those that a queue of a context begins with, and what it belongs to."""

    def __init__(self, max_wr: int = 100, max_sge: int = 1, srq_limit: int = 0) -> None:
        super().__init__(max_wr, max_sge, srq_limit)
        self.comp_mask = 0
        self.srq_type: int = ibv_srq_type.IBV_SRQT_BASIC
        self.pd: PD | None = None
        self.xrcd: XRCD | None = None
        self.cq: CompletionSource | None = None
        self.max_num_tags = 0
        self.max_ops = 0


class SRQ(PyverbsCM):
    """A shared receive queue.

    Attributes:
        context: whose it is.
        pd: its protection domain.
        queue: the adapter's.
    """

    def __init__(self, creator: PD | Context, attr: SrqAttr) -> None:
        """Of a protection domain, or of a context with SrqInitAttrEx, which names the domain, and that of XRC and the
        completion queue if it is for XRC.
        """
        pd, owners = creator, []
        if isinstance(attr, SrqInitAttrEx):
            pd = attr.pd if isinstance(creator, Context) and attr.pd is not None else creator
            owners = [owner for owner in (attr.xrcd, attr.cq) if owner is not None]
        if not isinstance(pd, PD):
            raise PyverbsUserError(
                f"SRQ of {type(creator).__name__}: expected PD, or Context and SrqInitAttrEx with pd"
            )
        if any(owner.context is not pd.context for owner in owners):
            raise PyverbsUserError("SRQ for XRC: expected XRCD and CQ of the same context as PD")
        super().__init__(pd, *owners)
        self.pd = pd
        self.context = pd.context
        with refusals("Failed to create SRQ"):
            self.queue = self._create(attr)
        self.context.listen_to(self.queue)
        self.made()

    def _create(self, attr: SrqAttr) -> SharedReceiveQueue:
        adapter, domain, kind = self.context.adapter, self.pd.domain, getattr(attr, "srq_type", _BASIC)
        if kind == _BASIC:
            return adapter.create_srq(domain, int(attr.max_wr), int(attr.max_sge))
        if kind != ibv_srq_type.IBV_SRQT_XRC:
            raise PyverbsRDMAError(f"Failed to create SRQ: srq_type {kind}, allowed 0, 1", errno.EOPNOTSUPP)
        if not isinstance(attr, SrqInitAttrEx) or attr.xrcd is None or attr.cq is None:
            raise ValueError("one for XRC: expected xrcd and cq")
        return adapter.create_xrc_srq(domain, attr.xrcd.domain, attr.cq.queue, attr.max_wr, attr.max_sge)

    def get_srq_num(self) -> int:
        """What senders of XRC call it."""
        if not self.queue.number:
            raise PyverbsRDMAError("Failed to retrieve SRQ number: it is not for XRC", errno.EOPNOTSUPP)
        return self.queue.number

    def _end(self) -> None:
        self.context.adapter.destroy_srq(self.queue)
        self.context.forget(self.queue)

    def post_recv(self, wr: RecvWR, bad_wr: RecvWR | None = None) -> None:
        """Posts a work request and those that follow it; BAD_WR becomes the first that is refused."""
        post_all("Failed to post to SRQ", wr, bad_wr, lambda one: self.queue.post(one.request()))

    def modify(self, attr: SrqAttr, comp_mask: int) -> None:
        """Sets what COMP_MASK of `ibv_srq_attr_mask` says: the size, the limit, or both."""
        with refusals("Failed to modify SRQ"):
            self.context.adapter.modify_srq(
                self.queue,
                max_wr=attr.max_wr if comp_mask & ibv_srq_attr_mask.IBV_SRQ_MAX_WR else None,
                limit=attr.srq_limit if comp_mask & ibv_srq_attr_mask.IBV_SRQ_LIMIT else None,
            )

    def query(self) -> SrqAttr:
        """Sizes and limit as they are."""
        return SrqAttr(self.queue.max_wr, self.queue.max_sge, self.queue.limit)
