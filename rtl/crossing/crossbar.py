"""The crossbar: rows from the readers to the outputs."""

from collections.abc import Sequence
from itertools import accumulate

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.reader import PassingRow
from rtl.link.transmit import SendRow
from rtl.rotation import number_of, select
from rtl.widths import LENGTH_BITS, PORT_BITS, SLOT_BITS

__all__ = ["Crossbar", "CrossbarOutput", "Scrapped"]

Scrapped = data.StructLayout({"valid": 1, "slot": SLOT_BITS, "input": PORT_BITS, "n": LENGTH_BITS})
"""A packet dropped unsent at an output, in cycle x_0 + 2."""


class CrossbarOutput(wiring.Component):
    """One output: at most one reader has a row for it.

    What is known of a row before (whose it is, its slot) comes a cycle earlier and waits here in registers, so
    only the row itself crosses in the cycle in which the buffer yields it. That a row is a packet's first is known
    here: the one before was a last.

    Args:
        readers: of each input.
        vls: data VLs.

    Members:
        to_here, slots: of all readers, those of input 0 first, in cycle x_r: which of them has a row due for this
            output, one-hot, or none; the row's slot.
        rows: of all readers, in cycle x_r + 1.
        send: the row for this output, a cycle later.
        scrapped: a packet dropped, likewise.
    """

    def __init__(self, readers: Sequence[int], vls: int) -> None:
        self.readers = tuple(readers)
        self.vls = vls
        sources = sum(readers)
        super().__init__(
            {
                "to_here": In(sources),
                "slots": In(data.ArrayLayout(range(vls + 1), sources)),
                "rows": In(data.ArrayLayout(PassingRow, sources)),
                "send": Out(SendRow),
                "scrapped": Out(Scrapped),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two AND-OR trees, a cycle apart, and a register behind each."""
        m = Module()
        sources = range(sum(self.readers))

        # Cycle x_r.
        chosen = Signal(len(sources))
        slot = Signal(range(self.vls + 1))
        m.d.sync += [
            chosen.eq(self.to_here),
            slot.eq(select(self.to_here, [self.slots[number] for number in sources])),
        ]

        # Cycle x_r + 1.
        row = Signal(PassingRow)
        scrap = Signal()
        begun = Signal()  # a packet, by the rows before
        from_input = Signal(len(self.readers))
        firsts = accumulate(self.readers, initial=0)
        of_inputs = [chosen[first:][:count] for first, count in zip(firsts, self.readers, strict=False)]
        m.d.comb += [
            row.eq(select(chosen, [self.rows[number] for number in sources])),
            scrap.eq(row.bad & ~row.last),
            from_input.eq(Cat(of_input.any() for of_input in of_inputs)),
        ]
        with m.If(row.valid & ~scrap):
            m.d.sync += begun.eq(~row.last)
        m.d.sync += [
            self.send.valid.eq(row.valid & ~scrap),
            self.send.data.eq(row.data),
            self.send.last.eq(row.last),
            self.send.bad.eq(row.bad),
            self.send.first.eq(~begun),
            self.send.slot.eq(slot),
            self.send.n.eq(row.n),
            self.send.need.eq(row.data[24:]),
            self.send.input.eq(number_of(from_input)),
            self.scrapped.valid.eq(row.valid & scrap),
            self.scrapped.slot.eq(slot),
            self.scrapped.input.eq(number_of(from_input)),
            self.scrapped.n.eq(row.n),
        ]
        return m


class Crossbar(wiring.Component):
    """Every output from every reader.

    Args:
        readers: of each input.
        outputs: how many there are.
        vls: data VLs.

    Members:
        to_output, slots: of all readers, those of input 0 first, in cycle x_r: the mask of the output to which the row
            that is due goes, or none; its slot there.
        rows: of all readers, in cycle x_r + 1.
        sends, scrapped: of each output, see `CrossbarOutput`.
    """

    def __init__(self, readers: Sequence[int], outputs: int, vls: int) -> None:
        self.readers = tuple(readers)
        self.outputs = outputs
        self.vls = vls
        sources = sum(readers)
        super().__init__(
            {
                "to_output": In(data.ArrayLayout(outputs, sources)),
                "slots": In(data.ArrayLayout(range(vls + 1), sources)),
                "rows": In(data.ArrayLayout(PassingRow, sources)),
                "sends": Out(SendRow).array(outputs),
                "scrapped": Out(Scrapped).array(outputs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One column for each output."""
        m = Module()
        sources = range(sum(self.readers))
        for output in range(self.outputs):
            m.submodules[f"output_{output}"] = column = CrossbarOutput(self.readers, self.vls)
            m.d.comb += [
                column.slots.eq(self.slots),
                column.to_here.eq(Cat(self.to_output[source][output] for source in sources)),
                column.rows.eq(self.rows),
                self.sends[output].eq(column.send),
                self.scrapped[output].eq(column.scrapped),
            ]
        return m
