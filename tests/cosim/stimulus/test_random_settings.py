"""Settings at random: in some runs seldom, in others all the time."""

from collections import Counter
from itertools import pairwise
from math import inf
from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.random_settings import (
    due,
    has_low_lists_alone,
    has_moving_p_keys,
    has_partitions,
    has_settled_arbitration,
    has_settled_limits,
    random_arbitration,
    random_gap,
    random_limits,
    random_operational_vls,
    random_partitions,
)
from wire.codes import P_KEY_DEFAULT, operational_vls
from wire.parameters import vl_arbitration_entries
from wire.port_tables import P_KEY_TABLE
from wire.registers import P_KEYS, VL_ARBITRATION_HIGH, VL_ARBITRATION_LOW, PortRegister, place_of_address
from wire.stimulus import Control, Operation


def test_a_gap_is_as_given_or_much_less():
    gaps = {random_gap(Random(seed), (20, 800)) for seed in range(50)}
    assert gaps == {(20, 800), (5, 200), (2, 50)}


def test_in_some_runs_arbitration_tables_are_written_many_times_as_often_in_others_seldom():
    topology = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
    counts = {seed: len(list(random_arbitration(topology, seed, 0, 10_000))) for seed in range(40)}
    settled = {seed for seed in counts if has_settled_arbitration(seed)}
    assert 3 < len(settled) < 16
    assert max(counts[seed] for seed in settled) < 4
    usual = [count for seed, count in counts.items() if seed not in settled]
    assert 4 < min(usual) < 40
    assert max(usual) > 300


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


def test_at_times_lists_of_a_port_are_written_whole_without_some_vls_or_with_few_entries_that_count():
    topology = check_experiment(CheckOptions(ports=3, vls=4, cycles=20_000, sim="model")).topology
    seeds = [seed for seed in range(20) if not (has_low_lists_alone(seed) or has_settled_arbitration(seed))]
    controls = [one for seed in seeds for one in random_arbitration(topology, seed, 0, 10_000)]
    assert all(earlier.cycle < later.cycle or later.cycle < 1_000 for earlier, later in pairwise(controls))
    rows = vl_arbitration_entries(4)
    lists = [controls[first : first + rows] for first in range(len(controls) - rows)]
    whole = [part for part in lists if [one.args[0] - part[0].args[0] for one in part] == [*range(rows)]]
    assert len(whole) > 10
    vls = [{one.args[1] >> 8 for one in part if one.args[1] & 0xFF} for part in whole]
    assert {len(some) for some in vls} == {0, 1, 2, 3, 4}
    counting = {sum(bool(one.args[1] & 0xFF) for one in part) for part in whole}
    assert {1, rows} < counting


def test_in_some_runs_the_high_lists_of_all_ports_stay_empty():
    assert 5 < sum(map(has_low_lists_alone, range(100))) < 40
    topology = check_experiment(CheckOptions(ports=3, vls=4, cycles=20_000, sim="model")).topology
    seeds = filter(has_low_lists_alone, range(100))
    controls = [one for seed in seeds for one in random_arbitration(topology, seed, 0, 10_000)]
    entries = vl_arbitration_entries(4)
    offsets = {place_of_address(one.args[0])[1] for one in controls}
    assert offsets.isdisjoint(range(VL_ARBITRATION_HIGH, VL_ARBITRATION_HIGH + entries))
    assert offsets.issuperset(range(VL_ARBITRATION_LOW, VL_ARBITRATION_LOW + entries))


def test_in_some_runs_limits_of_all_ports_are_written_first_and_then_seldom():
    topology = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
    settled = [seed for seed in range(60) if has_settled_limits(seed)]
    assert 3 < len(settled) < 20
    registers = {PortRegister.HOQ_LIFE, PortRegister.VL_STALL_COUNT}
    for seed in settled:
        controls = list(random_limits(topology, seed, 0, 9_000, Counter()))
        assert [one.cycle for one in controls] == [*range(6)]
        places = {place_of_address(one.args[0]) for one in controls}
        assert places == {(port, register) for port in (1, 2, 3) for register in registers}


def test_a_p_key_that_moves_is_in_one_entry_of_a_table_or_in_none():
    """So every entry is at times all that lets a packet pass."""
    topology = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
    moving = [seed for seed in range(200) if has_moving_p_keys(seed)]
    assert 3 < len(moving) < 30 < sum(map(has_partitions, range(200))) < 140
    places, absent = set(), 0
    for seed in moving[:3]:
        tables = {page: {0: P_KEY_DEFAULT} for page in (1, 2, 3)}
        for one in random_partitions(topology, seed, 0, 100_000, Counter()):
            page, offset = place_of_address(one.args[0])
            if offset < P_KEYS:
                continue
            table = tables[page]
            table[offset - P_KEYS] = one.args[1]
            partitions = [key & 0x7FFF for key in table.values() if key & 0x7FFF]
            assert len(set(partitions)) == len(partitions)
            absent += P_KEY_DEFAULT & 0x7FFF not in partitions
            places |= {(page, place) for place, key in table.items() if key}
    assert places == {(page, place) for page in (1, 2, 3) for place in range(P_KEY_TABLE.count)}
    assert absent > 100
