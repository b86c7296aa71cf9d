"""The rotating choice: the first of a set from a moving place on, cyclic; one-hot masks, and others."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RotatingChoice", "any_of", "at_number", "behind", "first_from", "how_many", "lowest", "number_of", "select"]


def _some_below(m: Module, bits: Value) -> Value:
    """For each place whether a bit below it is set, in as many steps as the width has bits."""
    width = len(bits)
    reach = 1
    while reach < width:
        further = Signal(width, name=f"within_{2 * reach}")
        m.d.comb += further.eq(bits | (bits << reach))
        bits = further
        reach *= 2
    return (bits << 1)[:width]


def lowest(m: Module, requests: Value) -> Value:
    """One-hot, of the width of `requests`: its lowest bit set, or none."""
    return requests & ~_some_below(m, requests)


def first_from(m: Module, requests: Value, place: Value) -> Signal:
    """One-hot: the first request x >= p cyclic (docs/pipeline.md, section 1).

    `place` is the mask of all x >= p; an empty mask stands for p = 0, as a full one. The requests from the place on
    and all are searched at the same time, so the depth grows with the logarithm of the width.
    """
    width = len(requests)
    ahead = Signal(width, name="ahead")
    chosen = Signal(width, name="first")
    m.d.comb += [ahead.eq(requests & place), chosen.eq(Mux(ahead.any(), lowest(m, ahead), lowest(m, requests)))]
    return chosen


def behind(m: Module, chosen: Value) -> Signal:
    """The `place` that makes the one after the one-hot `chosen` the next to be first."""
    place = Signal(len(chosen), name="place")
    m.d.comb += place.eq(_some_below(m, chosen))
    return place


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


def how_many(bits: Any) -> Value:
    """Of these bits, the number of those that are set, as a tree."""
    level = list(bits)
    while len(level) > 1:
        level = [sum(level[i + 1 : i + 2], level[i]) for i in range(0, len(level), 2)]
    return Value.cast(level[0])


def select(chosen: Value, values: Any) -> Value:
    """The value of the bit set in the one-hot `chosen`, all zeros for none."""
    return any_of(Mux(bit, Value.cast(value), 0) for bit, value in zip(chosen, values, strict=True))


def at_number(number: Value, values: Any) -> Value:
    """The value at this place, of as many as the number counts or a lower power of two, by its lower bits. A number
    that comes late is no later for it: an FPGA has multiplexers of eight values and of sixteen."""
    level = [Value.cast(value) for value in values]
    for bit in number[: (len(level) - 1).bit_length()]:
        level = [Mux(bit, odd, even) for even, odd in zip(level[::2], level[1::2], strict=True)]
    return level[0]


class RotatingChoice(wiring.Component):
    """Requests served in turn: the first behind the one served last.

    Members:
        requests: mask of those that ask, in this cycle.
        chosen: one of them, one-hot, or none; in the same cycle.
        serve, served: one of them is served, this one (one-hot); the next cycle chooses from behind it.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__({"requests": In(width), "chosen": Out(width), "serve": In(1), "served": In(width)})

    def elaborate(self, platform: object) -> Module:
        """The place behind the one served last is ready at the start of a cycle."""
        m = Module()
        place = Signal(self.width)
        place_behind = behind(m, self.served)
        with m.If(self.serve):
            m.d.sync += place.eq(place_behind)
        m.d.comb += self.chosen.eq(first_from(m, self.requests, place))
        return m
