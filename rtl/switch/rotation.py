"""The rotating choice: the first of a set from a moving place on, cyclic."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Mux, Value

__all__ = ["any_of", "behind", "first_from", "lowest", "number_of", "select"]


def lowest(requests: Value) -> Value:
    """One-hot, of the width of `requests`: its lowest bit set, or none."""
    return (requests & (~requests + 1))[: len(requests)]


def first_from(requests: Value, place: Value) -> Value:
    """One-hot: the first request x >= p cyclic (docs/pipeline.md, section 1).

    `place` is the mask of all x >= p; an empty mask stands for p = 0 like a full one.
    """
    ahead = requests & place
    return lowest(Mux(ahead.any(), ahead, requests))


def behind(chosen: Value) -> Value:
    """The `place` that makes the one after the one-hot `chosen` the next to be first."""
    return ~(chosen | (chosen - 1))[: len(chosen)]


def number_of(chosen: Value) -> Value:
    """The number of the bit set in a one-hot mask (0 for none)."""
    width = len(chosen)
    return Cat(
        Cat(chosen[place] for place in range(width) if place >> bit & 1).any()
        for bit in range(max(1, (width - 1).bit_length()))
    )


def any_of(values: Any) -> Value:
    """Bitwise OR of values, as a tree."""
    level = list(values)
    while len(level) > 1:
        level = [reduce(or_, level[i : i + 2]) for i in range(0, len(level), 2)]
    return Value.cast(level[0])


def select(chosen: Value, values: Any) -> Value:
    """The value of the bit set in the one-hot `chosen`, all zeros for none."""
    return any_of(Mux(bit, Value.cast(value), 0) for bit, value in zip(chosen, values, strict=True))
