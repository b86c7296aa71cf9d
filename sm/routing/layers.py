"""Paths in layers, none of which has a credit loop: the packets of each have an SL, and by that a VL, of their own.

This is LASH (Skeie, Lysne and Theiss, 2002): a path goes to the first layer in which it closes no circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations, pairwise

from sm.routing.graph import SwitchGraph
from sm.routing.routes import Routes
from wire.forwarding_tables import LFT_NO_ROUTE

__all__ = ["in_layers"]

_Channel = tuple[int, int]
"""A switch's number and the port of it that sends to another."""


def in_layers(graph: SwitchGraph, routes: Routes) -> Routes:
    """The same routes, which take as few links as they can, with the SL of each path.

    All paths from one switch to another and back have one SL. Those without a host at either end are left on SL 0.
    """
    lids: list[list[int]] = [[] for _ in graph.guids]
    for lid, home in routes.homes.items():
        lids[home].append(lid)
    layers: list[_Layer] = []
    found = {}
    for one, other in combinations(range(len(graph.guids)), 2):
        if graph.hosts[one] or graph.hosts[other]:
            ways = [(one, lid) for lid in lids[other]] + [(other, lid) for lid in lids[one]]
            waits = {wait for start, lid in ways for wait in pairwise(_channels(graph, routes, start, lid))}
            number = next((number for number, layer in enumerate(layers) if layer.take(waits)), len(layers))
            if number == len(layers):
                # Alone they close none: of shortest paths those there and those back have no channel in common.
                layers.append(_Layer())
                layers[-1].take(waits)
            if number:
                found[one, other] = number
    return replace(routes, layers=found)


def _channels(graph: SwitchGraph, routes: Routes, switch: int, lid: int) -> Iterator[_Channel]:
    """The channels between switches by which a packet goes."""
    while switch != routes.homes[lid]:
        port = routes.tables[graph.guids[switch]][lid]
        if port == LFT_NO_ROUTE:
            return
        yield switch, port
        switch = graph.far[switch][port]


class _Layer:
    """Which channels wait for which, in an order in which each comes before those that it waits for."""

    def __init__(self) -> None:
        self._after: dict[_Channel, set[_Channel]] = {}
        self._before: dict[_Channel, set[_Channel]] = {}
        self._place: dict[_Channel, int] = {}

    def take(self, waits: Iterable[tuple[_Channel, _Channel]]) -> bool:
        """Adds them, if all can be without a circle; whether it did."""
        taken: list[tuple[_Channel, _Channel]] = []
        for near, far in waits:
            if far in self._after.get(near, ()):
                continue
            if not self._order(near, far):
                for one, other in taken:
                    self._after[one].remove(other)
                    self._before[other].remove(one)
                return False
            self._after[near].add(far)
            self._before[far].add(near)
            taken.append((near, far))
        return True

    def _order(self, near: _Channel, far: _Channel) -> bool:
        """Puts one before the other, as Pearce and Kelly (2006) do; false if it waits for it."""
        for channel in (near, far):
            if channel not in self._place:
                self._place[channel] = len(self._place)
                self._after[channel], self._before[channel] = set(), set()
        first, last = self._place[far], self._place[near]
        if first > last:
            return True
        behind = self._reached(far, self._after, first, last)
        if near in behind:
            return False
        moved = sorted(self._reached(near, self._before, first, last), key=self._place.__getitem__)
        moved += sorted(behind, key=self._place.__getitem__)
        for channel, place in zip(moved, sorted(self._place[channel] for channel in moved), strict=True):
            self._place[channel] = place
        return True

    def _reached(self, start: _Channel, steps: dict[_Channel, set[_Channel]], first: int, last: int) -> set[_Channel]:
        """What steps lead to from `start`, among the places from `first` to `last`."""
        reached = {start}
        edge = [start]
        while edge:
            for channel in steps[edge.pop()]:
                if channel not in reached and first <= self._place[channel] <= last:
                    reached.add(channel)
                    edge.append(channel)
        return reached
