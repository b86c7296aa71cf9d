"""What a check simulates follows from its options, and its seed from nothing else."""

from collections import Counter

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment, check_scenario
from wire.stimulus import Operation

SMALL = CheckOptions(ports=3, vls=2, mtu=256, cycles=12_000, sim="model")


def test_the_same_options_give_the_same_stimulus():
    one, other = check_experiment(SMALL).spec(), check_experiment(SMALL).spec()
    assert one.parameters == other.parameters
    assert list(one.controls) == list(other.controls)
    assert list(one.posts) == list(other.posts)


def test_another_seed_gives_another_fabric_and_other_traffic():
    scenarios = [check_scenario(CheckOptions(seed=seed, ports=4)) for seed in range(5)]
    assert len({str(scenario.fabric) for scenario in scenarios}) == 5


@pytest.mark.parametrize("widths", ["4X", "1X", "mixed"])
def test_links_have_the_widths_asked_for(widths):
    seen = {link.width for link in check_scenario(CheckOptions(ports=8, widths=widths)).links}
    assert seen == ({"1X", "4X"} if widths == "mixed" else {widths})


def test_counters_are_read_in_the_last_cycles():
    experiment = check_experiment(SMALL)
    last = list(experiment.controls())[-1]
    assert last.operation == Operation.BUS_READ
    assert last.cycle + 4 < experiment.cycles == SMALL.cycles


def test_too_short_a_run_is_refused_with_the_least_length():
    with pytest.raises(ValueError, match=r"cycles 500: expected more than \d{4}"):
        check_experiment(CheckOptions(cycles=500))


def test_the_replay_line_has_every_option():
    assert CheckOptions(seed=9, errors=False).command == (
        "ironband check --ports 4 --vls 2 --mtu 256 --queueing voq --cycles 20000 --seed 9 --widths mixed "
        "--load 0.7 --sim verilator --no-errors"
    )


def test_the_errors_ordered_are_counted_as_they_are_drawn():
    given = Counter()
    controls = check_experiment(SMALL, given).controls()
    next(controls)
    assert not given
    for _ in controls:
        pass
    assert sum(given.values()) > 0
