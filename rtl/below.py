"""Comparison with a constant."""

from itertools import groupby

from amaranth.hdl import Const, Value

__all__ = ["below"]


def below(value: Value, limit: int) -> Value:
    """Whether VALUE is less than a constant: a few gates, where `<` becomes a chain of carries."""
    if limit >= 1 << len(value):
        return Const(1, 1)
    less: Value = Const(0, 1)
    for is_one, group in groupby(range(len(value)), lambda place: limit >> place & 1):
        places = [*group]
        part = value[places[0] : places[-1] + 1]
        less = ~part.all() | less if is_one else ~part.any() & less
    return less
