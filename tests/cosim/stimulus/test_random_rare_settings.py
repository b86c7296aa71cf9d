"""Settings that are rare elsewhere come in the runs that are for them, and what they break is made right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from random import Random

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment, check_scenario
from cosim.stimulus.injection import is_calm, random_controls
from cosim.stimulus.random_rare_settings import (
    has_calls_from_sleep,
    has_generous_limits,
    has_late_lists,
    has_late_stalls,
    has_late_timers,
    has_lone_weights,
    has_narrow_cables,
    has_read_backs,
    random_calls_from_sleep,
    random_late_lists,
)
from wire import registers
from wire.codes import LinkWidth, PortPhysicalState
from wire.parameters import vl_arbitration_entries
from wire.port_tables import VL_ARBITRATION_ENTRY
from wire.registers import PORT_REGISTER_WIDTHS, PortRegister, place_of_address
from wire.stimulus import Control, Operation

TOPOLOGY = check_experiment(CheckOptions(cycles=20_000)).topology
SWITCH = TOPOLOGY.index["S"]
PORTS = {(TOPOLOGY.index[port.node], port.number): port for port in TOPOLOGY.linked_ports()}
END = 200_000


def controls(has_it: Callable[[int], bool]) -> list[Control]:
    seed = next(seed for seed in count(1) if has_it(seed) and is_calm(seed))
    return list(random_controls(TOPOLOGY, seed, 0, END, errors=True))


def accesses(
    given: list[Control], operation: Operation, registers_: set[PortRegister]
) -> Iterator[tuple[int, tuple[int, int], int, int]]:
    """(cycle, (node, port), register, value) of accesses to registers of ports."""
    for one in given:
        page, offset = place_of_address(one.args[0])
        if one.operation == operation and (one.target, page) in PORTS and offset in registers_:
            yield one.cycle, (one.target, page), offset, one.args[1]


def whole_lists(has_it: Callable[[int], bool]) -> Iterator[tuple[tuple[int, int, int], dict[int, tuple[int, int]]]]:
    """(node, port, first entry's register) and (VL, weight) by entry, of each list as often as it is whole."""
    lists: dict[tuple[int, int, int], dict[int, tuple[int, int]]] = {}
    for one in random_late_lists(TOPOLOGY, next(filter(has_it, count(1))), 0, END):
        page, offset = place_of_address(one.args[0])
        first = next((base for base in (registers.VL_ARBITRATION_LOW, registers.VL_ARBITRATION_HIGH)[::-1]
                      if base <= offset < base + registers.VL_ARBITRATION_SPAN), None)  # fmt: skip
        if first is None:
            continue
        entry = VL_ARBITRATION_ENTRY.from_int(one.args[1])
        written = lists.setdefault((one.target, page, first), {})
        written[offset - first] = entry["vl"], entry["weight"]
        entries = vl_arbitration_entries(TOPOLOGY.fabric.nodes[PORTS[one.target, page].node].vls)
        if offset - first == entries - 1:
            yield (one.target, page, first), dict(written)


@pytest.mark.parametrize("has_it", [has_late_lists, has_generous_limits, has_lone_weights])
def test_of_late_lists_both_have_both_vls_some_behind_entries_that_do_not_count(has_it):
    ports, begins = set(), set()
    for (node, number, _), written in whole_lists(has_it):
        ports.add((node, number))
        begins.add(min(at for at, (_, weight) in written.items() if weight))
        vls = TOPOLOGY.fabric.nodes[PORTS[node, number].node].vls
        assert {vl for vl, weight in written.values() if weight} == set(range(vls))
    assert ports == set(PORTS)
    assert len(begins) > 2


def test_generous_limits_are_more_than_a_thousand_blocks():
    limits = [*accesses(controls(has_generous_limits), Operation.BUS_WRITE, {PortRegister.VL_HIGH_LIMIT})]
    assert {at for _, at, _, _ in limits} == set(PORTS)
    assert min(value for *_, value in limits) * 64 > 1_024


def test_lone_weights_are_in_all_places_and_of_each_vl_one():
    places = set()
    for (node, number, _), written in whole_lists(has_lone_weights):
        counting = {at: vl for at, (vl, weight) in written.items() if weight}
        assert len(counting) == TOPOLOGY.fabric.nodes[PORTS[node, number].node].vls
        places |= set(counting.items())
    assert places >= {(entry, vl) for entry in range(vl_arbitration_entries(2)) for vl in range(2)}


def test_of_late_stalls_all_ports_of_switches_have_limits_and_counts_of_three_or_four():
    given = controls(has_late_stalls)
    of_switch = {at for at, port in PORTS.items() if port.node == "S"}
    limits = [*accesses(given, Operation.BUS_WRITE, {PortRegister.HOQ_LIFE})]
    stalls = [*accesses(given, Operation.BUS_WRITE, {PortRegister.VL_STALL_COUNT})]
    assert [(at, value) for _, at, _, value in limits][: len(of_switch)] == [(at, 0) for at in sorted(of_switch)]
    first = stalls[: len(of_switch)]
    assert {at for _, at, _, _ in first} == of_switch
    assert {value for *_, value in first} <= {3, 4} <= {value for *_, value in stalls}


def test_late_timers_of_switches_reach_their_upper_bits_since_nothing_starts_them_anew_and_no_sl_has_vl_0():
    options = CheckOptions(cycles=20_000, seed=next(filter(has_late_timers, count(1))), errors=True)
    scenario, experiment = check_scenario(options), check_experiment(options)
    of_switch = [table.registers for table in scenario.ports if table.at.startswith("S")]
    for register, bits in ((PortRegister.FC_WATCHDOG, 16), (PortRegister.FCP_PERIOD, 17)):
        values = {table[register] for table in of_switch}
        assert len(values) > 1
        assert all(value >> bits == 1 and value % 2 == 0 for value in values)
    assert all(vl % 2 for vl in scenario.sl_to_vl)
    timers = {PortRegister.FCP_PERIOD, PortRegister.FC_WATCHDOG}
    given = [one for one in experiment.controls() if one.cycle >= experiment.start]
    assert given
    assert not [*accesses(given, Operation.BUS_WRITE, timers)]
    assert not any(one.operation == Operation.INJECT for one in given)


def test_narrow_cables_begin_anew_with_one_lane():
    given = controls(has_narrow_cables)
    narrow = {
        cycle: at for cycle, at, _, value in accesses(given, Operation.BUS_WRITE, {PortRegister.LINK_WIDTH_ENABLED})
        if value == LinkWidth.X1 and TOPOLOGY.pace(PORTS[at]) == 1
    }  # fmt: skip
    again = [
        (cycle, at) for cycle, at, _, value in accesses(given, Operation.BUS_WRITE, {PortRegister.PHYSICAL_STATE})
        if value == PortPhysicalState.POLLING
    ]  # fmt: skip
    begun = [at for cycle, at in again if any(narrow.get(cycle - later) == at for later in range(1, 9))]
    assert len(begun) > END // 40_000


def test_what_is_read_back_is_read_while_it_has_a_value_of_millions_and_made_right():
    given = controls(has_read_backs)
    timers = {PortRegister.FCP_PERIOD, PortRegister.FC_WATCHDOG, PortRegister.LINK_DOWN_TIMEOUT}
    writes = [*accesses(given, Operation.BUS_WRITE, timers)]
    reads = [(cycle, at, register) for cycle, at, register, _ in accesses(given, Operation.BUS_READ, timers)]
    large = [one for one in writes if one[3] >= 1 << PORT_REGISTER_WIDTHS[PortRegister(one[2])] - 2]
    read = 0
    for cycle, at, register, value in large:
        later = (one for one in writes if one[1:3] == (at, register) and one[0] > cycle)
        until, *_, last = next(later)
        assert until - cycle < 1_000
        assert last < value
        read += any(one[1:] == (at, register) and cycle < one[0] < until for one in reads)
    assert read > len(large) // 2 > 10


@pytest.mark.parametrize(
    "has_it",
    [has_generous_limits, has_late_lists, has_late_stalls, has_lone_weights, has_narrow_cables, has_read_backs],
)
def test_few_runs_are_for_each(has_it):
    assert 0.01 < sum(map(has_it, range(5_000))) / 5_000 < 0.03


def test_ports_that_are_to_sleep_are_told_not_to_some_cycles_behind_the_other_end() -> None:
    given = list(random_calls_from_sleep(TOPOLOGY, Random(1), 0, END, Counter()))
    assert [one.cycle for one in given] == sorted(one.cycle for one in given)
    defaults, polling, behind = dict.fromkeys(PORTS, 0), dict.fromkeys(PORTS, 0), Counter[int]()
    for cycle, at, register, value in accesses(given, Operation.BUS_WRITE, set(PortRegister)):
        if register == PortRegister.LINK_DOWN_DEFAULT:
            defaults[at] = value
        elif register == PortRegister.PHYSICAL_STATE and defaults[at] == PortPhysicalState.SLEEP:
            far = TOPOLOGY.far_end(PORTS[at])
            assert far is not None
            behind[cycle - polling[TOPOLOGY.index[far.node], far.number]] += 1
            polling[at] = cycle
    assert sorted(behind)[:6] == [1, 2, 3, 4, 5, 6]
    assert set(defaults.values()) == {PortPhysicalState.POLLING}


def test_these_calls_are_in_few_runs() -> None:
    assert 0.005 < sum(map(has_calls_from_sleep, range(5_000))) / 5_000 < 0.02
