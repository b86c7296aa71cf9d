"""The crossbar: rows from the readers to the outputs."""

from collections.abc import Sequence
from itertools import accumulate

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.coded_choice import CodedChoice
from rtl.crossing.others import number_at, of_others, others, place_of
from rtl.crossing.reader import PassingRow
from rtl.link.transmit import SendRow
from rtl.rotation import number_of
from rtl.widths import LENGTH_BITS, PORT_BITS, SLOT_BITS

__all__ = ["Crossbar", "CrossbarOutput", "Scrapped"]

Scrapped = data.StructLayout({"valid": 1, "slot": SLOT_BITS, "input": PORT_BITS, "n": LENGTH_BITS})
"""A packet dropped unsent at an output, in cycle x_0 + 2."""


class CrossbarOutput(wiring.Component):
    """One output: at most one reader has a row for it.

    Whose a row is is known a cycle earlier, but late, and waits in registers as it comes. Its number is made in the
    cycle in which the buffer yields the row, which then only crosses. Its slot is that of the grant, and that it is a
    packet's first is known here: the one before was a last.

    Args:
        readers: of each of its inputs, the others (see `others`).
        vls: data VLs.
        aging: of how many of these, from the first on, packets have a life time.

    Members:
        to_here: of all readers, those of input 0 first, in cycle x_r: which of them has a row due for this output,
            one-hot, or none.
        granted, slot_granted: row 0 crosses in this cycle (x_0 + 1), of a packet on this slot, one-hot.
        rows: of all readers, in cycle x_r + 1.
        outlived: of each input, that the packet whose row 0 crosses in this cycle has outlived its life time. It comes
            last, and crosses by itself.
        send: the row for this output, a cycle later. Its `input` is one's place among these.
        scrapped: a packet dropped, likewise.
    """

    def __init__(self, readers: Sequence[int], vls: int, aging: int = 0) -> None:
        self.readers = tuple(readers)
        self.vls = vls
        self.aging = aging
        sources = sum(readers)
        super().__init__(
            {
                "to_here": In(sources),
                "granted": In(1),
                "slot_granted": In(vls + 1),
                "rows": In(data.ArrayLayout(PassingRow, sources)),
                "outlived": In(len(self.readers)),
                "send": Out(SendRow),
                "scrapped": Out(Scrapped),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A choice, and a register behind it."""
        m = Module()

        # Cycle x_r.
        came_here = Signal.like(self.to_here)
        m.d.sync += came_here.eq(self.to_here)

        # Cycle x_r + 1.
        firsts = accumulate(self.readers, initial=0)
        here = [came_here[first:][:count].any() for first, count in zip(firsts, self.readers, strict=False)]
        from_reader = CodedChoice(m, came_here)
        row = Signal(PassingRow)
        begun, begun_before = Signal(), Signal()  # a packet, by the rows before
        slot, slot_before = Signal(range(self.vls + 1)), Signal(range(self.vls + 1))
        m.d.comb += [
            row.eq(from_reader.of([Value.cast(row) for row in self.rows])),
            slot.eq(Mux(self.granted, number_of(self.slot_granted), slot_before)),
            begun.eq(Mux(self.send.valid, ~(self.send.last | (self.send.ages & self.send.outlived)), begun_before)),
        ]
        m.d.sync += [
            slot_before.eq(slot),
            begun_before.eq(begun),
            self.send.valid.eq(row.valid),
            self.send.data.eq(row.data),
            self.send.last.eq(row.last),
            self.send.bad.eq(row.bad),
            self.send.first.eq(~begun),
            self.send.slot.eq(slot),
            self.send.n.eq(row.n),
            self.send.need.eq(row.data[24:]),
            self.send.input.eq(number_of(Cat(here))),
        ]
        if self.aging:
            from_input = CodedChoice(m, Cat(here[: self.aging]))
            m.d.sync += [
                self.send.ages.eq(self.granted & from_input.some()),
                self.send.outlived.eq(from_input.of_some(list(self.outlived[: self.aging]))),
            ]

        # Cycle x_r + 2.
        m.d.comb += [
            self.scrapped.valid.eq(self.send.bad & ~self.send.valid),
            self.scrapped.slot.eq(self.send.slot),
            self.scrapped.input.eq(self.send.input),
            self.scrapped.n.eq(self.send.n),
        ]
        return m


class Crossbar(wiring.Component):
    """Every output from every reader.

    Args:
        readers: of each input.
        vls: data VLs.
        aging: how many inputs and outputs, from the first on, are those between which packets have a life time.

    Members:
        to_output: of all readers, those of input 0 first, in cycle x_r: the mask of the output, of the others, to which
            the row that is due goes, or none.
        granted, slots_granted: mask of the outputs for which row 0 of a packet crosses in this cycle (x_0 + 1); of each
            of them the slot, one-hot.
        rows, outlived: see `CrossbarOutput`.
        sends, scrapped: of each output, see `CrossbarOutput`; `input` is the number among all.
    """

    def __init__(self, readers: Sequence[int], vls: int, aging: int = 0) -> None:
        self.readers = tuple(readers)
        self.vls = vls
        self.aging = aging
        sources, outputs = sum(readers), len(self.readers)
        super().__init__(
            {
                "to_output": In(data.ArrayLayout(outputs - 1, sources)),
                "granted": In(outputs),
                "slots_granted": In(data.ArrayLayout(vls + 1, outputs)),
                "rows": In(data.ArrayLayout(PassingRow, sources)),
                "outlived": In(len(self.readers)),
                "sends": Out(SendRow).array(outputs),
                "scrapped": Out(Scrapped).array(outputs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One column for each output."""
        m = Module()
        firsts = accumulate(self.readers, initial=0)
        sources = [range(first, first + count) for first, count in zip(firsts, self.readers, strict=False)]
        for output in range(len(self.readers)):
            inputs = others(output, len(self.readers))
            aging = self.aging - 1 if output < self.aging else 0
            column = CrossbarOutput([self.readers[i] for i in inputs], self.vls, aging)
            m.submodules[f"output_{output}"] = column
            m.d.comb += [
                column.granted.eq(self.granted[output]),
                column.slot_granted.eq(self.slots_granted[output]),
                column.to_here.eq(Cat(self.to_output[at][place_of(output, i)] for i in inputs for at in sources[i])),
                column.rows.eq(Cat(self.rows[at] for i in inputs for at in sources[i])),
                column.outlived.eq(of_others(output, self.outlived)),
                self.sends[output].eq(column.send),
                self.scrapped[output].eq(column.scrapped),
            ]
            if output < len(inputs):  # the others of the last have their numbers as places
                number = number_at(column.send.input, output)
                m.d.comb += [self.sends[output].input.eq(number), self.scrapped[output].input.eq(number)]
        return m
