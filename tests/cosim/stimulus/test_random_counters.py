"""Counters read and written by the bus: often, in halves, and never so often that a port would lose what it counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import count, pairwise

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.injection import is_calm, random_controls
from cosim.stimulus.random_counters import has_crowded_reads, has_crowds_at_stuck_links, has_whole_counters
from cosim.stimulus.random_mads import has_mads, has_many_mads
from wire import registers
from wire.codes import VL15
from wire.registers import HIGH_OF_COUNTER, PortRegister, place_of_address
from wire.stimulus import Control, Injection, Operation, injection_target

COUNTERS = {
    *registers.Counter,
    *registers.Detail,
    *registers.PacketCounter,
    *registers.CounterHigh,
    *(registers.VL_XMIT_WAIT + vl for vl in range(VL15 + 1)),
}
ACCESSES = (Operation.BUS_READ, Operation.BUS_WRITE)
TOPOLOGY = check_experiment(CheckOptions(cycles=20_000)).topology


def controls(seed: int) -> list[Control]:
    return list(random_controls(TOPOLOGY, seed, 0, 200_000, errors=True))


def seed_with(*has: Callable[[int], bool]) -> int:
    return next(seed for seed in count(1) if all(one(seed) for one in has))


def accesses(given: list[Control]) -> dict[tuple[int, int], list[int]]:
    """Cycles with an access to a port's counters, by node and port."""
    ports = {(TOPOLOGY.index[port.node], port.number) for port in TOPOLOGY.linked_ports()}
    cycles = defaultdict(list)
    for one in given:
        page, offset = place_of_address(one.args[0])
        if one.operation in ACCESSES and (one.target, page) in ports and offset in COUNTERS:
            cycles[one.target, page].append(one.cycle)
    return cycles


def most_in_30_cycles(cycles: list[int]) -> int:
    return max(sum(first <= cycle < first + 30 for cycle in cycles[at : at + 30]) for at, first in enumerate(cycles))


@pytest.mark.parametrize("has_them", [has_crowded_reads, has_whole_counters, has_mads, has_many_mads, is_calm])
def test_no_ports_counters_are_accessed_in_more_than_half_of_30_cycles(has_them):
    """Beyond that RTL may lose increments (docs/pipeline.md, section 10)."""
    seed = seed_with(has_them)
    busiest = max(map(most_in_30_cycles, accesses(controls(seed)).values()))
    assert busiest <= 15


def test_agents_that_answer_have_eight_of_these_accesses():
    given = controls(seed_with(has_crowded_reads, has_many_mads))
    reads = accesses([one for one in given if one.operation == Operation.BUS_READ])
    assert max(map(most_in_30_cycles, reads.values())) == 7


def test_in_some_runs_counters_are_read_as_often_as_may_be():
    crowded = accesses(controls(seed_with(has_crowded_reads, lambda seed: not has_mads(seed))))
    assert len(crowded) == len(TOPOLOGY.linked_ports())
    assert all(most_in_30_cycles(cycles) >= 10 for cycles in crowded.values())


def test_in_some_runs_links_are_stuck_for_longer_than_any_packet_lasts():
    given = controls(seed_with(has_crowded_reads, lambda seed: not is_calm(seed)))
    injected = [Injection.of(one.args) for one in given if one.operation == Operation.INJECT]
    assert sum(500 <= one.last - one.first < 4_095 and not one.keep for one in injected) > 10


def test_in_some_runs_these_are_of_4x_ports_of_switches_into_which_links_are_stuck():
    seed = seed_with(has_crowded_reads, has_crowds_at_stuck_links, lambda seed: not is_calm(seed))
    given = controls(seed)
    ports = [port for port in TOPOLOGY.linked_ports() if port.node == "S" and TOPOLOGY.pace(port) == 1]
    crowded = {at for at, cycles in accesses(given).items() if len(cycles) > 10_000}
    assert crowded == {(TOPOLOGY.index[port.node], port.number) for port in ports}
    injected = [(one.target, Injection.of(one.args)) for one in given if one.operation == Operation.INJECT]
    stuck = Counter(at for at, one in injected if 30 <= one.last - one.first < 4_095 and not one.keep)
    for port in ports:
        into = TOPOLOGY.link_at(TOPOLOGY.far_end(port))
        assert stuck[injection_target(*into)] > 100
    of_seed = check_experiment(CheckOptions(cycles=20_000, seed=seed)).topology
    assert all(of_seed.pace(port) == 1 for port in of_seed.linked_ports())


def test_in_some_runs_both_halves_of_counters_are_set_and_the_upper_one_again_when_it_has_been_read():
    given = controls(seed_with(has_whole_counters))
    upper = {*HIGH_OF_COUNTER.values()}
    places = [(one, *place_of_address(one.args[0])) for one in given if one.operation in ACCESSES]
    of_halves = [(one, page, offset) for one, page, offset in places if offset in upper | {PortRegister.EXTENDED_LOW}]
    steps: Counter[tuple[bool, bool, bool]] = Counter()
    for (one, page, offset), (other, other_page, other_offset) in pairwise(of_halves):
        if (one.target, page) == (other.target, other_page):
            is_upper = offset in upper, other_offset in upper
            steps[is_upper == (False, True), one.operation == Operation.BUS_READ, is_upper == (True, True)] += 1
    assert steps[True, False, False] > 20, "the lower half is written, then the upper one"
    assert steps[False, True, True] > 20, "the upper half is read, then written or read again"
