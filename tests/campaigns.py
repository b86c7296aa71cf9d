"""Campaigns of random cases, of which `make test` has the first and `make deep` the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def first_of(seeds: Sequence[int], count: int) -> list[Any]:
    """The seeds, for `pytest.mark.parametrize`. Those after the first COUNT are more of the same: for `make deep`."""
    return [*seeds[:count], *(pytest.param(seed, marks=pytest.mark.deep) for seed in seeds[count:])]
