"""Hosts that take nothing, and limits of waiting that are short until their packets in the switch have met them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from math import inf
from random import Random
from typing import Final

from cosim.stimulus.bus_bring_up import WRITE_SHOWS, write, write_port
from cosim.stimulus.random_settings import due, random_times, switch_ports
from cosim.topology.topology import Port, Topology
from wire.registers import NodeRegister, PortRegister, node_address
from wire.stimulus import Control, Operation
from wire.time_limits import EXPIRED_TICKS, MAX_EXPONENT, NO_LIMIT, STALL_TICKS, TICK_CYCLES

__all__ = [
    "has_long_deferrals",
    "has_mass_expiries",
    "random_expiries",
    "random_long_deferrals",
    "random_mass_expiries",
]

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
_MASS_SHARE: Final = 0.02
"""Of the runs, those in which all that waits in a switch comes to its limit at once."""

_MASS_GAP: Final = (300, 2_000)
_ABOUT_EXPIRY: Final = (-100, 300)
"""From when the packets of a switch have outlived their limit until a host takes some again."""

_LIMITED_TICKS: Final = (4, 12)
_DEFERRALS_SHARE: Final = 0.01
"""Of the runs, those in which heads wait for links that are lost until counts of their ticks come round."""

_DEFERRALS_GAP: Final = (500, 3_000)
_BEHIND_ROUND_TICKS: Final = (0, 5)
_LATE_TIMEOUT: Final = 1 << 15
_USUAL_TIMEOUT: Final = 1_000
"""LINK_DOWN_TIMEOUT of the ports meanwhile, and afterwards."""


def has_mass_expiries(seed: int) -> bool:
    """Whether all hosts of a switch take nothing until all that is in it has outlived LIFE_TIME, or nearly."""
    return Random(f"{seed}/all limits at once").random() < _MASS_SHARE


def random_expiries(topology: Topology, random: Random, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """In some runs the shortest HOQ_LIFE of a switch's port, and another when heads that waited meanwhile expire.

    Some of them last until a VL that stalls for it does so no more.
    """
    ports = _ports_with_hosts(topology)
    if random.random() >= _SHARE or not ports:
        return
    stall_share = random.choice(_STALL_SHARES)

    def one(cycle: int) -> list[Control]:
        kind = _stall if random.random() < stall_share else _expiry
        return kind(topology, random, cycle, *random.choice(ports))

    yield from _in_turn(random_times(random, _GAP, start, end), one, count)


def random_mass_expiries(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Of a switch, again and again, the shortest LIFE_TIME while its hosts take nothing: all heads of all its outputs
    expire at once, or go if credits come first, and what is behind them has outlived it while other packets arrive."""
    ports = _ports_with_hosts(topology)

    def one(cycle: int) -> list[Control]:
        switch = random.choice(ports)[0].node
        hosts = [host.node for port, host in ports if port.node == switch]
        return _mass_expiry(topology, random, cycle, topology.index[switch], hosts)

    yield from _in_turn(random_times(random, _MASS_GAP, start, end) if ports else (), one, count)


def has_long_deferrals(seed: int) -> bool:
    """Whether links of hosts are lost for as long as a VL stalls, and come back with their ports still Active."""
    return Random(f"{seed}/deferred for long").random() < _DEFERRALS_SHARE


def random_long_deferrals(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Of a switch's port, again and again, the shortest HOQ_LIFE while its link is lost, until it is back: heads have
    been there for far longer than that, and the count of their ticks has come round, or would have."""
    ports = _ports_with_hosts(topology)
    times = random_times(random, _DEFERRALS_GAP, start, end) if ports else ()
    yield from _in_turn(times, lambda cycle: _deferral(topology, random, cycle, *random.choice(ports)), count)


def _in_turn(times: Iterable[int], given: Callable[[int], list[Control]], count: Counter[str]) -> Iterator[Control]:
    """What is given from cycles on, but those that come before all of the one before is over."""
    later, until = list[Control](), 0
    for cycle in times:
        yield from due(later, cycle)
        if cycle < until:
            continue
        count["time_limit"] += 1
        controls = given(cycle)
        until = controls[-1].cycle
        for control in controls:
            heapq.heappush(later, control)
    yield from due(later, inf)


def _ports_with_hosts(topology: Topology) -> list[tuple[Port, Port]]:
    """The ports of switches that are linked with hosts, and theirs."""
    ends = ((port, topology.far_end(port)) for port in switch_ports(topology))
    return [(port, far) for port, far in ends if far is not None and far.node in topology.lids]


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


def _deferral(topology: Topology, random: Random, cycle: int, port: Port, host: Port) -> list[Control]:
    """Of a port, from a cycle on: it is ActiveDefer for as many ticks as a stall lasts, or some more."""
    plug = topology.link_at(port)
    assert plug is not None
    link, _ = plug
    back = cycle + (STALL_TICKS + random.randint(*_BEHIND_ROUND_TICKS)) * TICK_CYCLES + random.randrange(TICK_CYCLES)
    after = random.choice(_NEXT_EXPONENTS)
    return [
        write_port(topology, cycle, port, PortRegister.VL_STALL_COUNT, random.choice(_STALL_COUNTS)),
        write_port(topology, cycle + 1, port, PortRegister.HOQ_LIFE, 0),
        write_port(topology, cycle + 2, port, PortRegister.LINK_DOWN_TIMEOUT, _LATE_TIMEOUT),
        write_port(topology, cycle + 3, host, PortRegister.LINK_DOWN_TIMEOUT, _LATE_TIMEOUT),
        Control(cycle + 4, Operation.LINK_DOWN, link),
        Control(back, Operation.LINK_UP, link),
        write_port(topology, back + TICK_CYCLES, port, PortRegister.HOQ_LIFE, after),
        write_port(topology, back + TICK_CYCLES + 1, port, PortRegister.LINK_DOWN_TIMEOUT, _USUAL_TIMEOUT),
        write_port(topology, back + TICK_CYCLES + 2, host, PortRegister.LINK_DOWN_TIMEOUT, _USUAL_TIMEOUT),
    ]


def _mass_expiry(topology: Topology, random: Random, cycle: int, switch: int, hosts: list[str]) -> list[Control]:
    """Of a switch, from a cycle on: a limit for as many ticks as make all expire, and a few more."""
    tick = cycle - cycle % TICK_CYCLES + random.randint(*_FILLING_TICKS) * TICK_CYCLES
    last, address = tick + (EXPIRED_TICKS - 1) * TICK_CYCLES, node_address(NodeRegister.LIFE_TIME)
    controls = [write(tick - WRITE_SHOWS, switch, address, 0)]
    for host in hosts:
        node, every_vl = topology.index[host], (1 << topology.fabric.nodes[host].vls) - 1
        again = last + random.randint(*_ABOUT_EXPIRY)
        controls += [
            Control(now, Operation.RECV_STALL, node, (every_vl, 0, 0, 0)) for now in range(cycle, again, _AGAIN)
        ]
        controls.append(Control(again, Operation.RECV_STALL, node))
    return [*controls, write(last + random.randint(*_LIMITED_TICKS) * TICK_CYCLES, switch, address, NO_LIMIT)]
