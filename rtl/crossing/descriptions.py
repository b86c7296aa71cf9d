"""What an input keeps of each packet besides its rows."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import memory_by_block

__all__ = ["Descriptions", "description_layout"]


def description_layout(vls: int, need_bits: int, length_bits: int) -> data.StructLayout:
    """A packet: the slot it came in on, its blocks, its words (PktLen), of so many bits. The blocks follow from
    the words, but so that nothing needs to be reckoned in the cycle in which row 0 crosses."""
    return data.StructLayout({"pool": range(vls + 1), "need": need_bits, "words": length_bits})


class Descriptions(wiring.Component):
    """Packets in the buffer, by first block, one written and one read in a cycle.

    A packet is written when it joins its queue and read when it is taken (x_0), two cycles later at the earliest.

    Args:
        blocks, block_bits: of the buffer, and of a block's number.
        layout: see `description_layout`.

    Members:
        write, first, words, need, pool: a packet.
        read: first block of a packet; `description`: that packet, in the cycle after.
    """

    def __init__(self, blocks: int, block_bits: int, layout: data.StructLayout) -> None:
        self._blocks = blocks
        self._layout = layout
        super().__init__(
            {
                "write": In(1),
                "first": In(block_bits),
                "pool": In(layout["pool"].shape),
                "words": In(layout["words"].shape),
                "need": In(layout["need"].shape),
                "read": In(block_bits),
                "description": Out(self._layout),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A memory."""
        m = Module()
        m.submodules.memory = memory = Memory(
            shape=self._layout, depth=self._blocks, init=[], attrs=memory_by_block(self._blocks)
        )
        write, read = memory.write_port(), memory.read_port()
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.first),
            write.data.pool.eq(self.pool),
            write.data.need.eq(self.need),
            write.data.words.eq(self.words),
            read.addr.eq(self.read),
            self.description.eq(read.data),
        ]
        return m
