"""Whose turn it is to send, and who wants to be woken when."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Mapping

from verbs.frame import Outgoing
from verbs.queue_pair import QueuePair

__all__ = ["Turns"]


class Turns:
    """Queue pairs that may have something to send, by port, each of them once, and their timers."""

    def __init__(self, ports: int, pairs: Mapping[int, QueuePair]) -> None:
        """`pairs` are those that there are, by number."""
        self._pairs = pairs
        self._ready: tuple[deque[QueuePair], ...] = tuple(deque() for _ in range(ports))
        self._is_ready: set[int] = set()
        self._timers: list[tuple[int, int, int]] = []
        """Cycle, order and number of queue pairs that want to be woken, then or later."""
        self._order = 0
        """Of the next timer: of those that end in one cycle, the one that began first is the first."""
        self._timer_of: dict[int, int] = {}
        """For these queue pairs, the one of their timers that counts."""

    @property
    def are_due(self) -> bool:
        """True if somebody may have something to send."""
        return bool(self._is_ready)

    def add(self, queue_pair: QueuePair) -> None:
        """It may have something to send."""
        number = queue_pair.number
        if number not in self._is_ready:
            self._is_ready.add(number)
            self._ready[queue_pair.pair.attributes.port - 1].append(queue_pair)

    def next_packet(
        self, port: int, blocked: Collection[int], packet_of: Callable[[QueuePair], Outgoing | None]
    ) -> Outgoing | None:
        """What the first one has that has something: those with an SL in `blocked` keep their turns."""
        ready, waiting = self._ready[port - 1], []
        found = None
        while ready and found is None:
            queue_pair = ready.popleft()
            if blocked and queue_pair.sl in blocked:
                waiting.append(queue_pair)
                continue
            self._is_ready.discard(queue_pair.number)
            if queue_pair.number in self._pairs:
                found = packet_of(queue_pair)
                self.watch(queue_pair)
        ready.extendleft(reversed(waiting))
        return found

    def watch(self, queue_pair: QueuePair) -> None:
        """Remembers when to wake a queue pair.

        Time-outs are put off with every answer, so one that is remembered stays until its time, and is looked at then.
        For that, whoever wants to be woken earlier than before has to come here: after `add` it does, in its turn.
        """
        number, when = queue_pair.number, queue_pair.wake
        if when is not None and self._timer_of.get(number, when + 1) > when:
            self._timer_of[number] = when
            heapq.heappush(self._timers, (when, self._order, number))
            self._order += 1

    def expire(self, now: int) -> None:
        """Wakes those whose time has come."""
        while self.have_expired(now):
            _when, _order, number = heapq.heappop(self._timers)
            del self._timer_of[number]
            self._pairs[number].expire(now)

    def have_expired(self, now: int) -> bool:
        """True if somebody's time has come.

        Not before the first timer's cycle: since `watch` hears of all that is earlier, a timer may be too early for its
        queue pair, but none is too late.
        """
        if not self._timers or self._timers[0][0] > now:
            return False
        wake = self.wake
        return wake is not None and wake <= now

    @property
    def wake(self) -> int | None:
        """The cycle in which the first queue pair wants to be woken."""
        while self._timers:
            when, _order, number = self._timers[0]
            queue_pair = self._pairs.get(number)
            if self._timer_of.get(number) == when and queue_pair is not None and queue_pair.wake == when:
                return when
            heapq.heappop(self._timers)
            if self._timer_of.get(number) == when:
                del self._timer_of[number]
                if queue_pair is not None:
                    self.watch(queue_pair)
        return None

    @property
    def waiting(self) -> QueuePair | None:
        """That queue pair."""
        return None if self.wake is None else self._pairs[self._timers[0][2]]
