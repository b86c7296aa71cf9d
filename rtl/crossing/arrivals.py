"""How many blocks join for each VL of each port, multicast packets left out (docs/pipeline.md, section 7.3)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.rotation import any_of, how_many
from rtl.widths import NEED_BITS, SLOT_BITS

__all__ = ["Arrivals", "arrived_layout", "joining_layout"]


def joining_layout(outputs: int) -> data.StructLayout:
    """A packet joins a queue of an input in this cycle, and is no multicast packet."""
    return data.StructLayout({"valid": 1, "need": NEED_BITS, "output": range(outputs), "slot": SLOT_BITS})


def arrived_layout(inputs: int, vls: int) -> data.StructLayout:
    """`some`: packets have joined, of so many `blocks`, by VL; else these are anything."""
    bits = (inputs << NEED_BITS).bit_length()
    return data.StructLayout({"some": 1, "blocks": data.ArrayLayout(bits, vls)})


class Arrivals(wiring.Component):
    """Adds up what joins at all inputs.

    Args:
        ports: the first of the outputs, those that are counted.

    Members:
        joining: of each input (cycle e).
        arrived: of each port (e+2).
    """

    def __init__(self, inputs: int, outputs: int, ports: int, vls: int) -> None:
        self.inputs = inputs
        self.ports = ports
        self.vls = vls
        super().__init__(
            {
                "joining": In(joining_layout(outputs)).array(inputs),
                "arrived": Out(arrived_layout(inputs, vls)).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Masks, and a cycle later sums; these rest where nothing comes."""
        m = Module()
        to = [Signal(self.ports, name=f"to_{number}") for number in range(self.inputs)]
        slots = [Signal(self.vls, name=f"slots_{number}") for number in range(self.inputs)]
        needs = [Signal(NEED_BITS, name=f"need_{number}") for number in range(self.inputs)]
        for number, joining in enumerate(self.joining):
            on_data_vl = joining.valid & (joining.slot != self.vls)
            m.d.sync += to[number].eq(Mux(on_data_vl, 1 << joining.output, 0))
            with m.If(joining.valid):
                m.d.sync += [slots[number].eq(1 << joining.slot), needs[number].eq(joining.need)]

        comes = Signal(self.ports)
        m.d.comb += comes.eq(any_of(to))
        m.d.sync += Cat(arrived.some for arrived in self.arrived).eq(comes)
        for o, arrived in enumerate(self.arrived):
            with m.If(comes[o]):
                for vl in range(self.vls):
                    of_inputs = zip(to, slots, needs, strict=True)
                    blocks = how_many(Mux(mask[o] & slot[vl], need, 0) for mask, slot, need in of_inputs)
                    m.d.sync += arrived.blocks[vl].eq(blocks)
        return m
