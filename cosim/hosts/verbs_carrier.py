"""What carries the packets of hosts' transports in any simulation: an actor (`cosim.stimulus.run_spec.Actor`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cosim.stimulus.actors import Shared, drawn_until
from verbs.hosts import REACTION_CYCLES, VerbsHosts
from wire.stimulus import Delivery, Post, Taking

__all__ = ["VerbsCarrier"]

_IDLE_CYCLES: Final = 1_000
"""How far the fabric runs while nothing happens that transports know of; no engine has a shorter window."""


class VerbsCarrier:
    """Carries transports, and lets consumers do their part between the steps.

    Attributes:
        hosts: the transports; add ports to it.
        reach: the cycle up to which posts are known.
        posted: what they post.
    """

    def __init__(self, *, consume: Callable[[int], bool]) -> None:
        """CONSUME is called before each step with the cycle below which all is over; when it is false, the run ends."""
        self.posted: Shared[Post] = Shared()
        self.hosts = VerbsHosts(self.posted.append)
        self.reach = 0
        self._queue = self.posted.queue()
        self._consume = consume

    def until(self, finished: int) -> int:
        """How far the fabric may run, see `cosim.stimulus.run_spec.Actor`."""
        self.hosts.pass_time(finished)
        goes_on = self._consume(finished)
        self.hosts.send(finished)
        if not goes_on:
            self.reach = finished
            return finished
        step = REACTION_CYCLES - 1
        if finished - self.hosts.active > _IDLE_CYCLES and not self.hosts.waits:
            wake = self.hosts.wake
            step = _IDLE_CYCLES if wake is None else min(_IDLE_CYCLES, max(wake - finished, step))
        self.reach = finished + step
        return self.reach

    def posts_until(self, cycle: int) -> list[Post]:
        """Packets for CYCLE or before that were not given yet."""
        return drawn_until(self._queue, cycle)

    def delivered(self, delivery: Delivery) -> None:
        """Hands a packet to the transport that it is for."""
        self.hosts.delivered(delivery)

    def taken(self, taking: Taking) -> None:
        """Tells the transport whose packet it was."""
        self.hosts.taken(taking)
