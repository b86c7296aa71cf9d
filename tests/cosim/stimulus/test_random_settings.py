"""Settings at random: in some runs seldom, in others all the time."""

from collections import Counter
from itertools import pairwise
from math import inf
from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.random_settings import due, random_arbitration, random_gap, random_operational_vls
from wire.codes import operational_vls
from wire.parameters import vl_arbitration_entries
from wire.stimulus import Control, Operation


def test_a_gap_is_as_given_or_much_less():
    gaps = {random_gap(Random(seed), (20, 800)) for seed in range(50)}
    assert gaps == {(20, 800), (5, 200), (2, 50)}


def test_in_some_runs_arbitration_tables_are_written_many_times_as_often():
    topology = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
    counts = sorted(len(list(random_arbitration(topology, Random(seed), 0, 10_000))) for seed in range(20))
    assert counts[0] < 40
    assert counts[-1] > 300


def test_what_is_due_leaves_the_heap_in_order():
    waiting = [Control(cycle, Operation.LINK_UP, 0) for cycle in (10, 20, 30, 40)]
    assert [control.cycle for control in due(waiting, 20)] == [10, 20]
    assert [control.cycle for control in due(waiting, 29)] == []
    assert [control.cycle for control in due(waiting, inf)] == [30, 40]
    assert not waiting


def test_operational_vls_are_right_again_after_some_changes():
    topology = check_experiment(CheckOptions(ports=3, vls=4, cycles=20_000, sim="model")).topology
    runs = [list(random_operational_vls(topology, Random(seed), 0, 40_000, Counter())) for seed in range(8)]
    assert [] in runs
    for controls in runs:
        cycles = [control.cycle for control in controls]
        assert cycles == sorted(set(cycles))
        last = {(control.target, control.args[0]): control.args[1] for control in controls}
        right = {topology.index[port.node]: operational_vls(topology.vls(port)) for port in topology.linked_ports()}
        assert all(value == right[node] for (node, _), value in last.items() if node)


def test_at_times_lists_of_a_port_are_written_whole_without_some_vls():
    topology = check_experiment(CheckOptions(ports=3, vls=4, cycles=20_000, sim="model")).topology
    controls = [one for seed in range(10) for one in random_arbitration(topology, Random(seed), 0, 10_000)]
    assert all(earlier.cycle < later.cycle or later.cycle < 1_000 for earlier, later in pairwise(controls))
    rows = vl_arbitration_entries(4)
    lists = [controls[first : first + rows] for first in range(len(controls) - rows)]
    whole = [part for part in lists if [one.args[0] - part[0].args[0] for one in part] == [*range(rows)]]
    assert len(whole) > 10
    assert all(len({one.args[1] >> 8 for one in part}) < 4 for part in whole)
