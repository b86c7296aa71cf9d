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
from cosim.stimulus.bus_bring_up import write
from cosim.stimulus.invented_smps import INVENTED_SMP, random_invented_smps
from cosim.stimulus.random_cc_traps import random_trap_destinations
from cosim.stimulus.random_congestion import random_congestion, random_leases
from cosim.stimulus.random_counters import (
    as_often_as_may_be,
    crowded_reads,
    has_crowded_reads,
    has_crowds_at_stuck_links,
    has_whole_counters,
    random_by_vl,
    random_counter_writes,
    random_read,
    random_reads,
    random_whole_counters,
)
from cosim.stimulus.random_expiries import (
    has_long_deferrals,
    has_mass_expiries,
    random_expiries,
    random_long_deferrals,
    random_mass_expiries,
)
from cosim.stimulus.random_links import (
    RESET_SHARE,
    are_many_outages,
    has_many_changes,
    random_changes,
    random_outages,
    random_port_downs,
    random_restarts,
    sweeps,
)
from cosim.stimulus.random_mads import has_mads, random_mad_controls
from cosim.stimulus.random_overruns import (
    has_bursts_anywhere,
    has_overrun_bursts,
    random_overrun_bursts,
    random_overruns,
)
from cosim.stimulus.random_packets import has_starved_copies
from cosim.stimulus.random_rare_settings import (
    has_calls_from_sleep,
    has_generous_limits,
    has_late_lists,
    has_late_stalls,
    has_lone_weights,
    has_narrow_cables,
    has_read_backs,
    random_calls_from_sleep,
    random_late_lists,
    random_late_stalls,
    random_narrow_cables,
    random_read_backs,
)
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
    switch_ports,
)
from cosim.stimulus.random_traps import random_subnet_managers, random_wrong_keys
from cosim.stimulus.rare_rows import random_rare_rows
from cosim.stimulus.row_errors import ROW_ERRORS, link_error, random_row_errors
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import SERVICE_LEVELS, VL15, mtu_code, operational_vls
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.parameters import SwitchParameters
from wire.registers import PortRegister
from wire.stimulus import Control, Operation, injection_target

__all__ = [
    "RANDOM_KINDS",
    "has_long_stalls",
    "has_many_outages",
    "is_calm",
    "one_a_cycle",
    "random_controls",
    "scenario_controls",
]


def one_a_cycle(controls: Iterable[Control], latest_read: float = inf) -> Iterator[Control]:
    """Controls in their order, each moved to the first cycle after the one before it where they collide.

    A read that would come more than LATEST_READ cycles late is not given: where much has waited, reads would follow
    each other closer than was drawn.
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

_STALL_GAP = (200, 10_000)
_STALL_CYCLES = (20, 2_000)
_LONG_STALL_CYCLES = (4_000, 30_000)
_LONG_STALLS_SHARE = 0.05
"""Of the runs, those in which some stalls last for so long, ..."""

_LONG_SHARE = 0.5
"""... which are this part of them."""

_FULL_CYCLES = (300, 1_000)
"""Where copies lack credits, cycles in which a buffer may be full, ..."""

_EMPTY_CYCLES = (150, 500)
"""... and in which it may be empty again."""

_LATEST_READ = 8
_STUCK_ALONE_SHARE = 0.5
"""Of the directions of links whose ports are read as often as may be, those that are stuck again and again."""


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
    long_share = _LONG_SHARE if has_long_stalls(seed) else 0
    streams = [
        _short_stalls(topology, Random(f"{seed}/stalls in turn/{host}"), host, start, end)
        if has_starved_copies(seed)
        else _random_stalls(topology, Random(f"{seed}/stalls/{host}"), host, start, end, long_share)
        for host in topology.lids
    ]
    is_crowded = has_crowded_reads(seed)
    linked = topology.linked_ports()
    stuck: list[Port] = []
    if is_crowded and has_crowds_at_stuck_links(seed):
        stuck = [port for port in switch_ports(topology) if topology.pace(port) == 1]
    in_a_row = has_mads(seed) and not is_crowded
    streams.append(random_reads(topology, Random(f"{seed}/reads"), start, end, in_a_row=in_a_row))
    if is_crowded:
        streams.append(crowded_reads(topology, Random(f"{seed}/crowds"), start, end, stuck))
    if errors and has_whole_counters(seed):
        streams.append(random_whole_counters(topology, Random(f"{seed}/halves"), start, end, count))
    streams.append(random_by_vl(topology, Random(f"{seed}/by VL"), start, end, count if errors else None))
    if has_late_lists(seed) or has_generous_limits(seed) or has_lone_weights(seed):
        streams.append(random_late_lists(topology, seed, start, end))
    else:
        streams.append(random_arbitration(topology, seed, start, end))
    streams.append(random_congestion(topology, seed, start, end))
    streams.append(random_leases(topology, seed, start, end))
    streams.append(random_trap_destinations(topology, seed, start, end))
    streams.append(random_wrong_keys(topology, seed, start, end))
    streams.append(random_subnet_managers(topology, seed, start, end))
    if errors and not is_calm(seed):
        is_read = has_mads(seed) or is_crowded
        reads = [None if is_read else partial(random_read, topology, port) for port in linked]
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
                    stuck_alone=linked[direction ^ 1] in stuck
                    or (is_crowded and Random(f"{seed}/stuck/{direction}").random() < _STUCK_ALONE_SHARE),
                    at_begin=linked[direction ^ 1] in stuck,
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
        if has_many_changes(seed):
            streams.append(random_changes(topology, Random(f"{seed}/changes"), start, end, count))
    if errors:
        streams += [
            _random_slips(topology, Random(f"{seed}/slips"), start, end, count),
            random_counter_writes(topology, Random(f"{seed}/counters"), start, end, count),
            random_register_accesses(topology, Random(f"{seed}/registers written"), start, end, count),
            random_unplugged_settings(topology, Random(f"{seed}/unplugged"), start, end, count),
            random_operational_vls(topology, Random(f"{seed}/operational VLs"), start, end, count),
            *_time_limits(topology, seed, start, end, count),
            random_partitions(topology, seed, start, end, count),
            random_forwarding(topology, Random(f"{seed}/multicast"), start, end, count),
            random_mad_controls(topology, seed, start, end),
            sweeps(topology, Random(f"{seed}/sweeps"), start, end),
            *random_rare_rows(topology, seed, start, end, count),
        ]
        if is_calm(seed) and has_overrun_bursts(seed):
            # What sets widths elsewhere may not come late.
            streams.append(random_overrun_bursts(topology, Random(f"{seed}/bursts"), start, end, count))
        if is_calm(seed) and has_bursts_anywhere(seed):
            bursts = Random(f"{seed}/bursts anywhere")
            streams.append(random_overrun_bursts(topology, bursts, start, end, count, anywhere=True))
        if has_narrow_cables(seed):
            streams.append(random_narrow_cables(topology, Random(f"{seed}/cables"), start, end, count))
        if has_calls_from_sleep(seed):
            streams.append(random_calls_from_sleep(topology, Random(f"{seed}/calls"), start, end, count))
        if has_read_backs(seed):
            streams.append(random_read_backs(topology, Random(f"{seed}/read backs"), start, end, count))
    merged = one_a_cycle(heapq.merge(*streams, key=lambda control: control.cycle), _LATEST_READ)
    return as_often_as_may_be(merged, with_agents=has_mads(seed))


def _time_limits(topology: Topology, seed: int, start: int, end: int, count: Counter[str]) -> list[Iterator[Control]]:
    """Of most runs, and of those in which all that waits comes to its limit at once, for long, or VLs stall late."""
    if has_mass_expiries(seed):
        return [random_mass_expiries(topology, Random(f"{seed}/limits of all"), start, end, count)]
    if is_calm(seed) and has_long_deferrals(seed):
        return [random_long_deferrals(topology, Random(f"{seed}/deferrals"), start, end, count)]
    expiries = random_expiries(topology, Random(f"{seed}/expiries"), start, end, count)
    if has_late_stalls(seed):
        return [random_late_stalls(topology, Random(f"{seed}/limits"), start, end), expiries]
    return [random_limits(topology, seed, start, end, count), expiries]


def is_calm(seed: int) -> bool:
    """Whether no link has errors or goes down in a run, but for rare rows, though all else is wrong at times."""
    return Random(f"{seed}/errors").random() < _CALM_SHARE


def has_many_outages(seed: int) -> bool:
    """Whether links are lost and nodes are reset all the time, where links have errors."""
    return are_many_outages(Random(f"{seed}/links"))


def has_long_stalls(seed: int) -> bool:
    """Whether hosts stall for so long that one head after the other comes to its limit."""
    return Random(f"{seed}/stalls for long").random() < _LONG_STALLS_SHARE


def _random_stalls(
    topology: Topology, random: Random, host: str, start: int, end: int, long_share: float
) -> Iterator[Control]:
    node = topology.index[host]
    slots = topology.fabric.nodes[host].vls + 1
    until = start
    for cycle in random_times(random, random_gap(random, _STALL_GAP), start, end):
        if cycle < until:
            continue
        is_long = long_share > 0 and random.random() < long_share
        until = cycle + random.randint(*(_LONG_STALL_CYCLES if is_long else _STALL_CYCLES))
        mask = random.choice(((1 << slots) - 1, 1 << random.randrange(slots), random.getrandbits(slots)))
        yield Control(cycle, Operation.RECV_STALL, node, (mask, 0, 0, 0))
        yield Control(until, Operation.RECV_STALL, node, (0, 0, 0, 0))


def _short_stalls(topology: Topology, random: Random, host: str, start: int, end: int) -> Iterator[Control]:
    """A host stalls on all data VLs again and again."""
    node, stalled, cycle = topology.index[host], (1 << topology.fabric.nodes[host].vls) - 1, start
    while cycle < end:
        yield Control(cycle, Operation.RECV_STALL, node, (stalled, 0, 0, 0))
        cycle += random.randint(*_FULL_CYCLES)
        yield Control(cycle, Operation.RECV_STALL, node, (0, 0, 0, 0))
        cycle += random.randint(*_EMPTY_CYCLES)


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
