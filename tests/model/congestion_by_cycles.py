"""Marking cycle by cycle, as docs/pipeline.md has it in section 7.3.

For switches whose ports are Active and have nothing but good packets, no VL15. What was granted when is given, and what
was heard of credits.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wire.packet import blocks_of_words

__all__ = ["Arrival", "Link", "Sending", "Setting", "marked"]

Place = tuple[int, int]
"""Output and slot there."""


@dataclass(eq=False)
class Arrival:
    """A packet that joins its queue: ``copies`` are the places to which it goes; a unicast packet has one."""

    input: int
    joins: int
    vl: int
    n: int
    lnh: int
    copies: set[Place]
    is_multicast: bool


@dataclass
class Sending:
    """A packet that was granted to an output."""

    g: int
    output: int
    slot: int
    arrival: Arrival


@dataclass
class Link:
    """What an output has to do beside that: ``flow_control`` are grants of flow control packets, ``credits`` CL by the
    cycle in which it is visible, for each slot."""

    pitch: int = 1
    flow_control: list[int] = field(default_factory=list)
    credits: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))


@dataclass
class Setting:
    """Of an output. ``since``: the cycle in which it is visible; before, there is none."""

    threshold: int
    packet_size: int
    marking_rate: int
    victim: bool
    since: int


def _visible_heads(sendings: list[Sending], arrivals: Iterable[Arrival], *, fifo: bool) -> dict[Place, list[tuple]]:
    """(first cycle, last cycle, packet) in which a head is visible, by its place."""
    grants: defaultdict[int, list[tuple[int, Place]]] = defaultdict(list)
    for one in sendings:
        grants[id(one.arrival)].append((one.g, (one.output, one.slot)))
    queues: defaultdict[object, list[Arrival]] = defaultdict(list)
    for one in sorted(arrivals, key=lambda one: one.joins):
        key = one.vl if fifo else ("multicast", one.vl) if one.is_multicast else tuple(one.copies)
        queues[one.input, key].append(one)
    heads: defaultdict[Place, list[tuple]] = defaultdict(list)
    for queue in queues.values():
        before = -9
        for one in queue:
            visible = one.joins + 1 if one.joins > before + 1 else before + 5
            for g, place in grants[id(one)]:
                heads[place].append((visible, g + 1, one))
            before = max((g for g, _ in grants[id(one)]), default=before)
    return heads


def _is_starved(place: Place, since: int, until: int, heads: list[tuple], link: Link, busy: list, tbs: list) -> bool:
    """Whether in a cycle from SINCE on before UNTIL the output is available and a head has not the credits."""
    for c in range(since, until):
        if (link.pitch == 4 and c % 4) or any(first < c < last for first, last in busy):
            continue
        limit = next((fccl for cycle, fccl in reversed(link.credits[place[1]]) if cycle <= c - 2), 0)
        spent = sum(need for cycle, need in tbs if cycle <= c - 2)
        for first, last, one in heads:
            if first <= c <= last and (limit - spent - blocks_of_words(one.n)) % 4096 > 2048:
                return True
    return False


def marked(
    sendings: list[Sending],
    arrivals: list[Arrival],
    links: Mapping[int, Link],
    settings: Mapping[int, Setting],
    *,
    blocks: int,
    fifo: bool,
) -> list[Sending]:
    """Those that are marked, in the order of their grants. ``blocks``: of a VL's buffer at one input."""
    heads = _visible_heads(sendings, arrivals, fifo=fifo)
    countdown: defaultdict[Place, int] = defaultdict(int)
    last: dict[Place, int] = {}
    found: list[Sending] = []
    for one in sorted(sendings, key=lambda one: one.g):
        place, need, link = (one.output, one.slot), blocks_of_words(one.arrival.n), links[one.output]
        busy = [(s.g, s.g + 1 + link.pitch * s.arrival.n) for s in sendings if s.output == one.output]
        busy += [(g, g + 1 + link.pitch) for g in link.flow_control]
        tbs = [(s.g + 4, blocks_of_words(s.arrival.n)) for s in sendings if (s.output, s.slot) == place]
        since, last[place] = last.get(place, -1) + 1, one.g
        setting = settings[one.output]
        if one.g + 2 < setting.since or one.arrival.is_multicast or one.arrival.lnh < 2:
            continue
        waiting = sum(
            blocks_of_words(other.n)
            for other in arrivals
            if not other.is_multicast and other.copies == {place} and other.joins < one.g
        )
        waiting -= sum(
            blocks_of_words(s.arrival.n)
            for s in sendings
            if (s.output, s.slot) == place and s.g <= one.g and not s.arrival.is_multicast
        )
        crowded = setting.threshold and waiting > blocks * (16 - setting.threshold) // 16
        if not crowded or need < setting.packet_size:
            continue
        if not setting.victim and _is_starved(place, since, one.g, heads[place], link, busy, tbs):
            continue
        if countdown[place]:
            countdown[place] -= 1
        else:
            countdown[place] = setting.marking_rate
            found.append(one)
    return found
