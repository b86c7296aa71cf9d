"""Settings that other stimuli seldom or never have, each in few runs, and all the time there."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from math import inf
from random import Random
from typing import Final, NamedTuple

from cosim.stimulus.bus_bring_up import write, write_port
from cosim.stimulus.random_settings import due, random_times, switch_ports
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import SERVICE_LEVELS, VL15, LinkWidth, PortPhysicalState, PortState
from wire.parameters import vl_arbitration_entries
from wire.port_tables import VL_ARBITRATION_ENTRY
from wire.registers import PORT_REGISTER_WIDTHS, PortRegister
from wire.stimulus import Control, Operation
from wire.vl_arbitration import VlWeight

__all__ = [
    "has_calls_from_sleep",
    "has_generous_limits",
    "has_late_lists",
    "has_late_stalls",
    "has_late_timers",
    "has_lone_weights",
    "has_narrow_cables",
    "has_read_backs",
    "random_calls_from_sleep",
    "random_late_lists",
    "random_late_stalls",
    "random_late_timers",
    "random_narrow_cables",
    "random_read_backs",
]

_SHARE: Final = 0.02
"""Of the runs, those with one of these."""

_GAP: Final = (20_000, 60_000)
_HIGH_LIMITS: Final = (6, 18)
"""A high list has its turn for so long, in units of 4,096 bytes, that several packets and both VLs do."""

_LONG_LIMITS: Final = (33, 36)
"""What is left of these has bits that are never set where the largest packets are counted, or shorter turns."""

_LONE_GAP: Final = (500, 3_000)
_LONE_LIMITS: Final = (0, 6)
_WEIGHTS: Final = (1, 40)
_STALL_COUNTS: Final = (3, 4)
_LATE_WATCHDOG: Final = 1 << 16
_LATE_PERIOD: Final = 1 << 17
_BEHIND_LATE: Final = 5_000
_NEVER: Final = (1 << PORT_REGISTER_WIDTHS[PortRegister.FC_WATCHDOG]) - 1
_NARROW_GAP: Final = (5_000, 20_000)
_CALLS_SHARE: Final = 0.01
_CALLS_GAP: Final = (1_000, 5_000)
_CALLS: Final = 12
_TRAINED: Final = 20
"""Cycles in which a link comes to Initialize, however long its cable is."""

_TOLD: Final = 4
_MOST_BEHIND: Final = 6
_READ_GAP: Final = (50, 1_000)
_HELD_CYCLES: Final = (40, 400)
_READ_AFTER: Final = (1, 30)
_TIMERS: Final = {
    PortRegister.FCP_PERIOD: 1_000,
    PortRegister.FC_WATCHDOG: 1 << 14,
    PortRegister.LINK_DOWN_TIMEOUT: 1_000,
}
"""And what they have afterwards."""


def has_late_lists(seed: int) -> bool:
    """Whether VL arbitration lists begin with entries that do not count, with both VLs in both and a limit between."""
    return Random(f"{seed}/late lists").random() < _SHARE


def has_generous_limits(seed: int) -> bool:
    """Whether there are such lists, and limits of more than two thousand blocks are spent."""
    return Random(f"{seed}/generous limits").random() < _SHARE


def has_lone_weights(seed: int) -> bool:
    """Whether VL arbitration lists have a single entry of each VL that counts, anywhere."""
    return Random(f"{seed}/lone weights").random() < _SHARE


class _Lists(NamedTuple):
    """How often lists change, limits of the high ones, and what makes so many entries for so many VLs."""

    gap: tuple[int, int]
    limits: tuple[int, int]
    entries: Callable[[Random, int, int], list[VlWeight]]


def random_late_lists(topology: Topology, seed: int, start: int, end: int) -> Iterator[Control]:
    """Both lists of a port at once, which stay for long: what is left of a high one comes to its end."""
    ports, free = [port for port in topology.linked_ports() if topology.fabric.nodes[port.node].vls > 1], start
    random, lists = Random(f"{seed}/arbitration"), _Lists(_GAP, _HIGH_LIMITS, _late_entries)
    if has_generous_limits(seed):
        lists = lists._replace(limits=_LONG_LIMITS)
    elif has_lone_weights(seed):
        lists = _Lists(_LONE_GAP, _LONE_LIMITS, _lone_entries)
    later = ((cycle, random.choice(ports)) for cycle in random_times(random, lists.gap, start, end)) if ports else ()
    for cycle, port in (*((start, port) for port in ports), *later):
        vls, node = topology.fabric.nodes[port.node].vls, topology.index[port.node]
        free = max(cycle, free)
        for first in (registers.VL_ARBITRATION_LOW, registers.VL_ARBITRATION_HIGH):
            for entry, one in enumerate(lists.entries(random, vl_arbitration_entries(vls), vls)):
                address = registers.vl_arbitration_address(port.number, first, entry)
                yield write(free, node, address, VL_ARBITRATION_ENTRY.to_int(vl=one.vl, weight=one.weight))
                free += 1
        yield write_port(topology, free, port, PortRegister.VL_HIGH_LIMIT, random.randint(*lists.limits))
        free += 1


def _late_entries(random: Random, entries: int, vls: int) -> list[VlWeight]:
    """Some that do not count, or none, and behind them all VLs."""
    empty = random.choice((0, random.randint(0, entries - vls)))
    own = random.choices(range(vls), k=entries - vls - empty)
    counting = [*random.sample(range(vls), vls), *own]
    return [VlWeight(0, 0)] * empty + [VlWeight(vl, random.randint(*_WEIGHTS)) for vl in counting]


def _lone_entries(random: Random, entries: int, vls: int) -> list[VlWeight]:
    """All VLs, each somewhere."""
    every = [VlWeight(0, 0)] * entries
    for vl, entry in enumerate(random.sample(range(entries), vls)):
        every[entry] = VlWeight(vl, random.randint(*_WEIGHTS))
    return every


def has_late_stalls(seed: int) -> bool:
    """Whether heads wait no longer than they must, and VLs stall after a few that did."""
    return Random(f"{seed}/late stalls").random() < _SHARE


def random_late_stalls(topology: Topology, random: Random, start: int, end: int) -> Iterator[Control]:
    """Limits of all ports of switches, and how many heads in a row make a VL stall, which seldom changes."""
    ports = switch_ports(topology)
    for cycle, port in enumerate(ports, start):
        yield write_port(topology, cycle, port, PortRegister.HOQ_LIFE, 0)
    free = start + len(ports)
    later = ((cycle, random.choice(ports)) for cycle in random_times(random, _GAP, free, end)) if ports else ()
    for cycle, port in (*((free + at, port) for at, port in enumerate(ports)), *later):
        yield write_port(topology, cycle, port, PortRegister.VL_STALL_COUNT, random.choice(_STALL_COUNTS))


def has_late_timers(seed: int) -> bool:
    """Whether switches announce credits and miss those of others after so long that timers come to their upper bits:
    nobody speaks of VL 0, on which is no SL, there are no errors, and no register of these is written meanwhile."""
    return Random(f"{seed}/long timers").random() < _SHARE


def random_late_timers(random: Random, *, is_switch: bool) -> dict[str, int]:
    """Of a port, even, or as long as can be: adapters speak of a VL no more than what comes on it makes them."""
    watchdog, period = (first + 2 * random.randint(0, _BEHIND_LATE) for first in (_LATE_WATCHDOG, _LATE_PERIOD))
    return {"fc_watchdog": watchdog if is_switch else _NEVER, "fcp_period": period if is_switch else _NEVER}


def has_narrow_cables(seed: int) -> bool:
    """Whether links that may be of 4X come up with one lane, and back, again and again."""
    return Random(f"{seed}/one lane of four").random() < _SHARE


def random_narrow_cables(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Ports that begin anew with one lane alone; sweeps arm them (`cosim.stimulus.random_links.sweeps`)."""
    ports = [port for port in topology.linked_ports() if topology.pace(port) == 1]
    for cycle in random_times(random, _NARROW_GAP, start, end) if ports else ():
        port = random.choice(ports)
        count["link_setting"] += 1
        yield write_port(topology, cycle, port, PortRegister.LINK_WIDTH_ENABLED, LinkWidth.X1)
        yield write_port(topology, cycle + 1, port, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING)


def has_calls_from_sleep(seed: int) -> bool:
    """Whether ports that are to sleep when their link is lost are told not to just as they lose it."""
    return Random(f"{seed}/told as the link is lost").random() < _CALLS_SHARE


def random_calls_from_sleep(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Both ends of a link that is in Initialize begin anew, one some cycles behind the other, which loses the link
    then; again and again. Sweeps arm them in the end (`cosim.stimulus.random_links.sweeps`)."""
    free = start
    for cycle in random_times(random, _CALLS_GAP, start, end):
        if cycle < free:
            continue
        near = random.choice(topology.linked_ports())
        far, now = topology.far_end(near), cycle
        assert far is not None
        count["link_setting"] += 1
        for _ in range(_CALLS):
            behind = random.randint(1, _MOST_BEHIND)
            yield write_port(topology, now, near, PortRegister.STATE, PortState.DOWN)
            now += _TRAINED
            yield from _at_both(topology, now, near, far, PortRegister.LINK_DOWN_DEFAULT, PortPhysicalState.SLEEP)
            now += _TOLD
            yield write_port(topology, now, far, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING)
            yield write_port(topology, now + behind, near, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING)
            now += _MOST_BEHIND + _TOLD
            yield from _at_both(topology, now, near, far, PortRegister.LINK_DOWN_DEFAULT, PortPhysicalState.POLLING)
            yield from _at_both(topology, now + 2, near, far, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING)
            now += _TRAINED
        free = now


def _at_both(
    topology: Topology, cycle: int, near: Port, far: Port, register: PortRegister, value: int
) -> Iterator[Control]:
    return (write_port(topology, now, port, register, value) for now, port in enumerate((near, far), cycle))


def has_read_backs(seed: int) -> bool:
    """Whether timers and SL-to-VL entries are read while they have values that they keep for some cycles alone."""
    return Random(f"{seed}/read while held").random() < _SHARE


def random_read_backs(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """What is written, read, and made right."""
    rest: list[Control] = []
    for cycle in random_times(random, _READ_GAP, start, end):
        yield from due(rest, cycle)
        node, address, value, right = random.choice((_timer, _no_vl))(topology, random)
        if any((node, address) == (one.target, one.args[0]) for one in rest):
            continue
        count["register_slip"] += 1
        yield write(cycle, node, address, value)
        read = Control(cycle + random.randint(*_READ_AFTER), Operation.BUS_READ, node, (address, 0, 0, 0))
        heapq.heappush(rest, read)
        heapq.heappush(rest, write(cycle + random.randint(*_HELD_CYCLES), node, address, right))
    yield from due(rest, inf)


def _timer(topology: Topology, random: Random) -> tuple[int, int, int, int]:
    """(node, address, value, usual value) of a port's timer: any length that it may have, most of them of millions."""
    port, register = random.choice(topology.linked_ports()), random.choice(list(_TIMERS))
    value = max(1, random.getrandbits(PORT_REGISTER_WIDTHS[register]))
    return topology.index[port.node], registers.port_address(port.number, register), value, _TIMERS[register]


def _no_vl(topology: Topology, random: Random) -> tuple[int, int, int, int]:
    """(node, address, wrong value, right value) of an SL-to-VL entry: of a VL that the output has not."""
    ports = switch_ports(topology)
    into = random.choice(ports)
    out = random.choice([one for one in ports if one.node == into.node])
    sl = random.randrange(SERVICE_LEVELS)
    address = registers.sl_to_vl_address(into.number, out.number, sl)
    return (
        topology.index[into.node],
        address,
        random.randint(topology.vls(out), VL15),
        topology.vl(out, sl, into.number),
    )
