"""Receive queues, a queue pair's own or shared by several (IBTA vol 1, 10.2.9)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from verbs.regions import ProtectionDomain
from verbs.work import ReceiveRequest

__all__ = ["PostedReceives", "QueueFullError", "ReceiveQueue", "SharedReceiveQueue"]


class QueueFullError(Exception):
    """A work request that finds no room in its queue."""


class PostedReceives(Protocol):
    """Where a receive queue keeps what was posted: here, or in a ring that a program fills by itself."""

    def __len__(self) -> int: ...
    def append(self, request: ReceiveRequest, /) -> None:
        """Adds a request, for which there is room."""

    def popleft(self) -> ReceiveRequest:
        """Takes the oldest request, which there is."""

    def clear(self) -> None:
        """Forgets all of them."""


class ReceiveQueue:
    """Receive requests in the order in which they were posted."""

    is_shared = False

    def __init__(self, max_wr: int, max_sge: int, posted: PostedReceives | None = None) -> None:
        self.max_wr = max_wr
        self.max_sge = max_sge
        self._posted: PostedReceives = deque[ReceiveRequest]() if posted is None else posted

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
        return self._posted.popleft() if len(self._posted) else None

    def clear(self) -> None:
        """Forgets what was posted."""
        self._posted.clear()


class SharedReceiveQueue(ReceiveQueue):
    """A receive queue of several queue pairs of one protection domain.

    Attributes:
        number: of XRC, the one by which senders name it.
        limit: with fewer requests than this left, `on_limit` is called, once, and the limit is 0 again.
    """

    is_shared = True

    def __init__(self, pd: ProtectionDomain, max_wr: int, max_sge: int, posted: PostedReceives | None = None) -> None:
        super().__init__(max_wr, max_sge, posted)
        self.pd = pd
        self.number = 0
        self.limit = 0
        self.on_limit: Callable[[], None] = lambda: None

    def modify(
        self, *, max_wr: int | None = None, limit: int | None = None, posted: PostedReceives | None = None
    ) -> None:
        """Sets its size, its limit, or both. `posted`, if given, have what was posted already.

        Raises:
            ValueError: a size below what is posted, or a limit above the size.
        """
        size, held = self.max_wr if max_wr is None else max_wr, len(self._posted)
        if size < max(1, held):
            raise ValueError(f"shared receive queue of {size}: {held} are posted, allowed {max(1, held)} and above")
        if not 0 <= (self.limit if limit is None else limit) <= size:
            raise ValueError(f"limit {self.limit if limit is None else limit}: allowed 0..{size}")
        self.max_wr = size
        if limit is not None:
            self.limit = limit
        if posted is not None:
            self._posted = posted

    def take(self) -> ReceiveRequest | None:
        """See `ReceiveQueue`; tells when the limit is passed."""
        request = super().take()
        if self.limit and len(self) < self.limit:
            self.limit = 0
            self.on_limit()
        return request
