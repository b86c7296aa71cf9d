"""Receive buffers that run over: forged credits of hosts that take nothing."""

from collections import Counter, defaultdict
from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.random_overruns import random_overruns
from wire.registers import PortRegister, place_of_address
from wire.stimulus import Injection, Operation, Trigger, injection_target

TOPOLOGY = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
SEED_WITHOUT, SEED = 2, 1


def test_some_runs_have_none():
    assert not list(random_overruns(TOPOLOGY, Random(SEED_WITHOUT), 0, 400_000, Counter()))


def test_what_a_host_announces_is_forged_while_it_takes_nothing():
    counted: Counter[str] = Counter()
    controls = list(random_overruns(TOPOLOGY, Random(SEED), 0, 400_000, counted))
    assert counted["overrun"] > 5
    cycles = [one.cycle for one in controls]
    assert cycles == sorted(cycles)
    hosts = {TOPOLOGY.index[host] for host in TOPOLOGY.lids}
    stalls = [one for one in controls if one.operation == Operation.RECV_STALL]
    assert {one.target for one in stalls} == hosts
    assert sum(one.args[0] == 0 for one in stalls) == counted["overrun"]
    forged = [one for one in controls if one.operation == Operation.INJECT]
    assert {Injection.of(one.args).trigger for one in forged} == {Trigger.LINK}
    away = {injection_target(*link) for port in TOPOLOGY.linked_ports() if (link := TOPOLOGY.link_at(port))}
    assert {one.target for one in forged} < away


def test_the_number_of_periods_that_are_too_many_changes_meanwhile_and_the_period_is_long_again_afterwards():
    errors, periods = set(), defaultdict(list)
    for one in random_overruns(TOPOLOGY, Random(SEED), 0, 400_000, Counter()):
        if one.operation == Operation.BUS_WRITE:
            _, register = place_of_address(one.args[0])
            if register == PortRegister.OVERRUN_ERRORS:
                errors.add(one.args[1])
            else:
                periods[one.target].append(one.args[1])
    assert errors == set(range(6))
    for values in periods.values():
        assert all(short < 1_000 <= usual for short, usual in zip(values[::2], values[1::2], strict=True))
