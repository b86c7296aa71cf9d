"""The crossbar: rows from the readers to the outputs."""

from collections.abc import Sequence
from itertools import accumulate

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.link.transmit import SendRow
from rtl.rotation import number_of, select
from rtl.switch.reader import PassingPacket, PassingRow
from rtl.widths import LENGTH_BITS, PORT_BITS, SLOT_BITS

__all__ = ["Crossbar", "CrossbarOutput", "Scrapped"]

Scrapped = data.StructLayout(
    {
        "valid": 1,
        "slot": SLOT_BITS,
        "input": PORT_BITS,
        "n": LENGTH_BITS,
    }
)
"""A packet dropped unsent at an output, in cycle x_0 + 2."""


class CrossbarOutput(wiring.Component):
    """One output: at most one reader has a row for it.

    What decides about a row (whose it is, its slot) comes a cycle before the row and waits here in registers, so
    only the row itself crosses in the cycle in which the buffer yields it.

    Args:
        readers: of each input.

    Members:
        packets, to_here: of all readers, those of input 0 first, in cycle x_r: what the row that is due belongs to;
            which of them has one due for this output, one-hot, or none.
        rows: of all readers, in cycle x_r + 1.
        send: the row for this output, a cycle later.
        scrapped: a packet dropped, likewise.
    """

    def __init__(self, readers: Sequence[int]) -> None:
        self.readers = tuple(readers)
        sources = sum(readers)
        super().__init__(
            {
                "packets": In(data.ArrayLayout(PassingPacket, sources)),
                "to_here": In(sources),
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
        packet = Signal(PassingPacket)
        source = Signal(range(len(self.readers)))
        from_input = Signal(len(self.readers))
        firsts = accumulate(self.readers, initial=0)
        m.d.comb += from_input.eq(
            Cat(self.to_here[first:][:count].any() for first, count in zip(firsts, self.readers, strict=False))
        )
        m.d.sync += [
            chosen.eq(self.to_here),
            packet.eq(select(self.to_here, [self.packets[number] for number in sources])),
            source.eq(number_of(from_input)),
        ]

        # Cycle x_r + 1.
        row = Signal(PassingRow)
        m.d.comb += row.eq(select(chosen, [self.rows[number] for number in sources]))
        m.d.sync += [
            self.send.valid.eq(row.valid & ~row.scrap),
            self.send.data.eq(row.data),
            self.send.last.eq(row.last),
            self.send.bad.eq(row.bad),
            self.send.first.eq(packet.first),
            self.send.slot.eq(packet.slot),
            self.send.oversize.eq(packet.oversize),
            self.send.n.eq(packet.n),
            self.send.need.eq(packet.need),
            self.send.input.eq(source),
            self.scrapped.valid.eq(row.scrap),
            self.scrapped.slot.eq(packet.slot),
            self.scrapped.input.eq(source),
            self.scrapped.n.eq(packet.n),
        ]
        return m


class Crossbar(wiring.Component):
    """Every output from every reader.

    Args:
        readers: of each input.
        outputs: how many there are.

    Members:
        packets, to_output: of all readers, those of input 0 first, in cycle x_r: what the row that is due
            belongs to, and the mask of the output it goes to, or none.
        rows: of all readers, in cycle x_r + 1.
        sends, scrapped: of each output, see `CrossbarOutput`.
    """

    def __init__(self, readers: Sequence[int], outputs: int) -> None:
        self.readers = tuple(readers)
        self.outputs = outputs
        sources = sum(readers)
        super().__init__(
            {
                "packets": In(data.ArrayLayout(PassingPacket, sources)),
                "to_output": In(data.ArrayLayout(outputs, sources)),
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
            m.submodules[f"output_{output}"] = column = CrossbarOutput(self.readers)
            m.d.comb += [
                column.packets.eq(self.packets),
                column.to_here.eq(Cat(self.to_output[source][output] for source in sources)),
                column.rows.eq(self.rows),
                self.sends[output].eq(column.send),
                self.scrapped[output].eq(column.scrapped),
            ]
        return m
