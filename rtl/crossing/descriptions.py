"""What an input keeps of each packet besides its rows."""

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import BLOCK_RAM, LUT_RAM, NO_COLLISION
from rtl.widths import LENGTH_BITS, NEED_BITS, ROW_BITS

__all__ = ["Descriptions", "description_layout", "length_of"]


def description_layout(vls: int) -> data.StructLayout:
    """A packet: the slot it came in on, its blocks, the words (PktLen) in the last of them, whether it is oversize."""
    return data.StructLayout({"pool": range(vls + 1), "need": NEED_BITS, "rest": ROW_BITS, "oversize": 1})


def length_of(description: data.View) -> Cat:
    """PktLen in words: need = ceil((4n + 2) / 64)."""
    return Cat(description.rest, (description.need - 1)[:NEED_BITS])


class Descriptions(wiring.Component):
    """Packets in the buffer, by first block, one written and one read in a cycle.

    A packet is written when it joins its queue and read in the cycle after its grant at the earliest, two later.

    Members:
        write, first, words, need, pool, oversize: a packet.
        read: first block of a packet; `description`: that packet, in the cycle after.
    """

    def __init__(self, blocks: int, block_bits: int, vls: int) -> None:
        self._blocks = blocks
        self._layout = description_layout(vls)
        super().__init__(
            {
                "write": In(1),
                "first": In(block_bits),
                "pool": In(range(vls + 1)),
                "words": In(LENGTH_BITS),
                "need": In(NEED_BITS),
                "oversize": In(1),
                "read": In(block_bits),
                "description": Out(self._layout),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two memories: what crosses with row 0 comes from registers, since a block RAM yields it too late."""
        m = Module()
        crossing: dict[str, Value] = {"need": self.need, "oversize": self.oversize}
        staying: dict[str, Value] = {"pool": self.pool, "rest": self.words[:ROW_BITS]}
        for name, parts, attributes in (("crossing", crossing, LUT_RAM), ("staying", staying, BLOCK_RAM)):
            layout = data.StructLayout({part: value.shape() for part, value in parts.items()})
            memory = Memory(shape=layout, depth=self._blocks, init=[], attrs=NO_COLLISION | attributes)
            m.submodules[name] = memory
            write = memory.write_port()
            read = memory.read_port()
            m.d.comb += [write.en.eq(self.write), write.addr.eq(self.first), read.addr.eq(self.read)]
            for part, value in parts.items():
                m.d.comb += [write.data[part].eq(value), self.description[part].eq(read.data[part])]
        return m
