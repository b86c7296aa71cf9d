"""Comparisons with constants, of fewer parts than those of two values, which become chains of carries."""

from itertools import groupby

from amaranth.hdl import Cat, Const, Value

__all__ = ["exceeds"]


def exceeds(value: Value, limit: int) -> Value:
    """It is more than this limit, which it has bits for."""
    more: Value = Const(0, 1)
    for is_one, places in groupby(range(len(value)), lambda place: limit >> place & 1):
        run = Cat(value[place] for place in places)
        more = run.all() & more if is_one else run.any() | more
    return more
