"""Published tables of times between packets, and how far apart two tables are."""

from collections import Counter

import numpy as np
import pytest

from capture.published_intervals import PUBLISHED, interval_classes, total_variation


def test_each_table_has_the_intervals_of_65536_packets() -> None:
    for counts in PUBLISHED.values():
        assert sum(counts) == 65_535
        assert min(counts) >= 0


def test_most_intervals_are_those_of_the_link() -> None:
    most = [max(range(len(counts)), key=counts.__getitem__) for counts in PUBLISHED.values()]
    assert most == [2, 2, 4, 4]


def test_an_interval_is_of_the_microsecond_in_which_it_ends_and_the_long_ones_of_one_class() -> None:
    stamps_ns = np.cumsum([0, 0, 999, 1_000, 12_999, 13_000, 320_000])
    assert interval_classes(Counter((np.diff(stamps_ns) // 1_000).tolist())) == [2, 1, *[0] * 10, 1, 2]


@pytest.mark.parametrize(
    ("ours", "theirs", "apart"),
    [([3, 1], [3, 1], 0), ([6, 2], [3, 1], 0), ([1, 0], [0, 5], 1), ([1, 1], [3, 1], 0.25)],
)
def test_total_variation_is_the_share_that_would_have_to_move(ours: list[int], theirs: list[int], apart: float) -> None:
    assert total_variation(ours, theirs) == total_variation(theirs, ours) == apart
