"""Matching with multicast packets cycle by cycle, as docs/pipeline.md has it in sections 3.7, 4 and 7.

For switches that have nothing but 4X links, Active, with credits for all and no VL15. When flow control packets are
sent is given.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

__all__ = ["Arrival", "Grant", "grants"]

Grant = tuple[int, int, int, int, int]
"""Cycle, output, input, slot, and number of the packet."""


@dataclass
class Arrival:
    """A packet that joins its queue: ``copies`` are (output, slot); a unicast packet has one."""

    number: int
    input: int
    joins: int
    vl: int
    n: int
    copies: set[tuple[int, int]]
    is_multicast: bool


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
        visible = first.joins + 1 if first.joins > self.granted else self.granted + 3
        return first if visible <= g and (output, slot) in first.copies else None


def grants(
    arrivals: Iterable[Arrival], flow_control: set[tuple[int, int]], *, inputs: int, vls: int, readers: int, fifo: bool
) -> list[Grant]:
    """All that are granted until nothing is left; FLOW_CONTROL packets are granted in a cycle to an output."""
    waiting = sorted(arrivals, key=lambda one: one.joins)
    queues: list[dict[object, Queue]] = [{} for _ in range(inputs)]
    in_ptr: defaultdict[tuple[int, int], int] = defaultdict(int)
    out_ptr, queue_ptr, vl_ptr = [0] * inputs, [0] * inputs, [0] * inputs
    turn: defaultdict[tuple[int, int, int], int] = defaultdict(int)
    output_free, reader_free = [0] * inputs, [[0] * readers for _ in range(inputs)]
    done: list[Grant] = []

    def choose(g: int, i: int, output: int, slot: int) -> tuple[Queue, Arrival] | None:
        if min(reader_free[i]) > g:
            return None
        heads = [(queue, head) for queue in queues[i].values() if (head := queue.head(g, output, slot))]
        own = [one for one in heads if one[0].vl is None]
        others = sorted(
            (one for one in heads if one[0].vl is not None), key=lambda one: ((one[0].vl or 0) - queue_ptr[i]) % vls
        )
        if own and others:
            return (others if turn[i, output, slot] else own)[0]
        return (own or others or [None])[0]

    for g in count(waiting[0].joins):
        while waiting and waiting[0].joins < g:
            one = waiting.pop(0)
            key: object = one.vl if fifo else ("multicast", one.vl) if one.is_multicast else next(iter(one.copies))
            vl = one.vl if fifo or one.is_multicast else None
            queues[one.input].setdefault(key, Queue(vl)).packets.append(one)
        offers: defaultdict[int, list[tuple[int, int, Queue, Arrival]]] = defaultdict(list)
        for output in range(inputs):
            if (g, output) in flow_control:
                output_free[output] = g + 2
                continue
            if output_free[output] > g:
                continue
            found = None
            for slot in ((vl_ptr[output] + step) % vls for step in range(vls)):
                for i in ((in_ptr[output, slot] + step) % inputs for step in range(inputs)):
                    chosen = choose(g, i, output, slot)
                    if chosen:
                        found = i, output, slot, *chosen
                        break
                if found:
                    offers[found[0]].append(found[1:])
                    break
        for i, those in offers.items():
            output, slot, queue, packet = min(those, key=lambda one: (one[0] - out_ptr[i]) % inputs)
            done.append((g, output, i, slot, packet.number))
            in_ptr[output, slot], out_ptr[i], vl_ptr[output] = (i + 1) % inputs, (output + 1) % inputs, (slot + 1) % vls
            turn[i, output, slot] = int(queue.vl is None)
            if queue.vl is not None:
                queue_ptr[i] = (queue.vl + 1) % vls
            last_read = g + 1 + packet.n
            output_free[output] = last_read
            reader = next(place for place, free in enumerate(reader_free[i]) if free <= g)
            reader_free[i][reader] = last_read
            packet.copies.remove((output, slot))
            if not packet.copies:
                queue.packets.pop(0)
                queue.granted = g
        if not waiting and not any(queue.packets for those in queues for queue in those.values()):
            return done
    raise AssertionError
