"""Actors together, and the same again: several as one, and what one did in another run."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from cosim.stimulus.run_spec import Actor
from wire.stimulus import Control, Delivery, Post, Taking

__all__ = ["ActorGroup", "Leader", "Replay", "Shared", "drawn_until"]

_Entry = TypeVar("_Entry", Control, Post)


class Shared(Generic[_Entry]):
    """Entries for several runs, each kept until all of them have drawn it."""

    def __init__(self) -> None:
        self._queues: list[deque[_Entry]] = []

    def queue(self) -> deque[_Entry]:
        """The entries from now on, for one run, which takes them out."""
        self._queues.append(deque())
        return self._queues[-1]

    def append(self, entry: _Entry) -> None:
        """One more entry."""
        for queue in self._queues:
            queue.append(entry)


class Leader(Actor, Protocol):
    """An actor whose posts are known up to a cycle."""

    @property
    def reach(self) -> int:
        """That cycle."""
        ...

    @property
    def posted(self) -> Shared[Post]:
        """What it posts."""
        ...


class Replay:
    """An actor that posts what a leader posts in another run, which is ahead of this one or as far."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._queue = leader.posted.queue()

    def until(self, finished: int) -> int:
        """As far as the other run may go by now."""
        return max(finished, self._leader.reach)

    def posts_until(self, cycle: int) -> list[Post]:
        """Packets for CYCLE or before that were not given yet."""
        return drawn_until(self._queue, cycle)

    def delivered(self, delivery: Delivery) -> None:
        """The other run's deliveries count."""

    def taken(self, taking: Taking) -> None:
        """So does what is taken there."""


class ActorGroup:
    """Several actors as one; the run ends when all of them have ended it."""

    def __init__(self, actors: Sequence[Actor]) -> None:
        self._actors = actors

    def until(self, finished: int) -> int:
        """The least limit of those that still run."""
        reaches = [reach for actor in self._actors if (reach := actor.until(finished)) > finished]
        return min(reaches, default=finished)

    def posts_until(self, cycle: int) -> Iterable[Post]:
        """Packets of all of them for CYCLE or before that were not given yet."""
        drawn = [posts for actor in self._actors if (posts := list(actor.posts_until(cycle)))]
        if len(drawn) > 1:
            return heapq.merge(*drawn, key=lambda post: post.cycle)
        return drawn[0] if drawn else ()

    def delivered(self, delivery: Delivery) -> None:
        """All of them get it."""
        for actor in self._actors:
            actor.delivered(delivery)

    def taken(self, taking: Taking) -> None:
        """All of them hear it."""
        for actor in self._actors:
            actor.taken(taking)


def drawn_until(queue: deque[Post], cycle: int) -> list[Post]:
    """Packets of a queue for CYCLE or before, which leave it. What is put there later waits for the next call.

    Actors put packets there when they are asked how far a fabric may run or hear of a delivery, and an engine does
    neither while it takes their packets.
    """
    drawn = []
    while queue and queue[0].cycle <= cycle:
        drawn.append(queue.popleft())
    return drawn
