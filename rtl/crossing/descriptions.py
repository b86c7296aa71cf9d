"""What an input keeps of each packet besides its rows."""

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import BLOCK_RAM, LUT_RAM, NO_COLLISION
from rtl.widths import LENGTH_BITS, NEED_BITS, ROW_BITS

__all__ = ["Descriptions", "description_layout", "length_of"]


def description_layout(vls: int) -> data.StructLayout:
    """A packet: the slot it came in on, its blocks, the words (PktLen) in the last of them."""
    return data.StructLayout({"pool": range(vls + 1), "need": NEED_BITS, "rest": ROW_BITS})


def length_of(description: data.View) -> Cat:
    """PktLen in words: need = ceil((4n + 2) / 64)."""
    return Cat(description.rest, (description.need - 1)[:NEED_BITS])


class Descriptions(wiring.Component):
    """Packets in the buffer, by first block, one written and one read in a cycle.

    A packet is written when it joins its queue and read when it is taken (x_0), two cycles later at the earliest.

    Members:
        write, first, words, need, pool: a packet.
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
                "read": In(block_bits),
                "description": Out(self._layout),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two memories. What crosses with row 0 comes from registers, since a block RAM yields it too late, and is read
        in the cycle after, since the block is known too late for that."""
        m = Module()
        m.submodules.staying = staying = Memory(
            shape=data.StructLayout({"pool": self.pool.shape(), "rest": ROW_BITS}),
            depth=self._blocks,
            init=[],
            attrs=NO_COLLISION | BLOCK_RAM,
        )
        m.submodules.crossing = crossing = Memory(shape=NEED_BITS, depth=self._blocks, init=[], attrs=LUT_RAM)
        staying_write, staying_read = staying.write_port(), staying.read_port()
        crossing_write, crossing_read = crossing.write_port(), crossing.read_port(domain="comb")
        for write in (staying_write, crossing_write):
            m.d.comb += [write.en.eq(self.write), write.addr.eq(self.first)]
        m.d.sync += crossing_read.addr.eq(self.read)
        m.d.comb += [
            staying_write.data.pool.eq(self.pool),
            staying_write.data.rest.eq(self.words),
            staying_read.addr.eq(self.read),
            crossing_write.data.eq(self.need),
            self.description.pool.eq(staying_read.data.pool),
            self.description.rest.eq(staying_read.data.rest),
            self.description.need.eq(crossing_read.data),
        ]
        return m
