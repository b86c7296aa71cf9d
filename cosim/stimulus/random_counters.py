"""Counters read and written by the bus at random, and no more often than they may be."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final, TypeAlias

from cosim.stimulus.bus_bring_up import write, write_port
from cosim.stimulus.random_settings import random_gap, random_times
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import VL15
from wire.pma import PMA_VL_XMIT_WAIT
from wire.registers import PortRegister
from wire.stimulus import Control, Operation

__all__ = [
    "as_often_as_may_be",
    "crowded_reads",
    "has_crowded_reads",
    "has_crowds_at_stuck_links",
    "has_whole_counters",
    "random_by_vl",
    "random_counter_writes",
    "random_read",
    "random_reads",
    "random_whole_counters",
]

_COUNTER_GAP = (1_000, 20_000)
_COUNTERS: Final[tuple[tuple[registers.Counter | registers.Detail | registers.PacketCounter, int], ...]] = (
    *registers.COUNTER_WIDTHS.items(),
    *((detail, registers.DETAIL_BITS) for detail in registers.Detail),
    *((counter, registers.DATA_BITS) for counter in registers.PacketCounter),
)
"""And the bits that a write sets."""

_NEAR_THE_END = 8
_BY_VL_GAP = (200, 5_000)
_BY_VL_READ_SHARE = 0.7
_OF_ALL_VLS_SHARE = 0.3
_VL_XMIT_WAIT_MAX: Final[int] = PMA_VL_XMIT_WAIT[0].max
_READ_GAP = (100, 2_000)
_READ: Final = (*registers.Counter, *registers.Detail, *registers.PacketCounter, *registers.CounterHigh)
_READS_IN_A_ROW = (1, 1, 1, 10)
_CYCLES_OF_READ = 3
_TURN_CYCLES = 30
_MOST_ACCESSES = 15
"""To a port's counters, in so many cycles (docs/pipeline.md, section 10), ..."""

_OF_AGENTS = 8
"""... of which agents that answer MADs have as many at most, where the bus, in whose cycles they stand still, has the
rest."""

_ACCESSES: Final = (Operation.BUS_READ, Operation.BUS_WRITE)
_OF_TURNS: Final = frozenset({*_READ, *range(registers.VL_XMIT_WAIT, registers.VL_XMIT_WAIT + VL15 + 1)})
"""Offsets in a port's page of counters, whose accesses take turns."""

_CROWDED_SHARE = 0.02
"""Of the runs, those in which somebody reads a port's counters as often as may be, all the time; likewise those in
which, if so, these are of ports that have as many errors as may be."""

_CROWD = 12
"""Reads in adjacent cycles, ..."""

_CROWDS = (3, 60)
"""... so many times, before another port is read."""

_WHOLE_SHARE = 0.02
"""Of the runs, those in which counters of 64 bits are set and read by halves."""

_WHOLE_GAP = (30, 400)
_WHOLE_STEPS = (2, 8)
_MOST_STEP_CYCLES = (_CYCLES_OF_READ, 8, 60)
_Half: TypeAlias = PortRegister | registers.Counter | registers.PacketCounter | registers.CounterHigh
_HALF_MAX: Final = (1 << registers.DATA_BITS) - 1


def has_crowded_reads(seed: int) -> bool:
    """Whether counters are read as often as may be."""
    return Random(f"{seed}/crowded reads").random() < _CROWDED_SHARE


def has_crowds_at_stuck_links(seed: int) -> bool:
    """Whether, where counters are read as often as may be, they are those of 4X ports of switches, into which links
    have nothing but rows that are stuck; if they may be, all links are 4X: of these more errors wait."""
    return Random(f"{seed}/crowds at stuck links").random() < _CROWDED_SHARE


def has_whole_counters(seed: int) -> bool:
    """Whether counters of 64 bits are set and read by halves, all the time, where there are errors."""
    return Random(f"{seed}/whole counters").random() < _WHOLE_SHARE


def as_often_as_may_be(controls: Iterable[Control], *, with_agents: bool) -> Iterator[Control]:
    """Without reads of a port's counters where half of 30 cycles had an access to them, or may have had with those that
    agents answer: what it counts would be lost (docs/pipeline.md, section 10)."""
    most = _MOST_ACCESSES - (_OF_AGENTS if with_agents else 0)
    latest: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
    for control in controls:
        page, offset = registers.place_of_address(control.args[0])
        if control.operation in _ACCESSES and offset in _OF_TURNS:
            cycles = latest[control.target, page]
            while cycles and cycles[0] <= control.cycle - _TURN_CYCLES:
                cycles.popleft()
            if control.operation == Operation.BUS_READ and len(cycles) >= most:
                continue
            cycles.append(control.cycle)
        yield control


def random_reads(topology: Topology, random: Random, start: int, end: int, *, in_a_row: bool) -> Iterator[Control]:
    """Of a port's counters, some of them one after the other, if they may be: what is counted meanwhile waits."""
    ports = topology.linked_ports()
    until = start
    for cycle in random_times(random, random_gap(random, _READ_GAP), start, end):
        if cycle < until:
            continue
        port, reads = random.choice(ports), random.choice(_READS_IN_A_ROW) if in_a_row else 1
        until = cycle + _CYCLES_OF_READ * reads
        for now in range(cycle, until, _CYCLES_OF_READ):
            yield random_read(topology, port, random, now)


def crowded_reads(topology: Topology, random: Random, start: int, end: int, stuck: Sequence[Port]) -> Iterator[Control]:
    """Of one port's counters, several in adjacent cycles again and again, then of another's: what is counted waits, and
    what a port waits for is counted in every cycle. If links into some are STUCK, of these ports alone."""
    ports, cycle = stuck or topology.linked_ports(), start
    while cycle < end:
        port = random.choice(ports)
        yield write_port(topology, cycle, port, PortRegister.TICK, 0)
        for _ in range(random.randint(*_CROWDS)):
            cycle += _TURN_CYCLES
            yield from (random_read(topology, port, random, now) for now in range(cycle - _CROWD, cycle))


def random_read(topology: Topology, port: Port, random: Random, cycle: int) -> Control:
    """Of one of the port's counters."""
    address = registers.port_address(port.number, random.choice(_READ))
    return Control(cycle, Operation.BUS_READ, topology.index[port.node], (address, 0, 0, 0))


def random_counter_writes(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Counters set to 0, to anything, close to a carry, or close to their end, where they must stop."""
    ports = topology.linked_ports()
    for cycle in random_times(random, random_gap(random, _COUNTER_GAP), start, end):
        port = random.choice(ports)
        counter, width = random.choice(_COUNTERS)
        last, carry = (1 << width) - 1, (1 << random.randint(1, width)) - 1
        count["counter_write"] += 1
        near = random.choice((carry, last, last)) - random.randrange(_NEAR_THE_END)
        value = random.choice((0, max(0, near), max(0, near), random.getrandbits(width)))
        yield write_port(topology, cycle, port, counter, value)


def random_by_vl(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str] | None
) -> Iterator[Control]:
    """Reads of counters by VL, and where they are counted writes too."""
    ports = topology.linked_ports()
    for cycle in random_times(random, random_gap(random, _BY_VL_GAP), start, end):
        port = random.choice(ports)
        node = topology.index[port.node]
        address = registers.port_address(port.number, PortRegister.FLOW_CTL_UPDATE_ERRORS)
        of_all_vls = random.random() < _OF_ALL_VLS_SHARE
        if not of_all_vls:
            vl = random.choice((*range(topology.fabric.nodes[port.node].vls), VL15, random.randrange(VL15)))
            address = registers.vl_xmit_wait_address(port.number, vl)
        if count is None or random.random() < _BY_VL_READ_SHARE:
            yield Control(cycle, Operation.BUS_READ, node, (address, 0, 0, 0))
            continue
        count["counter_write"] += 1
        value = random.choice((0, _VL_XMIT_WAIT_MAX - random.randrange(_NEAR_THE_END)))
        if of_all_vls:
            value, chosen = (random.getrandbits(registers.DATA_BITS) for _ in range(2))
            yield write_port(topology, cycle, port, PortRegister.EXTENDED_LOW, chosen)
        yield write(cycle, node, address, value)


def random_whole_counters(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Of one counter after the other both halves are set, close to a carry or to their end, and then, as it counts, one
    or both are read and the upper one is set anew, with what EXTENDED_LOW has by then."""
    ports, until = topology.linked_ports(), start
    for cycle in random_times(random, _WHOLE_GAP, start, end):
        if cycle < until:
            continue
        until, port, most = cycle, random.choice(ports), random.choice(_MOST_STEP_CYCLES)
        low, (lower, upper) = PortRegister.EXTENDED_LOW, random.choice(list(registers.HIGH_OF_COUNTER.items()))
        steps: list[tuple[_Half, bool]] = [(low, True), (upper, True)]
        for _ in range(random.randint(*_WHOLE_STEPS)):
            steps += [(upper, False), *random.choice((((low, False),), ((upper, True),), ((lower, False),), ()))]
        for half, sets in steps:
            if sets:
                count["counter_write"] += 1
                yield write_port(topology, until, port, half, _half(random))
            else:
                address = registers.port_address(port.number, half)
                yield Control(until, Operation.BUS_READ, topology.index[port.node], (address, 0, 0, 0))
            until += random.randint(_CYCLES_OF_READ, most)


def _half(random: Random) -> int:
    """Of a counter: all ones up to a bit, or nearly, or anything."""
    ones = _HALF_MAX >> random.choice((0, 0, 0, random.randrange(registers.DATA_BITS)))
    near = max(0, ones - random.randrange(_NEAR_THE_END))
    return random.choice((ones, near, random.getrandbits(registers.DATA_BITS)))
