"""Transports of hosts in a fabric: what their adapters have to send becomes posts, and what is delivered is theirs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from verbs.adapter import Adapter
from verbs.queue_pair import QueuePair
from wire.codes import SERVICE_LEVELS
from wire.crc import ICRC_BYTES
from wire.packet import WORD_BYTES
from wire.stimulus import Delivery, Post, Taking, WrongKey

__all__ = ["AHEAD_WORDS", "REACTION_CYCLES", "VerbsHosts", "VerbsPort"]

REACTION_CYCLES: Final = 250
"""From the last word of a packet, or a doorbell, to the cycle in which the adapter offers what it sends: 1 us at SDR.

It is also how far a simulation may run without asking its adapters.
"""

AHEAD_WORDS: Final = 2 * REACTION_CYCLES
"""What waits in a slot, at least, so that a link is not idle before the adapter hears that there is room again."""

_ALL_SLS: Final = range(SERVICE_LEVELS)
_VL_BITS: Final = 4
_LVER: Final = 0x0F


@dataclass(eq=False, slots=True)
class VerbsPort:
    """A port of an adapter that has a transport.

    Attributes:
        node: index of the fabric's node that the port is.
        adapter: the transport.
        number: the port's, in its adapter.
        vls: data VLs of the node.
        sl_to_vl: the VL of each service level; packets of one that the node does not have are dropped.
        packets, bytes: that it has sent.
    """

    node: int
    adapter: Adapter
    number: int
    vls: int
    sl_to_vl: Sequence[int]
    packets: int = field(default=0, init=False)
    bytes: int = field(default=0, init=False)
    _waiting: list[deque[int]] = field(init=False)
    """By slot, words of the packets that were posted and not taken."""
    _words: list[int] = field(init=False)
    """By slot, their sum."""
    _full: set[int] = field(default_factory=set, init=False)
    """Slots for which there is no room."""

    def __post_init__(self) -> None:
        """Nothing waits."""
        self._waiting = [deque() for _vl in range(self.vls)]
        self._words = [0] * self.vls

    @property
    def is_full(self) -> bool:
        """Whether there is no room at all."""
        return len(self._full) == self.vls

    def blocked(self) -> Collection[int]:
        """SLs for which there is no room."""
        full = self._full
        return [sl for sl, vl in enumerate(self.sl_to_vl) if vl in full] if full else ()

    def posted(self, vl: int, words: int) -> None:
        """A packet waits."""
        self._waiting[vl].append(words)
        self._words[vl] += words
        if self._words[vl] >= AHEAD_WORDS:
            self._full.add(vl)
        self.packets += 1
        self.bytes += WORD_BYTES * words

    def taken(self, slot: int) -> None:
        """One waits no more; not all that are taken need be the transport's."""
        if slot < self.vls and self._waiting[slot]:
            self._words[slot] -= self._waiting[slot].popleft()
            if self._words[slot] < AHEAD_WORDS:
                self._full.discard(slot)


class VerbsHosts:
    """The transports of all hosts that have one.

    What they do follows from deliveries, takings and their cycles alone, so every engine that has the same gets the
    same posts.

    Attributes:
        skipped: cycles that have passed for transports, but not in the fabric.
        in_flight: packets that were posted and not delivered, by their ICRCs, which no switch changes; those that were
            lost stay among them. Others' packets are delivered too.
        active: the last cycle in which something was posted, taken or delivered.
    """

    def __init__(self, post: Callable[[Post], None]) -> None:
        """POST takes what is posted, ascending by cycle."""
        self.skipped = 0
        self.in_flight: set[bytes] = set()
        self.active = 0
        self._post = post
        self._ports: dict[int, VerbsPort] = {}
        self._adapters: dict[Adapter, list[VerbsPort]] = {}
        self._events: list[tuple[int, int, int, Delivery | Taking]] = []
        self._now = 0
        self._earliest = 0

    def add(self, port: VerbsPort) -> None:
        """One more port."""
        self._ports[port.node] = port
        self._adapters.setdefault(port.adapter, []).append(port)

    def delivered(self, delivery: Delivery) -> bool:
        """Takes a delivered packet of a data VL; whether it is for a host that has a transport."""
        port = self._ports.get(delivery.node)
        if port is None or delivery.slot >= port.vls:
            return False
        self._events.append((delivery.cycle, 0, delivery.node, delivery))
        return True

    def taken(self, taking: Taking) -> None:
        """Hears that an adapter takes a packet of its host."""
        if taking.node in self._ports:
            self._events.append((taking.cycle, 1, taking.node, taking))

    def pass_time(self, finished: int) -> None:
        """Lets transports do all that they do below cycle FINISHED, and at its beginning what consumers have posted.

        What they post because of that is for FINISHED + 1 at the earliest.
        """
        self._earliest = finished + 1
        events, self._events = sorted(self._events), []
        # A timer that begins in a step ends after it: none is as short, but what congestion control waits for.
        last = finished - 1 + self.skipped
        has_timer = any(adapter.has_expired(last) or adapter.may_delay for adapter in self._adapters)
        for cycle, _kind, node, event in events:
            if has_timer:
                self._expire(cycle)
            port = self._ports[node]
            self._now = self.active = cycle
            if isinstance(event, Delivery):
                self.in_flight.discard(event.data[-ICRC_BYTES:])
                port.adapter.receive(event.data, cycle + self.skipped, port.number)
            else:
                port.taken(event.slot)
            self._send_if_due(port.adapter)
        if has_timer:
            self._expire(finished)
        self.send(finished)

    def send(self, finished: int) -> None:
        """Lets transports send what consumers have posted since time was passed to cycle FINISHED."""
        self._now = finished
        for adapter in self._adapters:
            self._send_if_due(adapter)

    def skip_to(self, wake: int) -> None:
        """Lets time pass for transports, and not for the fabric, up to one of their timers."""
        self.skipped += max(0, wake - self._now)
        self.in_flight.clear()

    @property
    def time(self) -> int:
        """The transports' cycle: the fabric's, and what was skipped."""
        return self._now + self.skipped

    def wrong_keys(self) -> Iterator[tuple[int, WrongKey]]:
        """By node, each packet with a wrong key since this was last asked: its agent is to count it and tell of it."""
        for port in self._ports.values():
            untold = port.adapter.ports[port.number - 1].untold
            while untold:
                yield port.node, untold.popleft()

    @property
    def ports(self) -> Collection[VerbsPort]:
        """All of them."""
        return self._ports.values()

    @property
    def waiting(self) -> tuple[Adapter, QueuePair, int] | None:
        """The queue pair whose timer ends first, and in which of the fabric's cycles; None if none is to end."""
        wake = self.wake
        found = ((adapter, adapter.waiting) for adapter in self._adapters)
        timers = [(adapter, pair) for adapter, pair in found if pair is not None]
        if wake is None or not timers:
            return None
        return *min(timers, key=lambda timer: timer[1].wake or 0), wake

    @property
    def wake(self) -> int | None:
        """The fabric's cycle in which something is due, if nothing is delivered or taken before; None if never.

        What waits for room is not due.
        """
        now, first = self._now + self.skipped, None
        for adapter in self._adapters:
            timer = adapter.timer
            if timer is not None and timer > now and (first is None or timer < first):
                first = timer
        return None if first is None else first - self.skipped

    @property
    def waits(self) -> bool:
        """Whether there is something to be sent that waits for room, or was posted since time was last passed."""
        now = self._now + self.skipped
        return any(adapter.is_due(now) for adapter in self._adapters)

    def _expire(self, cycle: int) -> None:
        """Timers that end before a cycle."""
        while (wake := self.wake) is not None and wake < cycle:
            self._now = wake
            for adapter in self._adapters:
                # Time passes also for those that have no room.
                adapter.poll(self.time, blocked=_ALL_SLS)
                self._send_if_due(adapter)

    def _send_if_due(self, adapter: Adapter) -> None:
        """Posts what an adapter has to send, if it is time."""
        if adapter.is_due(self._now + self.skipped):
            self._send(adapter)

    def _send(self, adapter: Adapter) -> None:
        """Posts what an adapter has to send and has room for."""
        now = self._now + self.skipped
        cycle = max(self._now + REACTION_CYCLES, self._earliest)
        for port in self._adapters[adapter]:
            while not port.is_full:
                outgoing = adapter.poll(now, port.number, blocked=port.blocked())
                if outgoing is None:
                    break
                vl = port.sl_to_vl[outgoing.sl]
                if vl >= port.vls:
                    continue
                data = outgoing.data
                if data[0] >> _VL_BITS != vl:
                    data = bytes([vl << _VL_BITS | data[0] & _LVER]) + data[1:]
                port.posted(vl, len(data) // WORD_BYTES)
                self.in_flight.add(data[-ICRC_BYTES:])
                self.active = self._now
                self._post(Post(cycle, port.node, vl, data))
