"""Events of the trace, as they happen."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from cosim.drivers.mailbox import Mailbox, within
from wire.trace import Kind, Record

__all__ = ["TraceMonitor"]


class TraceMonitor:
    """The trace's records of some kinds and sources, from the monitor's making on.

    Attributes:
        seen: records that were not received yet, oldest first; what is here is up to date after `recv` or `poll`.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        poll: Callable[[], None],
        kinds: Iterable[Kind] | None,
        sources: Iterable[int] | None,
    ) -> None:
        self.seen: deque[Record] = deque()
        self.poll = poll
        self._mailbox = mailbox
        self._kinds = None if kinds is None else frozenset(kinds)
        self._sources = None if sources is None else frozenset(sources)

    def take(self, record: Record) -> None:
        """Take a record of the trace, if it is one of ours."""
        if (self._kinds is None or record.kind in self._kinds) and (
            self._sources is None or record.source in self._sources
        ):
            self.seen.append(record)

    async def recv(self, timeout_cycles: int | None = None) -> Record:
        """Wait for the next record.

        Raises:
            TimeoutError: none came in so many cycles.
        """
        return await within(timeout_cycles, self._next(), "record")

    async def _next(self) -> Record:
        await self._mailbox.until(self._any, "records")
        return self.seen.popleft()

    def _any(self) -> bool:
        self.poll()
        return bool(self.seen)
