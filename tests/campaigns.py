"""Campaigns of like cases, of which `make test` has some and `make deep` the others, which are more of the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest

__all__ = ["FAT_TREE_LINKS", "first_of", "some_of"]


def some_of(cases: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """The cases, for `pytest.mark.parametrize`; a tuple is of several parameters. Those that are not KEPT are deep."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if case in kept else pytest.mark.deep)
        for case in cases
    ]


def first_of(seeds: Sequence[int], count: int) -> list[Any]:
    """Of the seeds, all but the first COUNT are deep."""
    return some_of(seeds, seeds[:count])


FAT_TREE_LINKS = some_of(
    range(16), {0: "the manager's", 7: "a host's", 8: "to a spine from the manager's leaf", 13: "from another leaf"}
)
"""Of the topology `fat_tree`. One of each kind is kept: all that the others have of their own is a place."""
