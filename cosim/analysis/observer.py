"""Following a run: what an observer gets, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from cosim.stimulus.packet import Packet
from sm.events import Event
from wire.stimulus import Delivery
from wire.trace import Record

__all__ = ["Audience", "CycleListener", "Observer"]


class Observer:
    """Follows a run. Subclasses override what they have a use for."""

    def offer(self, packet: Packet) -> None:
        """A host has the packet to send; in the order of cycles, before what is observed of its cycle."""

    def observe(self, record: Record) -> None:
        """A record of the trace, in its order, up to the first difference."""

    def deliver(self, delivery: Delivery) -> None:
        """A host has got a packet; in the order of (cycle, node), before its record and perhaps many others."""

    def manage(self, host: str, cycle: int, event: Event) -> None:
        """Something happened at the Subnet Manager of a host."""

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
    """

    def __init__(self, observers: Sequence[Observer], packets: Iterator[Packet]) -> None:
        def users(method: str) -> list[Callable[..., Any]]:
            unused = getattr(Observer, method)
            return [getattr(one, method) for one in observers if getattr(type(one), method) is not unused]

        self._offer, self._observe, self._deliver = users("offer"), users("observe"), users("deliver")
        self._manage, self._finish = users("manage"), users("finish")
        self._packets = packets if self._offer else iter(())
        self._next = next(self._packets, None)

    @property
    def on_delivery(self) -> Callable[[Delivery], None] | None:
        """Takes each delivery; None if no observer has a use for them."""
        return self._take_delivery if self._deliver else None

    def follow(self, records: Iterable[Record]) -> Iterator[Record]:
        """The same records, each when the observers have seen it."""
        observers = self._observe
        for record in records:
            if self._next is not None and self._next.cycle <= record.cycle:
                self._offer_until(record.cycle)
            for observe in observers:
                observe(record)
            yield record

    def manage(self, host: str, cycle: int, event: Event) -> None:
        """Something happened at the Subnet Manager of a host."""
        for manage in self._manage:
            manage(host, cycle, event)

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
        while self._next is not None and (cycle is None or self._next.cycle <= cycle):
            for offer in self._offer:
                offer(self._next)
            self._next = next(self._packets, None)
