"""Points for pictures."""

from random import Random

import numpy as np
import pytest

from laboratory.thinned import Thinned


@pytest.mark.parametrize("count", [0, 1, 20_000, 20_001, 300_000])
def test_few_points_are_kept_of_many_evenly(count):
    random, thinned, at = Random(count), Thinned(), 0
    while at < count:
        end = min(count, at + random.randint(1, 7_000))
        thinned.add(np.arange(at, end), np.arange(at, end) * 3)
        at = end
    times, values = thinned.points()
    assert len(times) == count if count <= 20_000 else 5_000 <= len(times) <= 20_000
    assert (values == times * 3).all()
    assert len(set(np.diff(times).tolist())) <= 1
