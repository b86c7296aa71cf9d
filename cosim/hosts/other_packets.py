"""Packets of flows without a transport that hosts with one send, too: whose packet an adapter has taken."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from wire.stimulus import Post, Taking

__all__ = ["OtherPackets", "drawn"]


class OtherPackets:
    """Knows of each slot in which order packets wait there: by cycle, and before those of a transport."""

    def __init__(self, others: Iterator[Post | None], posted: deque[Post]) -> None:
        """`others` are the packets without a transport, by cycle, None as long as none is known.

        `posted` are those with one, which are taken out.
        """
        self._others = others
        self._next = next(others, None)
        self._posted = posted
        self._waiting: defaultdict[tuple[int, int], deque[bool]] = defaultdict(deque)
        """By node and slot, of each packet whether it is a transport's."""

    def is_of_transport(self, taking: Taking) -> bool:
        """Whether what an adapter takes is a packet of a transport; to be asked of each once, in their order.

        Management's, on VL15, are known to nobody here.
        """
        if self._next is None:
            self._next = next(self._others, None)
        while (other := self._next) is not None and other.cycle <= taking.cycle:
            self._add_posted(other.cycle - 1)
            self._waiting[other.node, other.slot].append(False)
            self._next = next(self._others, None)
        self._add_posted(taking.cycle)
        waiting = self._waiting[taking.node, taking.slot]
        return bool(waiting) and waiting.popleft()

    def _add_posted(self, cycle: int) -> None:
        while self._posted and self._posted[0].cycle <= cycle:
            post = self._posted.popleft()
            self._waiting[post.node, post.slot].append(True)


def drawn(queue: deque[Post]) -> Iterator[Post | None]:
    """The entries of a queue, which leave it; None whenever it is empty."""
    while True:
        yield queue.popleft() if queue else None
