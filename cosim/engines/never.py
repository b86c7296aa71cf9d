"""Ways of the golden model's decisions that no check can go, each with its reason, as never.toml has them."""

from __future__ import annotations

import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

from cosim.engines.decisions import Outcome, outcomes

__all__ = ["never", "ways_of"]

_FILE: Final = Path(__file__).with_name("never.toml")


@cache
def never() -> dict[Outcome, str]:
    """Them, and why.

    Raises:
        LookupError: see `ways_of`.
    """
    return ways_of(_FILE.read_text())


def ways_of(text: str) -> dict[Outcome, str]:
    """Those that TEXT has: a table for each function, by its file, and the reason for each `way: expression`.

    An expression in a function is meant at all of its places there; with a number, as in `true: here (2)`, at that one.

    Raises:
        LookupError: the model has no such function, expression, way or place.
    """
    reasons = {(place, way): reason for place, ways in tomllib.loads(text).items() for way, reason in ways.items()}
    found: dict[Outcome, str] = {}
    met: Counter[tuple[str, str]] = Counter()
    used = set()
    for one in outcomes():
        place, way = key = f"{one.file} {one.function}", f"{one.way}: {one.source}"
        met[key] += 1
        for name in (key, (place, f"{way} ({met[key]})")):
            if name in reasons:
                found[one] = reasons[name]
                used.add(name)
    if wrong := reasons.keys() - used:
        raise LookupError(f"the golden model has no {'; '.join(map(' '.join, sorted(wrong)))}")
    return found
