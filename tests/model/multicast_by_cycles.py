"""Matching with multicast packets cycle by cycle, as docs/pipeline.md has it in sections 3.7, 3.8, 4 and 7.

For switches that have nothing but 4X links, Active, with credits for all and no VL15. When flow control packets are
sent is given, and which copies the inspection rejects.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

__all__ = ["Arrival", "Grant", "grants"]

Grant = tuple[int, int, int, int, int]
"""Cycle, output, input, slot, and number of the packet."""


@dataclass
class Arrival:
    """A packet that joins its queue: ``copies`` are (output, slot); a unicast packet has one.

    Those for ``rejected`` outputs may not leave.
    """

    number: int
    input: int
    joins: int
    vl: int
    n: int
    copies: set[tuple[int, int]]
    is_multicast: bool
    ends: int = 0
    is_guarded: bool = False
    rejected: frozenset[int] = frozenset()
    visible: int | None = None  # of one that is guarded: when it has been inspected


@dataclass
class Queue:
    """``vl``: the VL of one with a turn, of multicast packets or of ``fifo``."""

    vl: int | None
    packets: list[Arrival] = field(default_factory=list)
    granted: int = -9  # the cycle of the grant of the packet before the first

    def head(self, g: int, output: int, slot: int) -> Arrival | None:
        if not self.packets:
            return None
        first = self.packets[0]
        visible = first.visible if first.is_guarded else self.would_be_visible()
        if visible is None or visible > g:
            return None
        if output in first.rejected and any(one.ends > g - 3 for one in (first, *self._joined_before(g - 1))):
            return None
        return first if (output, slot) in first.copies else None

    def would_be_visible(self) -> int:
        """From when on, if nothing were guarded."""
        first = self.packets[0]
        return first.joins + 1 if first.joins > self.granted + 1 else self.granted + 5

    def _joined_before(self, cycle: int) -> Iterable[Arrival]:
        return (one for one in self.packets if one.joins < cycle)


class Inspection:
    """Of one input."""

    def __init__(self, ports: int, vls: int, taken: set[int]) -> None:
        self._ports = ports
        self._vls = vls
        self._taken = taken
        self._packet: Arrival | None = None
        self._first_look = self._looked = self._idle_from = self._ptr = 0

    def cycle(self, g: int, queues: Iterable[Queue]) -> None:
        """What it does in a cycle."""
        if self._packet is not None:
            if g >= self._first_look and g not in self._taken:
                self._looked += 1
                if self._looked == self._ports:
                    self._packet.visible, self._idle_from = g + 3, g + 2
                    self._packet = None
            return
        if g < self._idle_from:
            return
        ready = {
            queue.vl: queue.packets[0]
            for queue in queues
            if queue.vl is not None and queue.packets and queue.packets[0].is_guarded
            if queue.packets[0].visible is None and queue.would_be_visible() <= g
        }
        if ready:
            vl = min(ready, key=lambda one: (one - self._ptr) % self._vls)
            self._packet, self._first_look, self._looked = ready[vl], g + 2, 0
            self._ptr = (vl + 1) % self._vls


def grants(
    arrivals: Iterable[Arrival],
    flow_control: set[tuple[int, int]],
    taken: Collection[tuple[int, int]] = (),
    *,
    inputs: int,
    vls: int,
    readers: int,
    fifo: bool,
) -> list[Grant]:
    """All that are granted until nothing is left.

    FLOW_CONTROL packets are granted in a cycle to an output. Inputs look for P_Keys of what arrives in cycles that are
    TAKEN.
    """
    waiting = sorted(arrivals, key=lambda one: one.joins)
    queues: list[dict[object, Queue]] = [{} for _ in range(inputs)]
    in_ptr: defaultdict[tuple[int, int], int] = defaultdict(int)
    out_ptr: defaultdict[int, int] = defaultdict(int)
    queue_ptr: defaultdict[int, int] = defaultdict(int)
    vl_ptr: defaultdict[int, int] = defaultdict(int)
    turn: defaultdict[tuple[int, int, int], int] = defaultdict(int)
    changes: defaultdict[int, list[tuple[Any, Any, int]]] = defaultdict(list)  # of pointers, when they are visible
    output_busy = [0] * inputs  # until the last read, which is in that cycle
    reads = [[(-1, -1)] * readers for _ in range(inputs)]  # first and last
    offers: defaultdict[int, list[tuple[int, int, list[tuple[Queue, Arrival]]]]] = defaultdict(list)
    done: list[Grant] = []
    inspections = [Inspection(inputs - 1, vls, {cycle for at, cycle in taken if at == i}) for i in range(inputs)]

    def heads(g: int, i: int, output: int, slot: int) -> list[tuple[Queue, Arrival]]:
        """Those that are eligible, if the input is available."""
        free = sum(not first < g < last for first, last in reads[i])
        if free <= (i in offers):
            return []
        return [(queue, head) for queue in queues[i].values() if (head := queue.head(g, output, slot))]

    def choose(i: int, output: int, slot: int, those: list[tuple[Queue, Arrival]]) -> tuple[Queue, Arrival]:
        own = [one for one in those if one[0].vl is None]
        others = sorted(
            (one for one in those if one[0].vl is not None), key=lambda one: ((one[0].vl or 0) - queue_ptr[i]) % vls
        )
        if own and others:
            return (others if turn[i, output, slot] else own)[0]
        return (own or others)[0]

    for g in count(waiting[0].joins):
        while waiting and waiting[0].joins < g:
            one = waiting.pop(0)
            key: object = one.vl if fifo else ("multicast", one.vl) if one.is_multicast else next(iter(one.copies))
            vl = one.vl if fifo or one.is_multicast else None
            queues[one.input].setdefault(key, Queue(vl)).packets.append(one)
        for pointers, index, value in changes.pop(g, ()):
            pointers[index] = value
        for inspection, those_of_input in zip(inspections, queues, strict=True):
            inspection.cycle(g, those_of_input.values())
        # Inputs accept the offers of g - 1.
        made_offer = {output for those in offers.values() for output, _, _ in those}
        for i, those in offers.items():
            output, slot, candidates = min(those, key=lambda one: (one[0] - out_ptr[i]) % inputs)
            queue, packet = choose(i, output, slot, candidates)
            done.append((g - 1, output, i, slot, packet.number))
            changes[g + 1] += [(out_ptr, i, (output + 1) % inputs), (turn, (i, output, slot), int(queue.vl is None))]
            if queue.vl is not None:
                changes[g + 1].append((queue_ptr, i, (queue.vl + 1) % vls))
            changes[g + 2].append((in_ptr, (output, slot), (i + 1) % inputs))
            changes[g + 4].append((vl_ptr, output, (slot + 1) % vls))  # as the VL order knows it
            last_read = g + (3 if output in packet.rejected else packet.n)
            output_busy[output] = last_read
            reader = next(place for place, one in enumerate(reads[i]) if one[0] < g - 1 and one[1] <= g - 1)
            reads[i][reader] = g, last_read
            packet.copies.remove((output, slot))
            if not packet.copies:  # a cycle early, but no output that is available has a copy left of it
                queue.packets.pop(0)
                queue.granted = g - 1
        if not waiting and not any(queue.packets for those in queues for queue in those.values()):
            return done
        made: list[tuple[int, int, int, list[tuple[Queue, Arrival]]]] = []
        for output in range(inputs):
            if (g, output) in flow_control:
                output_busy[output] = g + 2
                continue
            if output in made_offer or output_busy[output] > g:
                continue
            slots = ((vl_ptr[output] + step) % vls for step in range(vls))
            places = (
                (slot, i) for slot in slots for i in ((in_ptr[output, slot] + step) % inputs for step in range(inputs))
            )
            found = ((i, output, slot, these) for slot, i in places if (these := heads(g, i, output, slot)))
            made += islice(found, 1)
        offers.clear()
        for i, output, slot, these in made:
            offers[i].append((output, slot, these))
    raise AssertionError
