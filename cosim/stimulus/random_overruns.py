"""Receive buffers that run over at random: a sender believes in more room than there is, again and again."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from math import inf
from random import Random
from typing import Final

from cosim.stimulus.bus_bring_up import write_port
from cosim.stimulus.random_settings import due, random_times
from cosim.stimulus.row_errors import forged_flow_control
from cosim.topology.topology import Port, Topology
from wire.registers import PortRegister
from wire.stimulus import Control, Operation, injection_target

__all__ = ["random_overruns"]

_SHARE: Final = 0.5
"""Of the runs, those with overruns of this kind."""

_GAP: Final = (5_000, 30_000)
_PERIODS: Final = (300, 800)
_CYCLES: Final = (2_000, 8_000)
_USUAL_PERIOD_BITS: Final = 14
_LEAST_USUAL_PERIOD: Final = 1_000
_FORGED_IN_A_PERIOD: Final = 4
_MOST_OVERRUN_ERRORS: Final = 5


def random_overruns(topology: Topology, random: Random, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """In some runs hosts that take nothing for long, while credits are forged that a port announces: of one of their
    adapters, or of a switch, whose buffers are full then.

    OVERRUN_ERRORS, the number of periods with overruns after which these count as excessive, changes meanwhile.
    """
    if random.random() >= _SHARE:
        return
    ports = topology.linked_ports()
    later: list[Control] = []
    until = dict.fromkeys(ports, start)
    for cycle in random_times(random, _GAP, start, end):
        yield from due(later, cycle)
        port = random.choice(ports)
        if cycle <= until[port]:
            continue
        count["overrun"] += 1
        period, until[port] = random.randint(*_PERIODS), cycle + random.randint(*_CYCLES)
        for control in _overrun(topology, random, port, cycle, until[port], period):
            heapq.heappush(later, control)
    yield from due(later, inf)


def _overrun(topology: Topology, random: Random, port: Port, start: int, end: int, period: int) -> Iterator[Control]:
    """One port's, from a cycle until another; it announces credits once in a period."""
    link = topology.link_at(port)
    assert link is not None
    yield write_port(topology, start, port, PortRegister.FCP_PERIOD, period)
    stalled = {
        topology.index[host]: (1 << topology.fabric.nodes[host].vls) - 1
        for host in ([port.node] if port.node in topology.lids else topology.lids)
    }
    for cycle in range(start, end, period):
        for node, every_vl in stalled.items():
            yield Control(cycle, Operation.RECV_STALL, node, (every_vl, 0, 0, 0))
        yield write_port(topology, cycle, port, PortRegister.OVERRUN_ERRORS, random.randint(0, _MOST_OVERRUN_ERRORS))
        for _ in range(_FORGED_IN_A_PERIOD):
            now = cycle + random.randrange(period)
            yield Control(now, Operation.INJECT, injection_target(*link), forged_flow_control(random).args())
    for node in stalled:
        yield Control(end, Operation.RECV_STALL, node)
    usual = _LEAST_USUAL_PERIOD + random.getrandbits(_USUAL_PERIOD_BITS)
    yield write_port(topology, end, port, PortRegister.FCP_PERIOD, usual)
