"""The crossbar: rows from the readers to the outputs."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.link.transmit import SendRow
from rtl.rotation import number_of, select
from rtl.switch.reader import PassingRow
from rtl.widths import LENGTH_BITS, SLOT_BITS

__all__ = ["Crossbar", "CrossbarOutput", "Scrapped"]

Scrapped = data.StructLayout(
    {
        "valid": 1,
        "slot": SLOT_BITS,
        "input": 6,
        "n": LENGTH_BITS,
    }
)
"""A packet dropped unsent at an output, in cycle x_0 + 2."""


class CrossbarOutput(wiring.Component):
    """One output: at most one reader has a row for it.

    Members:
        rows: of all readers, those of input 0 first.
        chosen: the reader that has a row for this output, one-hot, or none.
        send: that row, in the same cycle.
        scrapped: a packet dropped, a cycle later.
    """

    def __init__(self, inputs: int, readers: int) -> None:
        self.inputs = inputs
        self.readers = readers
        sources = inputs * readers
        super().__init__(
            {
                "rows": In(data.ArrayLayout(PassingRow, sources)),
                "chosen": In(sources),
                "send": Out(SendRow),
                "scrapped": Out(Scrapped),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """An AND-OR tree."""
        m = Module()
        sources = self.inputs * self.readers
        row = Signal(PassingRow)
        from_input = Cat(self.chosen[i * self.readers :][: self.readers].any() for i in range(self.inputs))
        m.d.comb += [
            row.eq(select(self.chosen, [self.rows[source] for source in range(sources)])),
            self.send.valid.eq(self.chosen.any() & ~row.scrap),
            self.send.data.eq(row.data),
            self.send.first.eq(row.first),
            self.send.last.eq(row.last),
            self.send.bad.eq(row.bad),
            self.send.slot.eq(row.slot),
            self.send.oversize.eq(row.oversize),
            self.send.n.eq(row.n),
            self.send.need.eq(row.need),
            self.send.input.eq(number_of(from_input)),
        ]
        m.d.sync += [
            self.scrapped.valid.eq(row.scrap),
            self.scrapped.slot.eq(row.slot),
            self.scrapped.input.eq(self.send.input),
            self.scrapped.n.eq(row.n),
        ]
        return m


class Crossbar(wiring.Component):
    """Every output from every reader.

    Members:
        rows: of all readers, those of input 0 first.
        rows_to: for each of them the mask of the output it goes to, or none.
        sends, scrapped: of each output, see `CrossbarOutput`.
    """

    def __init__(self, inputs: int, readers: int, outputs: int) -> None:
        self.inputs = inputs
        self.readers = readers
        self.outputs = outputs
        sources = inputs * readers
        super().__init__(
            {
                "rows": In(data.ArrayLayout(PassingRow, sources)),
                "rows_to": In(data.ArrayLayout(outputs, sources)),
                "sends": Out(SendRow).array(outputs),
                "scrapped": Out(Scrapped).array(outputs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One column for each output."""
        m = Module()
        sources = range(self.inputs * self.readers)
        for output in range(self.outputs):
            m.submodules[f"output_{output}"] = column = CrossbarOutput(self.inputs, self.readers)
            m.d.comb += [
                column.rows.eq(self.rows),
                column.chosen.eq(Cat(self.rows_to[source][output] for source in sources)),
                self.sends[output].eq(column.send),
                self.scrapped[output].eq(column.scrapped),
            ]
        return m
