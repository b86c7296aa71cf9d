"""Hosts that take nothing, and limits of waiting that are short until their packets in the switch have met them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from math import inf
from random import Random
from typing import Final

from cosim.stimulus.bus_bring_up import WRITE_SHOWS, write_port
from cosim.stimulus.random_settings import due, random_times, switch_ports
from cosim.topology.topology import Port, Topology
from wire.registers import PortRegister
from wire.stimulus import Control, Operation
from wire.time_limits import EXPIRED_TICKS, MAX_EXPONENT, NO_LIMIT, STALL_TICKS, TICK_CYCLES

__all__ = ["random_expiries"]

_SHARE: Final = 0.6
"""Of the runs, those with some."""

_GAP: Final = (3_000, 14_000)
_FILLING_TICKS: Final = (4, 16)
"""From when a host takes nothing until the limit is short: its buffer fills, and packets wait in the switch."""

_TIMES: Final = (1, 12)
_NEXT_TICKS: Final = (1, 3)
"""From when the limit is another until it is short again, or the host takes packets."""

_STALL_COUNTS: Final = (1, 1, 2)
_BEHIND_TICK: Final = 2
_STALL_SHARES: Final = (0, 0.5, 1)
"""Of them, in a run, those in which VLs stall, until a stall is over and packets go again."""

_AGAIN: Final = 40
"""Cycles after which it is said again that a host takes nothing."""

_BEHIND_STALL_TICKS: Final = (2, 8)
_NEXT_EXPONENTS: Final = (1, MAX_EXPONENT, MAX_EXPONENT, NO_LIMIT, NO_LIMIT)


def random_expiries(topology: Topology, random: Random, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """In some runs the shortest HOQ_LIFE of a switch's port, and another when heads that waited meanwhile expire.

    Some of them last until a VL that stalls for it does so no more.
    """
    ends = ((port, topology.far_end(port)) for port in switch_ports(topology))
    ports = [(port, far) for port, far in ends if far is not None and far.node in topology.lids]
    if random.random() >= _SHARE or not ports:
        return
    later: list[Control] = []
    until, stall_share = start, random.choice(_STALL_SHARES)
    for cycle in random_times(random, _GAP, start, end):
        yield from due(later, cycle)
        if cycle < until:
            continue
        count["time_limit"] += 1
        kind = _stall if random.random() < stall_share else _expiry
        controls = kind(topology, random, cycle, *random.choice(ports))
        until = controls[-1].cycle
        for control in controls:
            heapq.heappush(later, control)
    yield from due(later, inf)


def _expiry(topology: Topology, random: Random, cycle: int, port: Port, host: Port) -> list[Control]:
    """Of a port, from a cycle on: again and again a limit that holds for just as many ticks as make heads expire."""
    node, every_vl = topology.index[host.node], (1 << topology.fabric.nodes[host.node].vls) - 1
    stall = Operation.RECV_STALL, node, (every_vl, 0, 0, 0)
    controls = [Control(cycle, *stall)]
    tick = cycle - cycle % TICK_CYCLES + random.randint(*_FILLING_TICKS) * TICK_CYCLES
    for _ in range(random.randint(*_TIMES)):
        last = tick + (EXPIRED_TICKS - 1) * TICK_CYCLES
        settings = (
            (tick - WRITE_SHOWS - 1, PortRegister.VL_STALL_COUNT, random.choice(_STALL_COUNTS)),
            (tick - WRITE_SHOWS, PortRegister.HOQ_LIFE, 0),
            (last + random.randint(0, _BEHIND_TICK), PortRegister.HOQ_LIFE, random.choice(_NEXT_EXPONENTS)),
        )
        controls += [write_port(topology, now, port, register, value) for now, register, value in settings]
        controls.append(Control(last + TICK_CYCLES // 2, *stall))
        tick = last + random.randint(*_NEXT_TICKS) * TICK_CYCLES
    return [*controls, Control(tick, Operation.RECV_STALL, node)]


def _stall(topology: Topology, random: Random, cycle: int, port: Port, host: Port) -> list[Control]:
    """Of a port, from a cycle on: a limit that makes VLs stall, and holds for longer than they do."""
    node, every_vl = topology.index[host.node], (1 << topology.fabric.nodes[host.node].vls) - 1
    tick = cycle - cycle % TICK_CYCLES + random.randint(*_FILLING_TICKS) * TICK_CYCLES
    stalled = tick + (EXPIRED_TICKS + random.randint(1, EXPIRED_TICKS)) * TICK_CYCLES
    over = stalled + (STALL_TICKS + random.randint(*_BEHIND_STALL_TICKS)) * TICK_CYCLES
    # Other stalls of the host may end meanwhile, and it would take what must wait.
    stalls = (Control(now, Operation.RECV_STALL, node, (every_vl, 0, 0, 0)) for now in range(cycle, stalled, _AGAIN))
    return [
        *stalls,
        write_port(topology, tick - WRITE_SHOWS - 1, port, PortRegister.VL_STALL_COUNT, random.choice(_STALL_COUNTS)),
        write_port(topology, tick - WRITE_SHOWS, port, PortRegister.HOQ_LIFE, 0),
        Control(stalled, Operation.RECV_STALL, node),
        write_port(topology, over, port, PortRegister.HOQ_LIFE, random.choice(_NEXT_EXPONENTS)),
    ]
