"""Patterns and bursts of a flow between all hosts: where its packets go, and when they come."""

from collections import Counter
from itertools import pairwise
from math import sqrt
from random import Random

import pytest

from cosim.scenario.pattern import partners
from cosim.scenario.tables import Flow
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.flows import Arrivals, scenario_packets

BUSY = 75
"""Cycles that a packet keeps its link busy, in the tests of bursts."""


def pairs(hosts: int, seed: int = 0, cycles: int = 20_000, **keys) -> Counter[tuple[str, str]]:
    """How many packets go from a host to another."""
    flow = Flow.model_validate({"from": "*", "to": "*", "size": 64, "rate": 1.0, **keys})
    scenario = uniform_load(hosts, cycles=cycles, seed=seed).model_copy(update={"flows": (flow,)})
    packets = scenario_packets(scenario, scenario.topology, 0, seed)
    return Counter((packet.source, packet.destination) for packet in packets)


@pytest.mark.parametrize("pattern", ["transpose", "bit_complement"])
def test_all_packets_of_a_host_go_to_its_partner_and_who_is_his_own_sends_none(pattern):
    numbers = enumerate(partners(pattern, 16, ""))
    expected = {(f"H{host + 1}", f"H{partner + 1}") for host, partner in numbers if host != partner}
    assert set(pairs(16, pattern=pattern)) == expected


def test_a_random_permutation_is_another_with_another_seed():
    one, other = (set(pairs(16, seed=seed, pattern="permutation")) for seed in (1, 2))
    assert one == set(pairs(16, seed=1, pattern="permutation")) != other
    for drawn in (one, other):
        assert (
            len(drawn) == len({source for source, _ in drawn}) == len({destination for _, destination in drawn}) == 16
        )


def test_all_to_all_gives_every_other_the_same_number():
    counts = pairs(5, pattern="all_to_all").values()
    assert len(counts) == 5 * 4
    assert max(counts) - min(counts) <= 1


def test_the_hot_host_gets_its_share_from_each_and_the_rest_is_alike():
    share, seed = 0.3, 11
    counts = pairs(5, seed=seed, cycles=100_000, pattern="hotspot", hot="H3", hot_share=share)
    print(f"seed {seed}")
    for source in ("H1", "H2", "H4", "H5"):
        sent = sum(count for (sender, _), count in counts.items() if sender == source)
        others = [count for (sender, to), count in counts.items() if sender == source and to != "H3"]
        # Four standard deviations of a binomial distribution.
        assert abs(counts[source, "H3"] - share * sent) < 4 * sqrt(sent * share * (1 - share))
        each = (1 - share) / 3
        assert all(abs(count - each * sent) < 4 * sqrt(sent * each * (1 - each)) for count in others)
    assert len([pair for pair in counts if pair[0] == "H3"]) == 4


def test_the_hot_host_is_the_first_unless_it_is_named_and_may_get_all():
    assert {to for source, to in pairs(4, pattern="hotspot", hot_share=1) if source != "H1"} == {"H1"}


def arrivals(rate: float, burst: float, seed: int, cycles: int) -> list[int]:
    """The cycles of a flow's packets."""
    flow = Flow.model_validate({"from": "A", "to": "B", "rate": rate, "arrivals": "random", "burst": burst})
    source = Arrivals(flow, 0, cycles, Random(seed))
    came = []
    while (cycle := source.next()) is not None:
        came.append(cycle)
        source.sent(BUSY)
    return came


def lengths_of_bursts(came: list[int]) -> list[int]:
    """How many packets follow each other without a gap, again and again; the last of them may not be whole."""
    lengths, length = [], 1
    for one, following in pairwise(came):
        if following == one + BUSY:
            length += 1
        else:
            lengths.append(length)
            length = 1
    return lengths


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("burst", [2, 4.5, 20])
def test_bursts_have_the_mean_length_asked_for_and_leave_the_load_as_it_is(rate, burst):
    seed, cycles = 5, 12_000_000
    print(f"seed {seed}")
    came = arrivals(rate, burst, seed, cycles)
    lengths = lengths_of_bursts(came)
    mean = sum(lengths) / len(lengths)
    # Of a geometric distribution from 1 on, the variance is burst (burst - 1).
    assert abs(mean - burst) < 4 * sqrt(burst * (burst - 1) / len(lengths))
    # On and off times are independent; the share of on times varies by both, each with its mean as deviation at most.
    assert abs(len(came) * BUSY / cycles - rate) < 4 * rate * (1 - rate) * sqrt(2 / len(lengths))


def test_lengths_of_bursts_are_geometric():
    seed, burst = 7, 5
    print(f"seed {seed}")
    lengths = lengths_of_bursts(arrivals(0.5, burst, seed, 12_000_000))
    for least in (1, 2, 5, 10, 20):
        share = (1 - 1 / burst) ** (least - 1)
        longer = sum(length >= least for length in lengths)
        assert abs(longer - share * len(lengths)) <= 4 * sqrt(len(lengths) * share * (1 - share))


def test_at_a_load_that_leaves_less_than_a_cycle_a_burst_the_load_is_still_as_asked():
    seed, cycles, rate = 3, 40_000_000, 0.995
    print(f"seed {seed}")
    came = arrivals(rate, 2, seed, cycles)
    idle = cycles - len(came) * BUSY
    # Gaps of one cycle, independent of each other.
    assert abs(idle - (1 - rate) * cycles) < 4 * sqrt((1 - rate) * cycles)
    assert {following - one - BUSY for one, following in pairwise(came)} == {0, 1}
