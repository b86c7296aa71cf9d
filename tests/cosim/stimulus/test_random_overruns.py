"""Receive buffers that run over: forged credits of adapters and switches whose packets nobody takes."""

from collections import Counter, defaultdict
from itertools import count
from random import Random

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.injection import is_calm, random_controls
from cosim.stimulus.random_overruns import (
    has_bursts_anywhere,
    has_overrun_bursts,
    random_overrun_bursts,
    random_overruns,
)
from cosim.stimulus.row_errors import starts_data
from wire import registers
from wire.registers import PortRegister, place_of_address
from wire.stimulus import Injection, Operation, Trigger, injection_target

TOPOLOGY = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
SEED_WITHOUT, SEED = 2, 1
CYCLES = 1_000_000
ACCESSES = (Operation.BUS_READ, Operation.BUS_WRITE)


def test_some_runs_have_none():
    assert not list(random_overruns(TOPOLOGY, Random(SEED_WITHOUT), 0, 400_000, Counter()))


def test_what_a_port_announces_is_forged_while_hosts_take_nothing():
    counted: Counter[str] = Counter()
    controls = list(random_overruns(TOPOLOGY, Random(SEED), 0, CYCLES, counted))
    assert counted["overrun"] > 20
    cycles = [one.cycle for one in controls]
    assert cycles == sorted(cycles)
    hosts = {TOPOLOGY.index[host] for host in TOPOLOGY.lids}
    stalls = [one for one in controls if one.operation == Operation.RECV_STALL]
    assert {one.target for one in stalls} == hosts
    of_ports = [one for one in controls if one.operation == Operation.BUS_WRITE and one.args[1] < 1_000]
    starts = [one for one in of_ports if place_of_address(one.args[0])[1] == PortRegister.FCP_PERIOD]
    assert len(starts) == counted["overrun"]
    # Where a switch's buffers are to run over no host takes anything, else the adapter's own.
    of_switches = sum(one.target not in hosts for one in starts)
    assert 0 < of_switches < len(starts)
    assert sum(one.args[0] == 0 for one in stalls) == len(starts) + of_switches * (len(hosts) - 1)
    forged = [one for one in controls if one.operation == Operation.INJECT]
    assert {Injection.of(one.args).trigger for one in forged} == {Trigger.LINK}
    away = {injection_target(*link) for port in TOPOLOGY.linked_ports() if (link := TOPOLOGY.link_at(port))}
    assert {one.target for one in forged} == away


def test_the_number_of_periods_that_are_too_many_changes_meanwhile_and_the_period_is_long_again_afterwards():
    errors, periods = set(), defaultdict(list)
    for one in random_overruns(TOPOLOGY, Random(SEED), 0, CYCLES, Counter()):
        if one.operation == Operation.BUS_WRITE:
            _, register = place_of_address(one.args[0])
            if register == PortRegister.OVERRUN_ERRORS:
                errors.add(one.args[1])
            else:
                periods[one.target, one.args[0]].append(one.args[1])
    assert errors == set(range(6))
    for values in periods.values():
        assert all(short < 1_000 <= usual for short, usual in zip(values[::2], values[1::2], strict=True))


@pytest.mark.parametrize("anywhere", [False, True])
def test_in_some_runs_there_are_packets_without_room_in_more_periods_than_a_count_of_them_has(anywhere):
    controls = list(random_overrun_bursts(TOPOLOGY, Random(SEED), 0, CYCLES, Counter(), anywhere=anywhere))
    written = {one.target for one in controls if one.operation == Operation.BUS_WRITE}
    assert written == {TOPOLOGY.index[node] for node in TOPOLOGY.index if anywhere or node not in TOPOLOGY.lids}
    cycles = [one.cycle for one in controls]
    assert cycles == sorted(cycles)
    period, begun, packets, passed = 0, 0, 0, []
    for one in controls:
        if one.operation == Operation.INJECT:
            packets += starts_data(Injection.of(one.args))
        if one.operation != Operation.BUS_WRITE:
            continue
        match place_of_address(one.args[0])[1]:
            case PortRegister.FCP_PERIOD:
                period, begun, packets = one.args[1], one.cycle, 0
            case PortRegister.OVERRUN_ERRORS if one.args[1] > 1:
                passed.append((one.cycle - begun) // period)
                assert packets > passed[-1], "at least one in a period"
    assert len(passed) > 100
    assert min(passed) > 16


def test_meanwhile_what_is_counted_is_read_and_begins_anew():
    given = list(random_overrun_bursts(TOPOLOGY, Random(SEED), 0, CYCLES, Counter()))
    excessive = registers.Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS
    accesses = [one for one in given if place_of_address(one.args[0])[1] == excessive]
    looked, cleared = ([one for one in accesses if one.operation == operation] for operation in ACCESSES)
    assert len(looked) == len(cleared) > 500
    assert all(one.args[1] == 0 for one in cleared)


@pytest.mark.parametrize("has", [has_overrun_bursts, has_bursts_anywhere])
def test_these_are_in_few_runs(has):
    for has_them in (True, False):
        others = (one for one in (has_overrun_bursts, has_bursts_anywhere) if one != has)
        seeds = (seed for seed in count(1) if not any(other(seed) for other in others) and is_calm(seed))
        seed = next(seed for seed in seeds if has(seed) == has_them)
        given = random_controls(TOPOLOGY, seed, 0, 20_000, errors=True)
        assert any(one.operation == Operation.INJECT for one in given) == has_them
