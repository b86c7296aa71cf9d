"""Errors by name: what each does to the rows of a link, and random ones for `ironband check`."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from math import inf
from operator import xor
from random import Random
from typing import Final

from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import ErrorKind
from cosim.stimulus.bus_bring_up import initial_exchange, node_writes, write, write_port, write_states
from cosim.stimulus.random_congestion import random_congestion
from cosim.stimulus.random_mads import random_mad_controls
from cosim.stimulus.random_registers import random_brief_settings, random_register_accesses
from cosim.stimulus.random_settings import (
    due,
    random_arbitration,
    random_forwarding,
    random_gap,
    random_limits,
    random_partitions,
    random_times,
)
from cosim.stimulus.random_traps import random_subnet_managers, random_wrong_keys
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import SERVICE_LEVELS, VL15, LinkWidth, PortState, max_pkt_len, mtu_code, operational_vls
from wire.crc import lpcrc
from wire.flow_control import FLOW_CONTROL
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.parameters import SwitchParameters, reset_cycles
from wire.pma import PMA_VL_XMIT_WAIT
from wire.registers import PortRegister
from wire.stimulus import Control, Injection, Operation, Trigger, injection_target
from wire.symbols import Control as Symbol

__all__ = [
    "RANDOM_KINDS",
    "link_error",
    "one_a_cycle",
    "random_controls",
    "scenario_controls",
]

_ROW_BITS = 36
_ALL = (1 << _ROW_BITS) - 1
_LANE_3 = 0x1_0000_00FF
"""Data and K bit of lane 3 (the K bits stand above the 32 data bits, lane 0 highest)."""

_FCCL_BITS_IN_ROW_1 = 8
"""Its lower ones, on lane 0; the LPCRC follows."""

_EGP_TO_EBP = Symbol.EGP ^ Symbol.EBP
_EGP_ON_LANE_3 = 1 << 32 | Symbol.EGP
_COM_ON_LANE_1 = 1 << 34 | Symbol.COM << 16


def link_error(kind: ErrorKind, row: int = 1, bit: int = 0) -> Injection:
    """The injection that makes one error of a kind happen to the next packet (or idle row) of a link.

    bit_flip: bit `bit` of row `row` of a data packet. lost_packet, lost_flow_control: every row reads as idle
    data. truncate: idle data from row `row` on. ebp: EGP becomes EBP. stray_symbol: COM on lane 1 of an idle row.
    """
    match kind:
        case "bit_flip":
            return Injection(Trigger.DATA, row, row, flip=1 << 31 - bit)
        case "lost_packet":
            return Injection(Trigger.DATA, keep=0)
        case "lost_flow_control":
            return Injection(Trigger.LINK, keep=0)
        case "truncate":
            return Injection(Trigger.DATA, row, keep=0)
        case "ebp":
            return Injection(Trigger.DATA, at_end=True, flip=_EGP_TO_EBP)
        case "stray_symbol":
            return Injection(Trigger.IDLE, keep=0, flip=_COM_ON_LANE_1)
        case _:
            raise ValueError(f"{kind!r}: not an error of rows")


def one_a_cycle(controls: Iterable[Control]) -> Iterator[Control]:
    """Controls in their order, each moved to the first cycle after the one before it where they collide."""
    free = 0
    for control in controls:
        cycle = max(control.cycle, free)
        free = cycle + 1
        yield control if cycle == control.cycle else control._replace(cycle=cycle)


def scenario_controls(scenario: Scenario, topology: Topology, start: int) -> Iterator[Control]:
    """The stalls and errors of a scenario, in order, one a cycle."""
    controls = [*_stalls(scenario, topology, start)]
    for error in scenario.errors:
        link = topology.link_at(Port(*scenario.port_of(error.source)))
        if link is None:
            raise ValueError(f"{error.source}: has no link")
        cycle = start + error.at
        if error.kind in ("link_down", "link_up"):
            operation = Operation.LINK_DOWN if error.kind == "link_down" else Operation.LINK_UP
            controls.append(Control(cycle, operation, link[0]))
        else:
            args = link_error(error.kind, error.row, error.bit).args()
            controls.append(Control(cycle, Operation.INJECT, injection_target(*link), args))
    return one_a_cycle(sorted(controls, key=lambda control: control.cycle))


def _stalls(scenario: Scenario, topology: Topology, start: int) -> Iterator[Control]:
    """RECV_STALL at each change of a host's set of stalled slots."""
    for host, table in scenario.adapters.items():
        stalls = [stall for stall in scenario.stalls if scenario.host_of(stall.host) == host]
        for cycle in sorted({time for stall in stalls for time in (stall.start, stall.end)}):
            slots = {
                table.vls if vl == 15 else vl
                for stall in stalls
                if stall.start <= cycle < stall.end
                for vl in (stall.vls if stall.vls is not None else (*range(table.vls), 15))
            }
            mask = sum(1 << slot for slot in slots)
            yield Control(start + cycle, Operation.RECV_STALL, topology.index[host], (mask, 0, 0, 0))


def _flip(trigger: Trigger, random: Random, rows: int, *bits: int) -> Injection:
    """Flips one of a range of bits in one of the rows 0 to `rows`."""
    row = random.randint(0, rows)
    return Injection(trigger, row, row, flip=1 << random.randrange(*bits))


def _burst(random: Random, rows: int) -> Injection:
    row = random.randint(0, rows)
    return Injection(
        Trigger.DATA, row, row + random.randint(0, 3), keep=random.getrandbits(32), flip=random.getrandbits(32)
    )


def _truncated_by_idle(random: Random, rows: int) -> Injection:
    return Injection(Trigger.DATA, random.randint(1, rows), keep=0, flip=random.getrandbits(32))


def _truncated_by_end(random: Random, rows: int) -> Injection:
    row = random.randint(1, rows)
    return Injection(Trigger.DATA, row, row, keep=_ALL ^ _LANE_3, flip=_EGP_ON_LANE_3)


def _forged_flow_control(random: Random, rows: int) -> Injection:
    """Another FCCL with its right LPCRC: what a CRC of sums of bits makes of a change does not depend on the rest."""
    change = random.randrange(1, 1 << _FCCL_BITS_IN_ROW_1)
    bodies = (bytes(FLOW_CONTROL.size_bytes), bytes((0, 0, 0, change)))
    crcs = (int.from_bytes(lpcrc(body), "big") for body in bodies)
    return Injection(Trigger.LINK, 1, 1, flip=change << 24 | reduce(xor, crcs) << 8)


def _random_symbol(random: Random, rows: int) -> Injection:
    lane = random.randrange(4)
    symbol = random.choice(list(Symbol))
    flip = 1 << 35 - lane | symbol << 8 * (3 - lane)
    return Injection(Trigger.IDLE, keep=0, flip=flip)


_RANDOM: Final[dict[str, Callable[[Random, int], Injection]]] = {
    "bit_flip": lambda random, rows: _flip(Trigger.DATA, random, rows, 32),
    "k_bit_flip": lambda random, rows: _flip(Trigger.DATA, random, rows, 32, _ROW_BITS),
    "burst": _burst,
    "damaged_flow_control": lambda random, rows: _flip(Trigger.LINK, random, 1, _ROW_BITS),
    "lost_flow_control": lambda random, rows: link_error("lost_flow_control"),
    "forged_flow_control": _forged_flow_control,
    "lost_packet": lambda random, rows: link_error("lost_packet"),
    "truncated_by_idle": _truncated_by_idle,
    "truncated_by_end": _truncated_by_end,
    "ebp": lambda random, rows: link_error("ebp"),
    "stray_symbol": _random_symbol,
}

RANDOM_KINDS: Final = (
    *_RANDOM,
    "link_down",
    "width",
    "reset",
    "port_down",
    "register_slip",
    "counter_write",
    "setting",
    "refused_write",
    "time_limit",
    "partition",
    "multicast",
)
"""Errors that random_controls gives, as counted by it."""

_CALM_SHARE = 0.3
"""Of the runs, those in which no link has errors or goes down: all that is set meets full traffic."""

_ERROR_GAP = (50, 6_000)
"""Cycles from one error to the next in one direction of a link."""

_OUTAGE_GAP = (5_000, 30_000)
_RESET_SHARE = 0.3
"""Of the outages, those in which a node is reset."""

_WIDTH_SHARE = 0.25
"""Of the outages of links, those after which the link has its other width for a while."""

_OTHER_WIDTH_CYCLES = (1_000, 12_000)
_ROW_CYCLES_1X = 4
_AFTER_RESET = 100
_LINK_DOWN_CYCLES = (1, 3_000)
_PORT_DOWN_GAP = (3_000, 60_000)
_SLIP_GAP = (1_000, 15_000)
_SLIP_CYCLES = (100, 4_000)
_NO_VL_TIMES = 6
"""As often as another a single SL has no VL: the others leave much less to see of the rest."""

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
_SWEEP_CYCLES = (1_024, 4_096)
_LEFT_ARMED_SHARE = 0.25
_STALL_GAP = (200, 10_000)
_STALL_CYCLES = (20, 2_000)
_READ_GAP = (100, 2_000)
_READ: Final = (*registers.Counter, *registers.Detail, *registers.PacketCounter, *registers.CounterHigh)
_READS_IN_A_ROW = (1, 1, 1, 10)
_CYCLES_OF_READ = 3
"""In more than half of some 30 cycles no port is read, or increments may be lost (docs/pipeline.md, section 10)."""
_TYPICAL_ROWS = (2, 8, 64, 256)


def random_controls(
    topology: Topology,
    seed: int,
    start: int,
    end: int,
    *,
    errors: bool,
    injected: Counter[str] | None = None,
    reset_share: float = _RESET_SHARE,
) -> Iterator[Control]:
    """Random host stalls, counter reads, wrong keys, VL arbitration, congestion control, and with `errors` all kinds.

    One operation a cycle.

    Ports that an error took down are armed and activated anew by a sweep that runs every few thousand cycles.
    What is drawn is counted in `injected` by kind. Of the outages, `reset_share` are nodes that are reset.
    """
    count = injected if injected is not None else Counter()
    streams = [_random_stalls(topology, Random(f"{seed}/stalls/{host}"), host, start, end) for host in topology.lids]
    streams.append(_random_reads(topology, Random(f"{seed}/reads"), start, end))
    streams.append(_random_by_vl(topology, Random(f"{seed}/by VL"), start, end, count if errors else None))
    streams.append(random_arbitration(topology, Random(f"{seed}/arbitration"), start, end))
    streams.append(random_congestion(topology, seed, start, end))
    streams.append(random_wrong_keys(topology, seed, start, end))
    streams.append(random_subnet_managers(topology, seed, start, end))
    if errors and Random(f"{seed}/errors").random() >= _CALM_SHARE:
        streams += [
            *(
                _random_row_errors(Random(f"{seed}/errors/{link}"), link, start, end, count)
                for link in range(2 * len(topology.fabric.links))
            ),
            _random_outages(topology, Random(f"{seed}/links"), start, end, count, reset_share),
            _random_port_downs(topology, Random(f"{seed}/ports"), start, end, count),
            random_brief_settings(topology, Random(f"{seed}/watchdogs"), start, end, count),
        ]
    if errors:
        streams += [
            _random_slips(topology, Random(f"{seed}/slips"), start, end, count),
            _random_counter_writes(topology, Random(f"{seed}/counters"), start, end, count),
            random_register_accesses(topology, Random(f"{seed}/registers written"), start, end, count),
            random_limits(topology, Random(f"{seed}/limits"), start, end, count),
            random_partitions(topology, Random(f"{seed}/partitions"), start, end, count),
            random_forwarding(topology, Random(f"{seed}/multicast"), start, end, count),
            random_mad_controls(topology, seed, start, end),
            _sweeps(topology, Random(f"{seed}/sweeps"), start, end),
        ]
    return one_a_cycle(heapq.merge(*streams, key=lambda control: control.cycle))


def _random_stalls(topology: Topology, random: Random, host: str, start: int, end: int) -> Iterator[Control]:
    node = topology.index[host]
    slots = topology.fabric.nodes[host].vls + 1
    until = start
    for cycle in random_times(random, random_gap(random, _STALL_GAP), start, end):
        if cycle < until:
            continue
        until = cycle + random.randint(*_STALL_CYCLES)
        mask = random.choice(((1 << slots) - 1, 1 << random.randrange(slots), random.getrandbits(slots)))
        yield Control(cycle, Operation.RECV_STALL, node, (mask, 0, 0, 0))
        yield Control(until, Operation.RECV_STALL, node, (0, 0, 0, 0))


def _random_reads(topology: Topology, random: Random, start: int, end: int) -> Iterator[Control]:
    """Of a port's counters, some of them one after the other: what is counted meanwhile waits."""
    ports = topology.linked_ports()
    until = start
    for cycle in random_times(random, random_gap(random, _READ_GAP), start, end):
        if cycle < until:
            continue
        port, reads = random.choice(ports), random.choice(_READS_IN_A_ROW)
        until = cycle + _CYCLES_OF_READ * reads
        for now in range(cycle, until, _CYCLES_OF_READ):
            address = registers.port_address(port.number, random.choice(_READ))
            yield Control(now, Operation.BUS_READ, topology.index[port.node], (address, 0, 0, 0))


def _random_row_errors(random: Random, direction: int, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    kinds, gap = list(_RANDOM), random_gap(random, _ERROR_GAP)
    for cycle in random_times(random, gap, start, end):
        kind = random.choice(kinds)
        injection = _RANDOM[kind](random, random.choice(_TYPICAL_ROWS))
        count[kind] += 1
        yield Control(cycle, Operation.INJECT, direction, injection.args())


def _random_outages(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str], reset_share: float
) -> Iterator[Control]:
    """One after the other: links that are down for a while, and nodes that are reset."""
    until = start
    for cycle in random_times(random, _OUTAGE_GAP, start, end):
        if cycle < until:
            continue
        if random.random() < reset_share:
            count["reset"] += 1
            controls = _reset(topology, random.choice(list(topology.fabric.nodes)), cycle)
            until = controls[-1].cycle + 1
            yield from controls
            continue
        link = random.randrange(len(topology.fabric.links))
        if random.random() < _WIDTH_SHARE:
            count["width"] += 1
            controls = _other_width(topology, random, link, cycle)
            until = controls[-1].cycle + 1
            yield from controls
            continue
        until = cycle + random.choice((random.randint(1, 20), random.randint(*_LINK_DOWN_CYCLES)))
        count["link_down"] += 1
        yield Control(cycle, Operation.LINK_DOWN, link)
        yield Control(until, Operation.LINK_UP, link)


def _other_width(topology: Topology, random: Random, link: int, cycle: int) -> list[Control]:
    """A link goes down, comes back with its other width, and after a while likewise with its own.

    WIDTH is written before a port is Armed and while no packet arrives for it (docs/pipeline.md, section 2): both are
    set Down, for longer than any takes.
    """
    longest = max(max_pkt_len(mtu_code(node.mtu)) for node in topology.fabric.nodes.values())
    pause = _ROW_CYCLES_1X * (longest + 1)
    ends = [port for port in topology.linked_ports() if (at := topology.link_at(port)) is not None and at[0] == link]
    own = LinkWidth.X4 if topology.pace(ends[0]) == 1 else LinkWidth.X1
    other = LinkWidth.X1 if own == LinkWidth.X4 else LinkWidth.X4

    def change(cycle: int, width: LinkWidth) -> list[Control]:
        values = [
            (port, *one) for one in ((PortRegister.STATE, PortState.DOWN), (PortRegister.WIDTH, width)) for port in ends
        ]
        writes = [write_port(topology, now, *one) for now, one in enumerate(values, cycle + 1)]
        return [
            Control(cycle, Operation.LINK_DOWN, link),
            *writes,
            Control(writes[-1].cycle + pause, Operation.LINK_UP, link),
        ]

    there = change(cycle, other)
    return there + change(there[-1].cycle + random.randint(*_OTHER_WIDTH_CYCLES), own)


def _reset(topology: Topology, node: str, cycle: int) -> list[Control]:
    """RESET of a node, which is set up again then; sweeps do the rest. Its 1X links wait for their widths."""
    ports = [port for port in topology.linked_ports() if port.node == node and topology.pace(port) != 1]
    links = [link[0] for link in map(topology.link_at, ports) if link is not None]
    controls = [Control(now, Operation.LINK_DOWN, link) for now, link in enumerate(links, cycle)]
    cycle += len(links)
    controls.append(Control(cycle, Operation.RESET, topology.index[node]))
    writes = node_writes(topology, node, cycle + reset_cycles(topology.fabric.nodes[node]) + _AFTER_RESET)
    controls += writes
    return controls + [Control(now, Operation.LINK_UP, link) for now, link in enumerate(links, writes[-1].cycle + 1)]


def _random_port_downs(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    ports = topology.linked_ports()
    for cycle in random_times(random, _PORT_DOWN_GAP, start, end):
        count["port_down"] += 1
        yield write_port(topology, cycle, random.choice(ports), PortRegister.STATE, PortState.DOWN)


def _random_slips(topology: Topology, random: Random, start: int, end: int, count: Counter[str]) -> Iterator[Control]:
    """Wrong values in tables and registers for a while: packets are refused or swallowed, none goes astray."""
    ends: list[Control] = []
    for cycle in random_times(random, random_gap(random, _SLIP_GAP), start, end):
        yield from due(ends, cycle)
        node, address, wrong, right = _slip(topology, random)
        if any((node, address) == (one.target, one.args[0]) for one in ends):
            continue
        count["register_slip"] += 1
        yield write(cycle, node, address, wrong)
        heapq.heappush(ends, write(cycle + random.randint(*_SLIP_CYCLES), node, address, right))
    yield from due(ends, inf)


def _slip(topology: Topology, random: Random) -> tuple[int, int, int, int]:
    """(node, address, wrong value, right value) of an LFT entry or its top, an SL-to-VL entry, or a port's limits."""
    port = random.choice(topology.linked_ports())
    node = topology.fabric.nodes[port.node]
    index = topology.index[port.node]
    if isinstance(node, SwitchParameters) and random.random() < 0.7:
        table = topology.tables[port.node]
        lid = random.choice(sorted(table))
        top = max(table)
        sl = random.randrange(SERVICE_LEVELS)
        out = random.choice([one for one in topology.linked_ports() if one.node == port.node])
        no_vl, right_vl = random.choice((VL15, *range(topology.vls(out), VL15))), topology.vl(out, sl, port.number)
        to_no_vl = index, registers.sl_to_vl_address(port.number, out.number, sl), no_vl, right_vl
        return random.choice(
            (
                (index, registers.lft_address(lid), random.choice((0, node.ports + 1, LFT_NO_ROUTE)), table[lid]),
                (index, registers.node_address(registers.NodeRegister.LINEAR_FDB_TOP), random.randrange(top), top),
                *[to_no_vl] * _NO_VL_TIMES,
            )
        )
    if random.random() < 0.5:
        right = int(mtu_code(topology.mtu(port)))
        return index, registers.port_address(port.number, PortRegister.NEIGHBOR_MTU), random.randint(1, right), right
    right = operational_vls(topology.vls(port))
    return index, registers.port_address(port.number, PortRegister.OPERATIONAL_VLS), random.randint(1, right), right


def _random_counter_writes(
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


def _random_by_vl(
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


def _sweeps(topology: Topology, random: Random, start: int, end: int) -> Iterator[Control]:
    """Arm and activate every link again and again; a port that is Active ignores both.

    Of some links only one end is activated: the first data packet of that does it at the other.
    """
    ports = topology.linked_ports()
    exchange = max(initial_exchange(topology, port) for port in ports)
    period = max(random.choice(_SWEEP_CYCLES), exchange + 1) + len(ports)
    for cycle in range(start + period, end, period):
        yield from write_states(topology, cycle, PortState.ARMED)
        left = {far for port in ports if (far := topology.far_end(port)) and random.random() < _LEFT_ARMED_SHARE}
        activated = write_states(topology, cycle + len(ports) + exchange, PortState.ACTIVE)
        for port, control in zip(ports, activated, strict=True):
            if port not in left:
                yield control
