"""Switches as queueing theory has them, for the same packets: no pipeline, no credits, queues without end.

A packet occupies its input and its output for as many cycles as it has rows. What is returned is the time that
each packet waits, in cycles, beyond what it would take alone.

Output queueing is the best that any switch can do: a packet waits only for those before it to the same output.
Input queueing with one FIFO for each input is what Karol, Hluchyj and Morgan analysed ("Input versus output
queueing on a space-division packet switch", IEEE Trans. Commun. COM-35, 1987): a packet at the head that waits for
its output holds those behind it, and for many ports no more than 2 - sqrt(2) = 0.586 of the links' rows can be used.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from random import Random
from typing import NamedTuple

__all__ = ["Arrival", "Departure", "head_of_line_limit", "input_queued", "md1_wait", "output_queued"]


class Arrival(NamedTuple):
    """A packet at its input: from `cycle` on."""

    cycle: int
    source: int
    destination: int
    rows: int


class Departure(NamedTuple):
    """A packet that left: its last row in `cycle`, `waited` cycles later than if it had been alone."""

    cycle: int
    waited: int
    rows: int


def output_queued(arrivals: Iterable[Arrival]) -> Iterator[Departure]:
    """Every packet is at its output's queue at once; arrivals ascend by cycle."""
    free_from: dict[int, int] = {}
    for cycle, _, destination, rows in arrivals:
        begin = max(cycle, free_from.get(destination, 0))
        free_from[destination] = begin + rows
        yield Departure(begin + rows, begin - cycle, rows)


def input_queued(arrivals: Iterable[Arrival], ports: int) -> Iterator[Departure]:
    """One FIFO for each input; of the inputs that want an output it takes the next in rotation.

    Arrivals ascend by cycle; departures come in the order in which packets begin to leave.
    """
    queues: list[deque[Arrival]] = [deque() for _ in range(ports)]
    sending = [False] * ports
    busy = [False] * ports
    last = [0] * ports
    ends: list[tuple[int, int, int]] = []

    def begin(cycle: int, outputs: Iterable[int]) -> Iterator[Departure]:
        for output in outputs:
            if busy[output]:
                continue
            for turn in range(1, ports + 1):
                source = (last[output] + turn) % ports
                if queues[source] and not sending[source] and queues[source][0].destination == output:
                    packet = queues[source].popleft()
                    sending[source] = busy[output] = True
                    last[output] = source
                    heapq.heappush(ends, (cycle + packet.rows, source, output))
                    yield Departure(cycle + packet.rows, cycle - packet.cycle, packet.rows)
                    break

    def finish(until: int | None) -> Iterator[Departure]:
        while ends and (until is None or ends[0][0] <= until):
            cycle = ends[0][0]
            wanted = set()
            while ends and ends[0][0] == cycle:
                _, source, output = heapq.heappop(ends)
                sending[source] = busy[output] = False
                wanted.add(output)
                if queues[source]:
                    wanted.add(queues[source][0].destination)
            yield from begin(cycle, sorted(wanted))

    for packet in arrivals:
        yield from finish(packet.cycle)
        queues[packet.source].append(packet)
        if len(queues[packet.source]) == 1:
            yield from begin(packet.cycle, [packet.destination])
    yield from finish(None)


def head_of_line_limit(ports: int, slots: int = 50_000, seed: int = 1) -> float:
    """Share of its links' rows that a saturated FIFO switch can use, if each host sends to the others only.

    The slotted model of Karol et al., played with random numbers: in every slot each output takes one of the
    packets at the heads that want it, and the next one behind it wants a random output. 0.625 for 8 ports; if a host
    also sends to itself, as in the paper, 0.618.
    """
    random = Random(seed)

    def other(port: int) -> int:
        return (port + random.randrange(1, ports)) % ports

    heads = [other(port) for port in range(ports)]
    settled = slots // 10
    served = 0
    for slot in range(slots):
        wanting: dict[int, list[int]] = {}
        for port, output in enumerate(heads):
            wanting.setdefault(output, []).append(port)
        for several in wanting.values():
            winner = random.choice(several)
            heads[winner] = other(winner)
        if slot >= settled:
            served += len(wanting)
    return served / (slots - settled) / ports


def md1_wait(load: float) -> float:
    """Mean wait of an M/D/1 queue, in packet times (Pollaczek-Khinchine): output queueing for many ports."""
    return load / (2 * (1 - load))
