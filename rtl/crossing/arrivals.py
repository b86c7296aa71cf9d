"""How many blocks join for each VL of each port, multicast packets left out (docs/pipeline.md, section 7.3)."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.others import others, place_of, turned
from rtl.widths import NEED_BITS, SLOT_BITS, need_bits
from wire.parameters import largest_blocks

__all__ = ["Arrivals", "arrived_layout", "joining_layout"]


def joining_layout(outputs: int) -> data.StructLayout:
    """A packet joins a queue of an input in this cycle, and is no multicast packet."""
    return data.StructLayout({"valid": 1, "need": NEED_BITS, "output": range(outputs), "slot": SLOT_BITS})


def arrived_layout(inputs: int, vls: int, mtu: int) -> data.StructLayout:
    """`some`: packets have joined, of so many `blocks`, by VL; else these are 0."""
    bits = (inputs * largest_blocks(mtu)).bit_length()
    return data.StructLayout({"some": 1, "blocks": data.ArrayLayout(bits, vls)})


def _sum(values: Sequence[Value], never: Value) -> Value:
    """A tree of carry chains, one LUT a bit; NEVER is 1 where nobody looks at the sum.

    Of sums of sums Yosys makes carry-save adders, two LUTs a bit, unless something else may be carried in between.
    """
    level = [sum(values[i + 1 : i + 2], values[i]) for i in range(0, len(values), 2)]
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [(Cat(never, pair[0]) + Cat(never, pair[1]))[1:] if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


class Arrivals(wiring.Component):
    """Adds up what joins at all inputs.

    Args:
        inputs: of the crossing.
        ports: the first of its outputs, those that are counted.
        mtu: what the largest packet comes from, in bytes.

    Members:
        joining: of each input (cycle e), by an output's place among the others (see `others`).
        arrived: of each port (e+3).
    """

    def __init__(self, inputs: int, ports: int, vls: int, mtu: int) -> None:
        self.inputs = inputs
        self.ports = ports
        self.vls = vls
        self.mtu = mtu
        super().__init__(
            {
                "joining": In(joining_layout(inputs - 1)).array(inputs),
                "arrived": Out(arrived_layout(inputs - 1, vls, mtu)).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What joins, which comes from far; a cycle later where; and then sums, which rest where nothing comes."""
        m = Module()
        bits = need_bits(self.mtu)
        outputs = [others(number, self.ports) for number in range(self.inputs)]
        to = [Signal(len(of_input), name=f"to_{number}", reset_less=True) for number, of_input in enumerate(outputs)]
        # A register for each place in which a need may be, 0 elsewhere: to clear registers costs no LUTs, gates would.
        needs = [
            {
                (o, vl): Signal(bits, name=f"need_{n}_{o}_{vl}", reset_less=True)
                for o in of_input
                for vl in range(self.vls)
            }
            for n, of_input in enumerate(outputs)
        ]
        for number, joins in enumerate(self.joining):
            joining = Signal(joins.shape(), name=f"joining_{number}", reset_less=True)
            m.d.sync += joining.eq(joins)
            on_data_vl = joining.valid & (joining.slot != self.vls)
            m.d.sync += to[number].eq(Mux(on_data_vl, 1 << joining.output, 0))
            m.d.sync += [
                need.eq(
                    Mux(joining.valid & (joining.output == place_of(o, number)) & (joining.slot == vl), joining.need, 0)
                )
                for (o, vl), need in needs[number].items()
            ]

        comes = Signal(self.ports)
        m.d.comb += comes.eq(Cat(mask.any() for mask in turned(to, self.ports)))
        for o, arrived in enumerate(self.arrived):
            m.d.sync += [arrived.some.eq(comes[o]), arrived.blocks.eq(0)]
            with m.If(comes[o]):
                for vl in range(self.vls):
                    m.d.sync += arrived.blocks[vl].eq(_sum([of[o, vl] for of in needs if (o, vl) in of], ~comes[o]))
        return m
