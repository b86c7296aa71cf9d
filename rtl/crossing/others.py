"""How inputs and outputs of a crossing number those at the other side: all but the one of their own number.

Nothing goes back to where it came from (docs/pipeline.md, sections 3.3, 3.7 and 9). So input i has nothing for output
i, and neither knows the other: of each other one they know its *place* among the others, in order. Turns pass as they
would among all, as one that never asks never has a turn.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Mux, Value

from rtl.below import below

__all__ = ["number_at", "of_others", "others", "others_for", "place_for", "place_of", "turned"]


def others(own: int, count: int) -> list[int]:
    """The numbers below COUNT of all but one of this number, if there is such a one."""
    return [number for number in range(count) if number != own]


def place_of(number: int, own: int) -> int:
    """Of another's number the place among the others."""
    return number - (number > own)


def number_at(place: Value, own: int) -> Value:
    """The number of the other at this place."""
    return place + ~below(place, own)


def of_others(own: int, values: Iterable[Any]) -> Value:
    """Of values by number, those of the others."""
    return Cat(value for number, value in enumerate(values) if number != own)


def place_for(own: Value, number: Value) -> Value:
    """`place_of`, where a signal says which is one's own, so that all inputs of ports are alike."""
    return (number - (number > own))[: len(number)]


def others_for(own: Value, values: Iterable[Any]) -> Value:
    """`of_others` of values that begin with those of all that OWN may be, likewise."""
    return Cat(Mux(below(own, place + 1), behind, here) for place, (here, behind) in enumerate(pairwise(values)))


def turned(masks: Sequence[Any], count: int) -> list[Value]:
    """Of each below COUNT, which of the others have it in their MASKS: what one side says, seen from the other."""
    return [
        Cat(masks[other][place_of(number, other)] for other in others(number, len(masks))) for number in range(count)
    ]
