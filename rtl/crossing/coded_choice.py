"""A choice among many values that costs few wires."""

from collections.abc import Sequence
from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from rtl.rotation import any_of, at_number, number_of

__all__ = ["CodedChoice"]

_MOST: Final = 16
"""Values that one multiplexer takes: an FPGA has it in the eight LUTs that lie together, and their four selections."""


class CodedChoice:
    """Chooses by a number what one-hot bits choose.

    The values are in groups, each a power of two, the largest first; where a group lacks less than a quarter, its first
    value is there once more. A group's multiplexer takes the value at a place, the number of which all groups share. So
    no value needs a wire of its own that chooses it, as each would where one-hot bits gate them.

    Args:
        m: gets the number.
        chosen: one-hot, or none. It is to be there early.
    """

    def __init__(self, m: Module, chosen: Value) -> None:
        self._groups: list[tuple[int, int]] = []
        first = 0
        while first < len(chosen):
            left = min(_MOST, len(chosen) - first)
            size = 1 << (left - 1).bit_length()
            if 4 * left <= 3 * size:
                size //= 2
            self._groups.append((first, size))
            first += size
        self._place = Signal(range(self._groups[0][1]), name="place")
        self._group = Signal(len(self._groups), name="group")
        m.d.comb += [
            self._place.eq(any_of(number_of(chosen[first:][:size]) for first, size in self._groups)),
            self._group.eq(Cat(chosen[first:][:size].any() for first, size in self._groups)),
        ]

    def of(self, values: Sequence[Value]) -> Value:
        """The value chosen, all zeros for none."""
        return any_of(
            Mux(is_here, self._of_group(group, values), 0)
            for is_here, group in zip(self._group, self._groups, strict=True)
        )

    def some(self) -> Value:
        """One is chosen."""
        return self._group.any()

    def of_some(self, values: Sequence[Value]) -> Value:
        """The value chosen, anything for none: a single group's is not gated."""
        return self._of_group(self._groups[0], values) if len(self._groups) == 1 else self.of(values)

    def _of_group(self, group: tuple[int, int], values: Sequence[Value]) -> Value:
        """Of its values that at the place."""
        first, size = group
        there = list(values[first:][:size])
        return at_number(self._place, there + there[:1] * (size - len(there)))
