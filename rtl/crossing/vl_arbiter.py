"""VL arbitration of an output: which data VL sends next (IBTA vol 1, 7.6.9)."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.rotation import RotatingChoice

__all__ = ["VlArbiter"]


class VlArbiter(wiring.Component):
    """Every VL in turn, a packet at a time.

    Members:
        eligible: data VLs with a packet and the credits for the whole of it.
        chosen: one of them, one-hot, in the same cycle; anything if there is none.
        serve, served: a data VL sends, this one (one-hot); the next cycle chooses from behind it.
    """

    def __init__(self, vls: int) -> None:
        self.vls = vls
        super().__init__({"eligible": In(vls), "chosen": Out(vls), "serve": In(1), "served": In(vls)})

    def elaborate(self, platform: object) -> Module:
        """A rotating choice; a single VL needs none."""
        m = Module()
        if self.vls == 1:
            m.d.comb += self.chosen.eq(1)
            return m
        m.submodules.turn = turn = RotatingChoice(self.vls)
        m.d.comb += [
            turn.requests.eq(self.eligible),
            turn.serve.eq(self.serve),
            turn.served.eq(self.served),
            self.chosen.eq(turn.chosen),
        ]
        return m
