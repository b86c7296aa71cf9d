"""Which checks mutants are put through."""

from __future__ import annotations

from cosim.experiments.check_experiment import check_experiment
from cosim.experiments.mutation_task import MutationTask
from cosim.stimulus.injection import is_calm
from cosim.stimulus.random_groups import has_groups
from cosim.stimulus.random_mads import has_many_mads
from cosim.stimulus.random_packets import has_mostly_multicast
from cosim.stimulus.random_settings import has_low_lists_alone, has_moving_p_keys

TASK = MutationTask()
OPTIONS = {number: TASK.options(number) for number in range(1, TASK.checks + 1)}


def test_all_checks_are_of_one_fabric_and_have_seeds_of_their_own():
    assert len({options.seed for options in OPTIONS.values()}) == TASK.checks
    fabrics = {repr(check_experiment(OPTIONS[number]).topology.fabric.nodes) for number in (1, 2, 7)}
    assert len(fabrics) == 1


def test_all_that_a_mutant_goes_through_are_640_000_cycles():
    assert sum(options.cycles for options in OPTIONS.values()) == 640_000


def test_among_them_are_such_as_ask_most_of_a_part():
    """P_Key tables, agents, copies, all data, low lists, and links of which most rows are idle data."""
    assert all(is_calm(OPTIONS[number].seed) and has_moving_p_keys(OPTIONS[number].seed) for number in (2, 10))
    assert all(has_many_mads(OPTIONS[number].seed) for number in (4, 12))
    assert has_groups(OPTIONS[6].seed)
    assert has_mostly_multicast(OPTIONS[6].seed)
    assert has_low_lists_alone(OPTIONS[8].seed)
    assert OPTIONS[7].load < 0.1 < OPTIONS[6].load == OPTIONS[8].load == 1.0
    assert [number for number, options in OPTIONS.items() if not options.errors] == [3, 11]
