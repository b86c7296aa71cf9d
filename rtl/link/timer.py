"""A timer of cycles."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Timer"]


class Timer(wiring.Component):
    """Counts cycles repeatedly, up to a length.

    Args:
        bits: width of the length.
        first: what the first cycle of a round counts as, the last one being `length`.

    Members:
        length: cycles, at least 1; less one, if the first counts as 0.
        restart: the next cycle is the first.
        run: this cycle counts.
        last: this cycle counts, and is the last of its round.
    """

    def __init__(self, bits: int, first: int = 1) -> None:
        self._first = first
        super().__init__({"length": In(bits), "restart": In(1), "run": In(1), "last": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the timer."""
        m = Module()
        place = Signal.like(self.length, init=self._first)
        m.d.comb += self.last.eq(self.run & (place == self.length))
        with m.If(self.restart | self.last):
            m.d.sync += place.eq(self._first)
        with m.Elif(self.run):
            m.d.sync += place.eq(place + 1)
        return m
