"""Following a run: what an observer gets, and when."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from cosim.stimulus.message_events import MessageEvent
from cosim.stimulus.packet import Packet
from sm.events import Event
from wire.stimulus import Delivery
from wire.trace import Kind, Record

__all__ = ["Audience", "CycleListener", "Observer", "PacketsUntil"]

PacketsUntil: TypeAlias = Callable[[int | None], Iterable[Packet]]
"""Gives packets that were not given yet, by cycle: those up to a cycle, or all."""


class Observer:
    """Follows a run. Subclasses override what they have a use for.

    Attributes:
        kinds: of records that it observes.
    """

    kinds: Collection[int] = frozenset(Kind)

    def offer(self, packet: Packet) -> None:
        """A host has the packet to send; in the order of cycles, before what is observed of its cycle."""

    def observe(self, record: Record) -> None:
        """A record of the trace, in its order, up to the first difference."""

    def deliver(self, delivery: Delivery) -> None:
        """A host has got a packet; in the order of (cycle, node), before its record and perhaps many others."""

    def manage(self, host: str, cycle: int, event: Event) -> None:
        """Something happened at the Subnet Manager of a host."""

    def follow_message(self, event: MessageEvent) -> None:
        """Something happened to a message, or at the queue pairs of a stream of messages."""

    def finish(self) -> None:
        """The run is over, and all packets have been offered."""


class CycleListener(Observer):
    """Passes on the cycle of each record."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance

    def observe(self, record: Record) -> None:
        """Pass on its cycle."""
        self._advance(record.cycle)


class Audience:
    """Passes a run to its observers, in their order, to each what it has a use for.

    `packets` are those that hosts offer, by cycle. They are drawn up to the cycle of what is passed, and none is kept.

    Attributes:
        kinds: of records that an observer has a use for; packets are offered as far as those that adapters take.
    """

    def __init__(self, observers: Sequence[Observer], packets: Iterator[Packet]) -> None:
        def users(method: str) -> list[Callable[..., Any]]:
            unused = getattr(Observer, method)
            return [getattr(one, method) for one in observers if getattr(type(one), method) is not unused]

        self._offer, self._deliver = users("offer"), users("deliver")
        self._observe: dict[int, list[Callable[[Record], None]]] = {kind: [] for kind in Kind}
        for one in observers:
            if type(one).observe is not Observer.observe:
                for kind in one.kinds:
                    self._observe[kind].append(one.observe)
        of_offers = {Kind.SEND} if self._offer else set()
        self.kinds = frozenset(kind for kind, observers in self._observe.items() if observers) | of_offers
        self._manage, self._follow_message, self._finish = users("manage"), users("follow_message"), users("finish")
        self._packets = packets if self._offer else iter(())
        self._next = next(self._packets, None)
        self._answers: list[PacketsUntil] = []

    def follow_answers(self, answers: PacketsUntil) -> None:
        """Hosts offer these too, in answer to what they get; in a cycle behind those that were told of before."""
        if self._offer:
            self._answers.append(answers)

    @property
    def on_delivery(self) -> Callable[[Delivery], None] | None:
        """Takes each delivery; None if no observer has a use for them."""
        return self._take_delivery if self._deliver else None

    def follow(self, records: Iterable[Record]) -> Iterator[Record]:
        """The same records, each when the observers have seen it."""
        observers = self._observe
        for record in records:
            if self._answers or (self._next is not None and self._next.cycle <= record.cycle):
                self._offer_until(record.cycle)
            for observe in observers[record.kind]:
                observe(record)
            yield record

    def manage(self, host: str, cycle: int, event: Event) -> None:
        """Something happened at the Subnet Manager of a host."""
        for manage in self._manage:
            manage(host, cycle, event)

    def follow_message(self, event: MessageEvent) -> None:
        """Something happened to a message."""
        for follow_message in self._follow_message:
            follow_message(event)

    def finish(self) -> None:
        """The run is over."""
        self._offer_until(None)
        for finish in self._finish:
            finish()

    def _take_delivery(self, delivery: Delivery) -> None:
        self._offer_until(delivery.cycle)
        for deliver in self._deliver:
            deliver(delivery)

    def _offer_until(self, cycle: int | None) -> None:
        packets: Iterable[Packet] = self._drawn_until(cycle)
        if self._answers:
            answers = [answers(cycle) for answers in self._answers]
            packets = heapq.merge(packets, *answers, key=attrgetter("cycle"))
        for packet in packets:
            for offer in self._offer:
                offer(packet)

    def _drawn_until(self, cycle: int | None) -> Iterator[Packet]:
        while self._next is not None and (cycle is None or self._next.cycle <= cycle):
            # Drawn before it is given: whoever gets it may be the last to hold it.
            packet, self._next = self._next, next(self._packets, None)
            yield packet
