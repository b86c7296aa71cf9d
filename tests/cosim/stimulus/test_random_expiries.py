"""Limits of waiting that are short until they have been met."""

from collections import Counter, defaultdict
from itertools import count, pairwise
from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.injection import is_calm, random_controls
from cosim.stimulus.random_expiries import (
    has_long_deferrals,
    has_mass_expiries,
    random_expiries,
    random_long_deferrals,
    random_mass_expiries,
)
from wire.registers import NodeRegister, PortRegister, node_address, place_of_address
from wire.stimulus import Control, Operation
from wire.time_limits import EXPIRED_TICKS, MAX_EXPONENT, NO_LIMIT, STALL_TICKS, TICK_CYCLES

TOPOLOGY = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology


def drawn(seed: int) -> list[Control]:
    return list(random_expiries(TOPOLOGY, Random(seed), 0, 1_000_000, Counter()))


def test_in_some_runs_hosts_take_nothing_and_in_the_end_all_again():
    runs = [drawn(seed) for seed in range(20)]
    assert 4 < sum(map(bool, runs)) < 16
    for controls in filter(None, runs):
        assert [one.cycle for one in controls] == sorted(one.cycle for one in controls)
        masks = [one.args[0] for one in controls if one.operation == Operation.RECV_STALL]
        assert masks[0] != 0 == masks[-1]


def test_the_limit_is_another_about_the_tick_in_which_what_waited_meanwhile_expires():
    limits = [
        (one.cycle, one.args[1])
        for seed in range(20)
        for one in drawn(seed)
        if one.operation == Operation.BUS_WRITE and place_of_address(one.args[0])[1] == PortRegister.HOQ_LIFE
    ]
    short, others = limits[::2], limits[1::2]
    assert {exponent for _, exponent in short} == {0}
    assert {exponent for _, exponent in others} == {1, MAX_EXPONENT, NO_LIMIT}
    assert {cycle % TICK_CYCLES for cycle, _ in short} == {TICK_CYCLES - 2}
    gaps = sorted({later - earlier for (earlier, _), (later, _) in zip(short, others, strict=True)})
    assert gaps[:3] == [3 * TICK_CYCLES + 2, 3 * TICK_CYCLES + 3, 3 * TICK_CYCLES + 4]
    # In the others a VL stalls, until that is over.
    assert len(gaps) > 3
    assert gaps[3] > (EXPIRED_TICKS + STALL_TICKS) * TICK_CYCLES


LIFE_TIME = node_address(NodeRegister.LIFE_TIME)


def test_in_a_mass_of_expiries_all_hosts_take_nothing_until_about_the_tick_in_which_all_is_at_its_limit():
    controls = list(random_mass_expiries(TOPOLOGY, Random(1), 0, 100_000, Counter()))
    assert [one.cycle for one in controls] == sorted(one.cycle for one in controls)
    again, takes = defaultdict(list), Counter()
    for one in controls:
        if one.operation == Operation.RECV_STALL and not one.args[0]:
            again[one.target].append(one.cycle)
    limits = [(one.cycle, one.args[1]) for one in controls if one.args[0] == LIFE_TIME]
    assert len(limits) > 20
    assert set(again) == {TOPOLOGY.index[host] for host in TOPOLOGY.lids}
    for number, ((limited, short), (over, other)) in enumerate(zip(limits[::2], limits[1::2], strict=True)):
        assert (short, other, limited % TICK_CYCLES) == (0, NO_LIMIT, TICK_CYCLES - 2)
        expired = limited + 2 + (EXPIRED_TICKS - 1) * TICK_CYCLES
        assert over >= expired + 4 * TICK_CYCLES
        for host, cycles in again.items():
            stalls = [
                one.cycle for one in controls if one.target == host and one.args[0] and one.cycle < cycles[number]
            ]
            assert cycles[number] - stalls[-1] <= 40 >= max(after - before for before, after in pairwise(stalls[-30:]))
            assert expired - 100 <= cycles[number] <= expired + 300
            takes[cycles[number] < expired] += 1
    assert min(takes.values()) > 5


def test_some_runs_have_them():
    seed = next(seed for seed in count(1) if has_mass_expiries(seed) and is_calm(seed))
    given = random_controls(TOPOLOGY, seed, 0, 100_000, errors=True)
    limits = [one.args[1] for one in given if one.operation == Operation.BUS_WRITE and one.args[0] == LIFE_TIME]
    assert limits.count(0) > 10 < limits.count(NO_LIMIT)


def test_links_are_lost_for_longer_than_counts_of_ticks_go_and_ports_with_the_shortest_limit_wait_for_them():
    controls = list(random_long_deferrals(TOPOLOGY, Random(1), 0, 400_000, Counter()))
    assert [one.cycle for one in controls] == sorted(one.cycle for one in controls)
    lost = [one.cycle for one in controls if one.operation == Operation.LINK_DOWN]
    back = [one.cycle for one in controls if one.operation == Operation.LINK_UP]
    ticks = {(up - down) // TICK_CYCLES for down, up in zip(lost, back, strict=True)}
    assert min(ticks) >= STALL_TICKS - 1
    assert len(ticks) > 4
    writes = [one for one in controls if one.operation == Operation.BUS_WRITE]
    for register, meanwhile in ((PortRegister.HOQ_LIFE, 0), (PortRegister.LINK_DOWN_TIMEOUT, 1 << 15)):
        values = [one.args[1] for one in writes if place_of_address(one.args[0])[1] == register]
        assert values.count(meanwhile) * 2 == len(values)
        assert values[-1] != meanwhile


def test_such_losses_are_in_few_runs_in_which_no_link_has_errors():
    for has_them in (True, False):
        seed = next(seed for seed in count(1) if has_long_deferrals(seed) == has_them and is_calm(seed))
        given = random_controls(TOPOLOGY, seed, 0, 40_000, errors=True)
        assert any(one.operation == Operation.LINK_DOWN for one in given) == has_them
