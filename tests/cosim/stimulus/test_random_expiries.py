"""Limits of waiting that are short until they have been met."""

from collections import Counter
from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.random_expiries import random_expiries
from wire.registers import PortRegister, place_of_address
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
