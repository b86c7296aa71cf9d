"""Links that come and go: how often each was lost lately."""

from __future__ import annotations

from collections import deque

from sm.subnet import End, Link

__all__ = ["LinkHistory"]


class LinkHistory:
    """The cycles in which links were lost. A link flaps while `limit` losses are within the last `period` cycles."""

    def __init__(self, limit: int, period: int) -> None:
        self._limit = limit
        self._period = period
        self._losses: dict[tuple[End, End], deque[int]] = {}

    def lost(self, link: Link, now: int) -> int:
        """Notes a loss; how many there were within the period, this one included."""
        losses = self._losses.setdefault((link.a, link.b), deque())
        losses.append(now)
        return self._recent(losses, now)

    def flaps(self, link: Link, now: int) -> bool:
        """Whether the link flaps."""
        losses = self._losses.get((link.a, link.b))
        return losses is not None and self._recent(losses, now) >= self._limit

    def _recent(self, losses: deque[int], now: int) -> int:
        while losses and losses[0] <= now - self._period:
            losses.popleft()
        return len(losses)
