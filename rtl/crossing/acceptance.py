"""Which of the offers that it gets an input accepts (docs/pipeline.md, section 7)."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.rotation import RotatingChoice, select

__all__ = ["Acceptance"]


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
        """A rotating choice, and what it chooses."""
        m = Module()
        m.submodules.turn = turn = RotatingChoice(len(self.offers))
        m.d.comb += [
            turn.requests.eq(self.offers),
            turn.serve.eq(self.offers.any()),
            turn.served.eq(turn.chosen),
            self.accepted.eq(turn.chosen),
            self.first.eq(select(turn.chosen, self.firsts)),
        ]
        return m
