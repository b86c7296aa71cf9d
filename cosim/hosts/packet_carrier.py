"""What carries packets of a caller's own making in a run that is stepped: posted as they are, kept as they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Final

from cosim.stimulus.actors import Shared, drawn_until
from wire.stimulus import Delivery, Post, Taking

__all__ = ["PacketCarrier"]

_STEP_CYCLES: Final = 1_000
"""How far the fabric runs at the most before its caller is asked again; no engine has a shorter window."""


class PacketCarrier:
    """Posts packets at hosts and keeps what they get. It is a leader (`cosim.stimulus.actors.Leader`).

    Attributes:
        arrived: by node index, packets that were delivered and not taken from here, in their order.
        reach: the cycle up to which posts are known.
        posted: what was posted.
    """

    def __init__(self, slots: Mapping[int, Collection[int]], *, consume: Callable[[int], bool]) -> None:
        """SLOTS are those that belong to the caller, by node index: management has the others.

        CONSUME is called before each step with the cycle below which all is over; when it is false, the run ends.
        """
        self.arrived: dict[int, deque[Delivery]] = {node: deque() for node in slots}
        self.reach = 0
        self.posted: Shared[Post] = Shared()
        self._slots = slots
        self._consume = consume
        self._finished = 0
        self._queue = self.posted.queue()

    def post(self, node: int, slot: int, data: bytes) -> int:
        """Posts a packet, LRH..ICRC; from which cycle on its adapter may take it."""
        cycle = self._finished + 1
        self.posted.append(Post(cycle, node, slot, data))
        return cycle

    def until(self, finished: int) -> int:
        """How far the fabric may run, see `cosim.stimulus.run_spec.Actor`."""
        self._finished = finished
        self.reach = finished + _STEP_CYCLES if self._consume(finished) else finished
        return self.reach

    def posts_until(self, cycle: int) -> list[Post]:
        """Packets for CYCLE or before that were not given yet."""
        return drawn_until(self._queue, cycle)

    def delivered(self, delivery: Delivery) -> None:
        """Keeps a packet."""
        if delivery.slot in self._slots.get(delivery.node, ()):
            self.arrived[delivery.node].append(delivery)

    def taken(self, taking: Taking) -> None:
        """Nobody asks."""
