"""Settings written at random while packets flow: VL arbitration, time limits, partitions, multicast forwarding."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Final

from cosim.stimulus.bus_bring_up import multicast_entries, write, write_port
from cosim.stimulus.random_groups import random_group
from cosim.stimulus.random_packets import random_p_key
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, P_KEY_DEFAULT, VL15, operational_vls
from wire.forwarding_tables import MULTICAST_FORWARDING_TABLE
from wire.parameters import SwitchParameters, vl_arbitration_entries
from wire.port_tables import P_KEY_TABLE, VL_ARBITRATION_ENTRY
from wire.registers import NodeRegister, PartitionCheck, PortRegister
from wire.stimulus import Control
from wire.time_limits import MAX_EXPONENT, NO_LIMIT, TICK_CYCLES
from wire.vl_arbitration import VlWeight

__all__ = [
    "adapter_ports",
    "due",
    "has_limits",
    "has_low_lists_alone",
    "has_moving_p_keys",
    "has_partitions",
    "has_settled_arbitration",
    "has_settled_limits",
    "random_arbitration",
    "random_forwarding",
    "random_gap",
    "random_high_limit",
    "random_limits",
    "random_operational_vls",
    "random_partitions",
    "random_times",
    "random_vl_weight",
    "switch_ports",
]

_TIMES_AS_OFTEN: Final = (1, 1, 4, 16)
_ARBITRATION_GAP: Final = (20, 800)
_SETTLED_ARBITRATION_SHARE: Final = 0.2
"""Of the runs, those with VL arbitration lists that stay for long: what a high list has left comes to its end."""

_SETTLED_ARBITRATION_GAP: Final = (4_000, 30_000)
_HIGH_LIMIT_SHARE: Final = 0.1
_IN_USE_SHARE: Final = 0.9
_SPARSE_SHARE: Final = 0.08
"""Of what is written of lists, all entries of a port at once, of which none is of some VLs, ..."""

_COUNTING_SHARES: Final = (1, 0.4, 0.15)
"""... and in some no more than so many count."""

_LOW_ALONE_SHARE: Final = 0.2
"""Of the runs, those with low lists alone: of a VL that is in a high one, these are seldom asked."""

_LIMITED_SHARE: Final = 0.5
"""Of the runs, those with time limits; likewise with partitions."""

_LIMIT_GAP: Final = (100, 5_000)
_SETTLED_SHARE: Final = 0.3
_SETTLED_GAP: Final = (9_000, 40_000)
"""Longer than a stall at the shortest limit."""

_AT_TICKS_SHARE: Final = 0.5
_BEHIND_TICK: Final = 3
_IN_A_ROW: Final = (1, 1, 1, 4)
_EXPONENTS: Final = (0, 0, 0, 1, 1, 2, MAX_EXPONENT, NO_LIMIT)
_LONG_SHARE: Final = 0.2
"""Of exponents, those of limits that are met seldom, or never: too soon it may be anyway."""

_STALL_COUNTS: Final = (0, 1, 1, 2, 7)
_LIMITS_OF_PORTS: Final = {PortRegister.VL_STALL_COUNT: _STALL_COUNTS, PortRegister.HOQ_LIFE: _EXPONENTS}
_PARTITIONED_SHARE: Final = 0.5
_PARTITION_GAP: Final = (30, 1_500)
_CHECKS_SHARE: Final = 0.2
"""Of what is written for partitions, what is checked; the rest are P_Keys."""

_FIRST_KEYS: Final = 4
_DEFAULT_KEY_SHARES: Final = (0.3, 0.02)
"""In the second case most tables have no entry that lets most packets pass."""

_MOVING_SHARE: Final = 0.1
"""Of the runs with partitions, those in which a table has no P_Key twice: each of its entries is all that lets pass."""

_PARTITION: Final = (1 << P_KEY_TABLE.entry.width - 1) - 1
"""Bits of a P_Key that say which partition it is of; the other is that of a full member."""

_CHECKS_OF_MOVING: Final = (0, PartitionCheck.INBOUND | PartitionCheck.OUTBOUND)
_MOVING_GAP: Final = (25, 100)
_NEAR_SHARE: Final = 0.5
"""Of the P_Keys that move, those of which a bit is another than in packets'."""

_GONE_SHARE: Final = 0.3
"""Of the moves, those to no entry."""

_VLS_SHARE: Final = 0.5
_VLS_GAP: Final = (500, 8_000)
_VLS_CHANGES: Final = (1, 8, 64)
_MOST_VLS_CYCLES: Final = (20, 100)
"""From one change to the next: about as many as a short packet takes, or a few of these."""

_FORWARDING_GAP: Final = (50, 3_000)
_MFT_SHARE: Final = 0.7
"""Of what is written for groups, MFT entries."""

_RIGHT_MFT_SHARE: Final = 0.5
"""Of these, those that bring-up writes."""

_PORT_BITS: Final = MULTICAST_FORWARDING_TABLE.entry.width
_NO_PORT: Final = 255


def random_times(random: Random, gap: tuple[int, int], start: int, end: int) -> Iterator[int]:
    """Cycles from START to END, so far apart."""
    cycle = start + random.randint(*gap)
    while cycle < end:
        yield cycle
        cycle += random.randint(*gap)


def random_gap(random: Random, gap: tuple[int, int]) -> tuple[int, int]:
    """In some runs as given, in others much less: what is rare in a mixture is seen where there is much of it."""
    times = random.choice(_TIMES_AS_OFTEN)
    least, most = gap
    return -(-least // times), -(-most // times)


def due(waiting: list[Control], cycle: float) -> Iterator[Control]:
    """The operations of a heap for CYCLE or before, which leave it."""
    while waiting and waiting[0].cycle <= cycle:
        yield heapq.heappop(waiting)


def has_low_lists_alone(seed: int) -> bool:
    """Whether the high VL arbitration lists stay empty."""
    return Random(f"{seed}/low lists alone").random() < _LOW_ALONE_SHARE


def has_settled_arbitration(seed: int) -> bool:
    """Whether VL arbitration lists seldom change."""
    return Random(f"{seed}/settled arbitration").random() < _SETTLED_ARBITRATION_SHARE


def random_arbitration(topology: Topology, seed: int, start: int, end: int) -> Iterator[Control]:
    """Entries of VL arbitration lists, in some runs of the low ones alone, and limits of the high ones."""
    random, high = Random(f"{seed}/arbitration"), not has_low_lists_alone(seed)
    ports = [port for port in topology.linked_ports() if topology.fabric.nodes[port.node].vls > 1]
    gap, until = random_gap(random, _ARBITRATION_GAP), start
    if has_settled_arbitration(seed):
        gap = _SETTLED_ARBITRATION_GAP
    for cycle in random_times(random, gap, start, end) if ports else ():
        if cycle < until:
            continue
        port = random.choice(ports)
        vls = topology.fabric.nodes[port.node].vls
        if high and random.random() < _SPARSE_SHARE:
            sparse = _sparse_lists(topology, random, port, cycle)
            until = cycle + len(sparse)
            yield from sparse
            continue
        if random.random() < _HIGH_LIMIT_SHARE:
            yield write_port(topology, cycle, port, PortRegister.VL_HIGH_LIMIT, random_high_limit(random))
            continue
        first = random.choice((registers.VL_ARBITRATION_LOW, registers.VL_ARBITRATION_HIGH))
        if not high:
            first = registers.VL_ARBITRATION_LOW
        entry = registers.vl_arbitration_address(port.number, first, random.randrange(vl_arbitration_entries(vls)))
        one = random_vl_weight(random, vls)
        yield write(cycle, topology.index[port.node], entry, VL_ARBITRATION_ENTRY.to_int(vl=one.vl, weight=one.weight))


def _sparse_lists(topology: Topology, random: Random, port: Port, cycle: int) -> list[Control]:
    """Both lists of a port, without some VLs, in few places, or empty: VLs in neither go when others may not."""
    vls, node = topology.fabric.nodes[port.node].vls, topology.index[port.node]
    controls: list[Control] = []
    for first in (registers.VL_ARBITRATION_LOW, registers.VL_ARBITRATION_HIGH):
        some = random.sample(range(vls), random.randint(0, vls))
        share = random.choice(_COUNTING_SHARES) if some else 0
        for entry in range(vl_arbitration_entries(vls)):
            counts = random.random() < share
            one = VlWeight(random.choice(some), random.randint(1, 12)) if counts else VlWeight(0, 0)
            address = registers.vl_arbitration_address(port.number, first, entry)
            value = VL_ARBITRATION_ENTRY.to_int(vl=one.vl, weight=one.weight)
            controls.append(write(cycle + len(controls), node, address, value))
    return controls


def random_vl_weight(random: Random, vls: int) -> VlWeight:
    """An entry of a list: small weights are overdrawn, some entries and VLs do not count."""
    weight = random.choice((0, random.randint(1, 12), random.randint(1, 255)))
    return VlWeight(random.randrange(vls) if random.random() < _IN_USE_SHARE else random.randrange(VL15), weight)


def random_high_limit(random: Random) -> int:
    """Of the high list: none, little, much, endless."""
    return random.choice((0, 1, random.randint(2, 254), 255))


def has_limits(seed: int) -> bool:
    """Whether there are limits of waiting."""
    return _of_limits(seed) is not None


def has_settled_limits(seed: int) -> bool:
    """Whether limits of waiting are for all ports, and seldom change: VLs stall, and go on."""
    random = _of_limits(seed)
    return random is not None and random.random() < _SETTLED_SHARE


def _of_limits(seed: int) -> Random | None:
    """What limits are drawn from, in the runs that have some."""
    random = Random(f"{seed}/limits")
    return random if random.random() < _LIMITED_SHARE else None


def random_limits(topology: Topology, seed: int, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """In some runs limits of waiting in switches, short enough to be met, and when a VL stalls.

    In some of these all ports get theirs at the beginning, as from a Subnet Manager, and seldom others; in half of them
    they are written just behind ticks, when heads expire. Some writes to a port follow each other.
    """
    ports, random = switch_ports(topology), _of_limits(seed)
    if random is None or not ports:
        return
    is_settled, free = random.random() < _SETTLED_SHARE, start
    gap, at_ticks = random_gap(random, _LIMIT_GAP), random.random() < _AT_TICKS_SHARE
    if is_settled:
        gap = _SETTLED_GAP
        for free, (port, (register, values)) in enumerate(product(ports, _LIMITS_OF_PORTS.items()), start):
            yield write_port(topology, free, port, register, random.choice(values))
    for cycle in random_times(random, gap, free, end):
        first = cycle - cycle % TICK_CYCLES + random.randint(0, _BEHIND_TICK) if at_ticks else cycle
        if first <= free:
            continue
        port, free = random.choice(ports), first + random.choice(_IN_A_ROW)
        for now in range(first, free):
            count["time_limit"] += 1
            match random.randrange(4):
                case 0:
                    yield write_port(topology, now, port, PortRegister.VL_STALL_COUNT, random.choice(_STALL_COUNTS))
                case 1:
                    address = registers.node_address(NodeRegister.LIFE_TIME)
                    yield write(now, topology.index[port.node], address, _random_exponent(random))
                case _:
                    yield write_port(topology, now, port, PortRegister.HOQ_LIFE, _random_exponent(random))


def _random_exponent(random: Random) -> int:
    """Of a time limit."""
    return random.randint(0, NO_LIMIT) if random.random() < _LONG_SHARE else random.choice(_EXPONENTS)


def random_operational_vls(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """In some runs ports whose operational VLs change several times while a packet, or the next, is on its way."""
    ports = [port for port in topology.linked_ports() if topology.vls(port) > 1]
    if random.random() >= _VLS_SHARE or not ports:
        return
    until = start
    for cycle in random_times(random, random_gap(random, _VLS_GAP), start, end):
        if cycle < until:
            continue
        port, most, until = random.choice(ports), random.choice(_MOST_VLS_CYCLES), cycle
        count["register_slip"] += 1
        right = operational_vls(topology.vls(port))
        for value in (*(random.randint(1, right) for _ in range(random.choice(_VLS_CHANGES))), right):
            yield write_port(topology, until, port, PortRegister.OPERATIONAL_VLS, value)
            until += random.randint(1, most)


def has_partitions(seed: int) -> bool:
    """Whether P_Keys of switch ports, and what these check, are written."""
    return Random(f"{seed}/partitions").random() < _PARTITIONED_SHARE


def has_moving_p_keys(seed: int) -> bool:
    """Whether these P_Keys move from entry to entry."""
    return has_partitions(seed) and Random(f"{seed}/P_Keys that move").random() < _MOVING_SHARE


def random_partitions(topology: Topology, seed: int, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """In some runs P_Keys of switch ports, and what these check."""
    random = Random(f"{seed}/partitions")
    ports = switch_ports(topology)
    if random.random() >= _PARTITIONED_SHARE or not ports:
        return
    default_share = random.choice(_DEFAULT_KEY_SHARES)
    if has_moving_p_keys(seed):
        yield from _moving_p_keys(topology, Random(f"{seed}/moves"), start, end, count)
        return
    for cycle in random_times(random, random_gap(random, _PARTITION_GAP), start, end):
        port = random.choice(ports)
        count["partition"] += 1
        if random.random() < _CHECKS_SHARE:
            checks = random.choice((0, random.getrandbits(len(PartitionCheck))))
            yield write_port(topology, cycle, port, PortRegister.PARTITION, checks)
            continue
        entry = random.choice((random.randrange(_FIRST_KEYS), random.randrange(P_KEY_TABLE.count)))
        key = P_KEY_DEFAULT if random.random() < default_share else random_p_key(random)
        yield write(cycle, topology.index[port.node], registers.p_key_address(port.number, entry), key)


def _moving_p_keys(topology: Topology, random: Random, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """P_Keys of tables that are mostly checked, each in one entry of a table or in none."""
    tables = {port: {0: P_KEY_DEFAULT} for port in switch_ports(topology)}
    for cycle in random_times(random, _MOVING_GAP, start, end):
        port, table = random.choice(list(tables.items()))
        count["partition"] += 1
        if random.random() < _CHECKS_SHARE:
            checks = random.getrandbits(len(PartitionCheck)) | random.choice(_CHECKS_OF_MOVING)
            yield write_port(topology, cycle, port, PortRegister.PARTITION, checks)
            continue
        key = P_KEY_DEFAULT if random.random() < max(_DEFAULT_KEY_SHARES) else random_p_key(random)
        if random.random() < _NEAR_SHARE:
            key ^= 1 << random.randrange(_PARTITION.bit_length())
        entry = None if random.random() < _GONE_SHARE else random.randrange(P_KEY_TABLE.count)
        for place, value in _moved(table, entry, key).items():
            yield write(cycle, topology.index[port.node], registers.p_key_address(port.number, place), value)


def _moved(table: dict[int, int], entry: int | None, key: int) -> dict[int, int]:
    """What is written so that a table has a partition's P_Key in this entry alone, or in none."""
    written = {place: 0 for place, other in table.items() if (other ^ key) & _PARTITION == 0}
    for place in written:
        del table[place]
    if entry is not None:
        written[entry] = table[entry] = key
    return written


def random_forwarding(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Where there are groups: MFT entries, and what is made of LIDs that are in none."""
    switches = [name for name, node in topology.fabric.nodes.items() if isinstance(node, SwitchParameters)]
    gap = random_gap(random, _FORWARDING_GAP)
    for cycle in random_times(random, gap, start, end) if topology.groups else ():
        name = random.choice(switches)
        node, address, value = _forwarding_entry(topology, random, name)
        count["multicast"] += 1
        yield write(cycle, node, address, value)


def _forwarding_entry(topology: Topology, random: Random, switch: str) -> tuple[int, int, int]:
    """(node, address, value)."""
    index, ports = topology.index[switch], topology.fabric.port_count(topology.fabric.nodes[switch])
    if random.random() < _MFT_SHARE:
        right = list(multicast_entries(topology, switch))
        if right and random.random() < _RIGHT_MFT_SHARE:
            return random.choice(right)
        mlid = random_group(topology, random, others=True)
        part = random.randint(0, ports // _PORT_BITS)
        mask = random.choice((0, *(random.getrandbits(_PORT_BITS) for _ in range(3))))
        return index, registers.mft_address(mlid, part), mask if topology.has_one_hop else 0
    group = random_group(topology, random, others=True)
    port = random.choice((_NO_PORT, random.randint(0, ports + 1))) if topology.has_one_hop else _NO_PORT
    tops = 0, 0, 0, group, LID_MULTICAST_MIN - 1, LID_MULTICAST_MAX
    register, value = random.choice(
        (
            (NodeRegister.MULTICAST_FDB_TOP, random.choice(tops)),
            (NodeRegister.DEFAULT_MULTICAST_PRIMARY, port),
            (NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY, port),
        )
    )
    return index, registers.node_address(register), value


def adapter_ports(topology: Topology) -> list[Port]:
    """The linked ports of adapters."""
    return [port for port in topology.linked_ports() if port.node in topology.lids]


def switch_ports(topology: Topology) -> list[Port]:
    """The linked ports of switches."""
    nodes = topology.fabric.nodes
    return [port for port in topology.linked_ports() if isinstance(nodes[port.node], SwitchParameters)]
