"""A component on three pins, for place and route."""

from amaranth.hdl import Cat, ClockDomain, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ThreePins"]


class ThreePins(wiring.Component):
    """A component whose inputs come from shift registers and whose outputs are folded into one.

    A switch has more ports than an FPGA has pins: on a board, transceivers stand between. Here registers do, so
    that every path of the component begins and ends at one and its clock is measured without pins. Nothing of the
    component is constant or unused but its reset, which is left out, for an FPGA's registers begin with their initial
    values, and its trace, which is left open: it is for simulation.

    Args:
        component: the component.
        chain: registers in a row, at most. Yosys follows cell after cell by recursion, and runs out of stack in longer
            ones.

    Members:
        clk: the clock.
        serial_in: to the first shift register.
        serial_out: the outputs of earlier cycles, folded.
    """

    def __init__(self, component: wiring.Component, chain: int = 1024) -> None:
        self.component = component
        self._chain = chain
        super().__init__({"clk": In(1), "serial_in": In(1), "serial_out": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Shift registers, component, fold."""
        m = Module()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        m.d.comb += sync.clk.eq(self.clk)
        m.submodules.design = component = self.component
        inputs: list[Value] = []
        outputs: list[Value] = []
        for path, member, signal in component.signature.flatten(component):
            if path[0] != "trace":
                (inputs if member.flow == In else outputs).append(Value.cast(signal))
        shifted = Signal(len(Cat(inputs)), name="pins_in")
        folded = Signal(len(Cat(outputs)), name="pins_out")
        m.d.sync += [
            shifted.eq(Cat(self.serial_in, shifted)),
            folded.eq(Cat(outputs) ^ (folded << 1)),
        ]
        # A chain begins with the first of the one before, changed: no two registers are identical.
        for start in range(self._chain, len(shifted), self._chain):
            m.d.sync += shifted[start].eq(self.serial_in ^ shifted[start - self._chain])
        for start in range(self._chain, len(folded), self._chain):
            m.d.sync += folded[start].eq(Cat(outputs)[start])
        ends = [*range(self._chain - 1, len(folded) - 1, self._chain), len(folded) - 1]
        m.d.comb += [
            Cat(inputs).eq(shifted),
            self.serial_out.eq(Cat(folded[end] for end in ends).xor()),
        ]
        return m
