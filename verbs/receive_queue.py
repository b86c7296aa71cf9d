"""Receive queues, a queue pair's own or shared by several (IBTA vol 1, 10.2.9)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from verbs.regions import ProtectionDomain
from verbs.work import ReceiveRequest

__all__ = ["QueueFullError", "ReceiveQueue", "SharedReceiveQueue"]


class QueueFullError(Exception):
    """A work request that finds no room in its queue."""


class ReceiveQueue:
    """Receive requests in the order in which they were posted."""

    is_shared = False

    def __init__(self, max_wr: int, max_sge: int) -> None:
        self.max_wr = max_wr
        self.max_sge = max_sge
        self._posted: deque[ReceiveRequest] = deque()

    def __len__(self) -> int:
        """Requests that nothing has taken yet."""
        return len(self._posted)

    def post(self, request: ReceiveRequest) -> None:
        """Adds a request.

        Raises:
            QueueFullError: there are `max_wr` already.
            ValueError: more pieces than `max_sge`.
        """
        if len(request.pieces) > self.max_sge:
            raise ValueError(f"receive request of {len(request.pieces)} pieces, allowed up to {self.max_sge}")
        if len(self._posted) >= self.max_wr:
            raise QueueFullError(f"receive queue is full with {self.max_wr} requests")
        self._posted.append(request)

    def take(self) -> ReceiveRequest | None:
        """The oldest request, which leaves the queue; None if there is none."""
        return self._posted.popleft() if self._posted else None

    def clear(self) -> None:
        """Forgets what was posted."""
        self._posted.clear()


class SharedReceiveQueue(ReceiveQueue):
    """A receive queue of several queue pairs of one protection domain.

    Attributes:
        limit: with fewer requests than this left, `on_limit` is called, once, and the limit is 0 again.
    """

    is_shared = True

    def __init__(self, pd: ProtectionDomain, max_wr: int, max_sge: int) -> None:
        super().__init__(max_wr, max_sge)
        self.pd = pd
        self.limit = 0
        self.on_limit: Callable[[], None] = lambda: None

    def take(self) -> ReceiveRequest | None:
        """See `ReceiveQueue`; tells when the limit is passed."""
        request = super().take()
        if self.limit and len(self) < self.limit:
            self.limit = 0
            self.on_limit()
        return request
