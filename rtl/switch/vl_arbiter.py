"""VL arbitration of an output: which data VL sends next (IBTA vol 1, 7.6.9)."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.switch.rotation import behind, first_from

__all__ = ["VlArbiter"]


class VlArbiter(wiring.Component):
    """Every VL in turn, a packet at a time.

    Members:
        eligible: data VLs with a packet and the credits for the whole of it.
        chosen: one of them, one-hot, in the same cycle.
        taken: the chosen VL does send.
    """

    def __init__(self, vls: int) -> None:
        self.vls = vls
        super().__init__({"eligible": In(vls), "chosen": Out(vls), "taken": In(1)})

    def elaborate(self, platform: object) -> Module:
        """A rotating choice."""
        m = Module()
        place = Signal(self.vls)
        m.d.comb += self.chosen.eq(first_from(self.eligible, place))
        with m.If(self.taken):
            m.d.sync += place.eq(behind(self.chosen))
        return m
