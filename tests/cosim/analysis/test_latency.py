"""Latencies: exact mean and extremes, percentiles to within 2 %, in memory that does not grow with their number."""

import pickle
import random

import pytest

from cosim.analysis.latency import Latencies


def latencies_of(values) -> Latencies:
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    return latencies


def test_none_are_all_zero():
    none = Latencies()
    assert (none.count, none.mean, none.least, none.most, none.percentile(99)) == (0, 0, 0, 0, 0)


def test_one_is_its_own_percentile():
    assert latencies_of([3_144]).percentile(99) == 3_144


@pytest.mark.parametrize("most", [100, 5_000, 1_000_000])
def test_percentiles_are_right_to_within_two_percent(most):
    chosen = random.Random(most)
    values = sorted(chosen.randint(0, most) for _ in range(20_000))
    latencies = latencies_of(values)
    assert latencies.mean == sum(values) / len(values)
    assert (latencies.least, latencies.most) == (values[0], values[-1])
    for percent in (1, 50, 90, 99, 100):
        exact = values[int(len(values) * percent / 100) - 1]
        assert exact <= latencies.percentile(percent) <= exact * 1.016 + 1


def test_many_take_no_more_memory_than_few():
    few, many = (latencies_of(random.Random(1).choices(range(1 << 20), k=count)) for count in (20_000, 200_000))
    assert len(pickle.dumps(many)) < 1.5 * len(pickle.dumps(few))


def test_merged_are_those_of_both():
    both = latencies_of([1, 2, 3])
    both.merge(latencies_of([100, 200]))
    both.merge(Latencies())
    assert (both.count, both.total, both.least, both.most) == (5, 306, 1, 200)
    assert both.percentile(60) == 3
