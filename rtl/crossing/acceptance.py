"""Which of the offers that it gets an input accepts (docs/pipeline.md, section 7)."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.rotation import behind, select

__all__ = ["Acceptance"]


def _first_of(ahead: Value, requests: Value) -> Value:
    """One-hot: the first of `ahead`, if there are any, else the first of all `requests`.

    Those ahead are the requests from some place on.
    """
    return Cat(
        Mux(ahead[x], ~ahead[:x].any(), requests[x] & ~(requests[:x].any() | ahead[x + 1 :].any()))
        for x in range(len(requests))
    )


class Acceptance(wiring.Component):
    """One input: it accepts one of its offers, if there are any, and finds the first block of the head that goes.

    That block is the address of row 0 in all of the input's memories, in the same cycle: the longest path of a switch.
    So whatever depends on the output is ready for each of them before it is known which it is.

    Members:
        offers: mask of the outputs that made it an offer in the cycle before (this is g+1 = x_0).
        firsts: of each of them, the first block of the head that goes if it is accepted; of others anything.
        accepted: one-hot, that whose offer is accepted; none if there are no offers.
        first: the first block of the head that goes; 0 if none does.
    """

    def __init__(self, outputs: int, block_bits: int) -> None:
        super().__init__(
            {
                "offers": In(outputs),
                "firsts": In(data.ArrayLayout(block_bits, outputs)),
                "accepted": Out(outputs),
                "first": Out(block_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A rotating choice between pairs of outputs; of each pair, which it would be is ready by then."""
        m = Module()
        count = len(self.offers)
        place = Signal(count)
        ahead = Signal(count)
        m.d.comb += ahead.eq(self.offers & place)

        # No place makes output 0 one of those ahead, so it is the one that is alone.
        pairs = [range(1), *(range(low, min(low + 2, count)) for low in range(1, count, 2))]
        goes = Signal(len(pairs))
        in_pairs = [Cat(Cat(mask[o] for o in pair).any() for pair in pairs) for mask in (ahead, self.offers)]
        m.d.comb += goes.eq(_first_of(*in_pairs))

        firsts: list[Value] = []
        for pair_goes, (low, *high) in zip(goes, pairs, strict=True):
            goes_low, first = pair_goes, self.firsts[low]
            for other in high:
                is_low = self.offers[low] & (place[low] | ~ahead[other])
                goes_low, first = pair_goes & is_low, Mux(is_low, first, self.firsts[other])
                m.d.comb += self.accepted[other].eq(pair_goes & ~is_low)
            m.d.comb += self.accepted[low].eq(goes_low)
            firsts.append(first)
        m.d.comb += self.first.eq(select(goes, firsts))

        place_behind = behind(m, self.accepted)
        with m.If(self.offers.any()):
            m.d.sync += place.eq(place_behind)
        return m
