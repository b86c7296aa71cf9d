"""What happens to a fabric at given times: stalls and errors of a scenario, and random ones for `ironband check`."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from math import inf
from random import Random
from typing import Final

from cosim.scenario.scenario import Scenario
from cosim.stimulus.bus_bring_up import write, write_port
from cosim.stimulus.invented_smps import INVENTED_SMP, random_invented_smps
from cosim.stimulus.random_cc_traps import random_trap_destinations
from cosim.stimulus.random_congestion import random_congestion, random_leases
from cosim.stimulus.random_expiries import random_expiries
from cosim.stimulus.random_links import RESET_SHARE, random_outages, random_port_downs, random_restarts, sweeps
from cosim.stimulus.random_mads import has_mads, random_mad_controls
from cosim.stimulus.random_overruns import random_overruns
from cosim.stimulus.random_registers import random_brief_settings, random_register_accesses, random_unplugged_settings
from cosim.stimulus.random_settings import (
    due,
    random_arbitration,
    random_forwarding,
    random_gap,
    random_limits,
    random_operational_vls,
    random_partitions,
    random_times,
)
from cosim.stimulus.random_traps import random_subnet_managers, random_wrong_keys
from cosim.stimulus.row_errors import ROW_ERRORS, link_error, random_row_errors
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import SERVICE_LEVELS, VL15, mtu_code, operational_vls
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.parameters import SwitchParameters
from wire.pma import PMA_VL_XMIT_WAIT
from wire.registers import PortRegister
from wire.stimulus import Control, Operation, injection_target

__all__ = [
    "RANDOM_KINDS",
    "is_calm",
    "one_a_cycle",
    "random_controls",
    "scenario_controls",
]


def one_a_cycle(controls: Iterable[Control], latest_read: float = inf) -> Iterator[Control]:
    """Controls in their order, each moved to the first cycle after the one before it where they collide.

    A read that would come more than LATEST_READ cycles late is not given: where much has waited, reads would follow
    each other closer than was drawn, and a port's counters would lose what they count (docs/pipeline.md, section 10).
    """
    free = 0
    for control in controls:
        cycle = max(control.cycle, free)
        free = cycle + 1
        if control.operation == Operation.BUS_READ and cycle > control.cycle + latest_read:
            continue
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


RANDOM_KINDS: Final = (
    *ROW_ERRORS,
    INVENTED_SMP,
    "overrun",
    "link_down",
    "width",
    "link_setting",
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
_STALL_GAP = (200, 10_000)
_STALL_CYCLES = (20, 2_000)
_READ_GAP = (100, 2_000)
_READ: Final = (*registers.Counter, *registers.Detail, *registers.PacketCounter, *registers.CounterHigh)
_READS_IN_A_ROW = (1, 1, 1, 10)
_LATEST_READ = 8
_CYCLES_OF_READ = 3
"""In more than half of some 30 cycles no port is read, or increments may be lost (docs/pipeline.md, section 10)."""


def random_controls(
    topology: Topology,
    seed: int,
    start: int,
    end: int,
    *,
    errors: bool,
    injected: Counter[str] | None = None,
    reset_share: float = RESET_SHARE,
) -> Iterator[Control]:
    """Random host stalls, counter reads, wrong keys, VL arbitration, congestion control, and with `errors` all kinds.

    One operation a cycle.

    Ports that an error took down are armed and activated anew by a sweep that runs every few thousand cycles; some of
    these wake those asleep.
    What is drawn is counted in `injected` by kind. Of the outages, `reset_share` are nodes that are reset.
    """
    count = injected if injected is not None else Counter()
    streams = [_random_stalls(topology, Random(f"{seed}/stalls/{host}"), host, start, end) for host in topology.lids]
    streams.append(_random_reads(topology, Random(f"{seed}/reads"), start, end, in_a_row=has_mads(seed)))
    streams.append(_random_by_vl(topology, Random(f"{seed}/by VL"), start, end, count if errors else None))
    streams.append(random_arbitration(topology, seed, start, end))
    streams.append(random_congestion(topology, seed, start, end))
    streams.append(random_leases(topology, seed, start, end))
    streams.append(random_trap_destinations(topology, seed, start, end))
    streams.append(random_wrong_keys(topology, seed, start, end))
    streams.append(random_subnet_managers(topology, seed, start, end))
    if errors and not is_calm(seed):
        linked = topology.linked_ports()
        reads = [None if has_mads(seed) else partial(_random_read, topology, port) for port in linked]
        streams += [
            *(
                random_row_errors(
                    Random(f"{seed}/errors/{direction}"),
                    direction,
                    topology.pace(port),
                    start,
                    end,
                    count,
                    reads[direction ^ 1],
                )
                for direction, port in enumerate(linked)
            ),
            *(
                random_invented_smps(
                    Random(f"{seed}/SMPs/{direction}"), direction, topology.pace(port), start, end, count
                )
                for direction, port in enumerate(topology.linked_ports())
            ),
            random_overruns(topology, Random(f"{seed}/overruns"), start, end, count),
            random_outages(
                topology,
                Random(f"{seed}/links"),
                start,
                end,
                count,
                reset_share,
                Random(f"{seed}/haste"),
                Random(f"{seed}/link settings"),
            ),
            random_port_downs(topology, Random(f"{seed}/ports"), start, end, count),
            random_restarts(topology, Random(f"{seed}/restarts"), start, end, count),
            random_brief_settings(topology, Random(f"{seed}/watchdogs"), start, end, count),
        ]
    if errors:
        streams += [
            _random_slips(topology, Random(f"{seed}/slips"), start, end, count),
            _random_counter_writes(topology, Random(f"{seed}/counters"), start, end, count),
            random_register_accesses(topology, Random(f"{seed}/registers written"), start, end, count),
            random_unplugged_settings(topology, Random(f"{seed}/unplugged"), start, end, count),
            random_operational_vls(topology, Random(f"{seed}/operational VLs"), start, end, count),
            random_limits(topology, seed, start, end, count),
            random_expiries(topology, Random(f"{seed}/expiries"), start, end, count),
            random_partitions(topology, seed, start, end, count),
            random_forwarding(topology, Random(f"{seed}/multicast"), start, end, count),
            random_mad_controls(topology, seed, start, end),
            sweeps(topology, Random(f"{seed}/sweeps"), start, end),
        ]
    return one_a_cycle(heapq.merge(*streams, key=lambda control: control.cycle), _LATEST_READ)


def is_calm(seed: int) -> bool:
    """Whether no link has errors or goes down in a run, though all else is wrong at times."""
    return Random(f"{seed}/errors").random() < _CALM_SHARE


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


def _random_reads(topology: Topology, random: Random, start: int, end: int, *, in_a_row: bool) -> Iterator[Control]:
    """Of a port's counters, some of them one after the other, if they may be: what is counted meanwhile waits."""
    ports = topology.linked_ports()
    until = start
    for cycle in random_times(random, random_gap(random, _READ_GAP), start, end):
        if cycle < until:
            continue
        port, reads = random.choice(ports), random.choice(_READS_IN_A_ROW) if in_a_row else 1
        until = cycle + _CYCLES_OF_READ * reads
        for now in range(cycle, until, _CYCLES_OF_READ):
            yield _random_read(topology, port, random, now)


def _random_read(topology: Topology, port: Port, random: Random, cycle: int) -> Control:
    """Of one of the port's counters."""
    address = registers.port_address(port.number, random.choice(_READ))
    return Control(cycle, Operation.BUS_READ, topology.index[port.node], (address, 0, 0, 0))


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
