"""Shared receive queues."""

from __future__ import annotations

from ironband.verbs.base import PyverbsCM, PyverbsObject, refusals
from ironband.verbs.enums import ibv_srq_attr_mask
from ironband.verbs.pd import PD
from ironband.verbs.pyverbs_error import PyverbsUserError
from ironband.verbs.wr import RecvWR, post_all

__all__ = ["SRQ", "SrqAttr", "SrqInitAttr"]


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


class SRQ(PyverbsCM):
    """A shared receive queue.

    Attributes:
        queue: the adapter's.
    """

    def __init__(self, creator: PD, attr: SrqInitAttr) -> None:
        if not isinstance(creator, PD):
            raise PyverbsUserError(f"SRQ of {type(creator).__name__}: expected PD")
        super().__init__(creator)
        self.pd = creator
        with refusals("Failed to create SRQ"):
            self.queue = creator.context.adapter.create_srq(creator.domain, attr.max_wr, attr.max_sge)
        creator.context.listen_to(self.queue)
        self.made()

    def _end(self) -> None:
        self.pd.context.adapter.destroy_srq(self.queue)
        self.pd.context.forget(self.queue)

    def post_recv(self, wr: RecvWR, bad_wr: RecvWR | None = None) -> None:
        """Posts a work request and those that follow it; BAD_WR becomes the first that is refused."""
        post_all("Failed to post to SRQ", wr, bad_wr, lambda one: self.queue.post(one.request()))

    def modify(self, attr: SrqAttr, comp_mask: int) -> None:
        """Sets what COMP_MASK of `ibv_srq_attr_mask` says: the size, the limit, or both."""
        with refusals("Failed to modify SRQ"):
            self.pd.context.adapter.modify_srq(
                self.queue,
                max_wr=attr.max_wr if comp_mask & ibv_srq_attr_mask.IBV_SRQ_MAX_WR else None,
                limit=attr.srq_limit if comp_mask & ibv_srq_attr_mask.IBV_SRQ_LIMIT else None,
            )

    def query(self) -> SrqAttr:
        """Sizes and limit as they are."""
        return SrqAttr(self.queue.max_wr, self.queue.max_sge, self.queue.limit)
