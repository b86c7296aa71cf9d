"""Which packet is behind which, in all queues of an input (docs/pipeline.md, section 4)."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Shape
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import memory_by_block
from rtl.rotation import any_of

__all__ = ["Successors", "SuccessorsSignature", "packet_layout"]


def packet_layout(block_bits: int, key: data.StructLayout | None) -> data.StructLayout:
    """A packet in a queue: its first block, and its key, unless all are equal."""
    return data.StructLayout({"first": block_bits} | ({} if key is None else {"key": key}))


class SuccessorsSignature(wiring.Signature):
    """The packets behind others in queues of one kind, seen from these.

    Members:
        joins, behind, packet: a packet joins behind the one that has `behind` as its first block.
        successor: the packet behind the one that was taken two cycles before, if that was in such a queue.
    """

    def __init__(self, packet: data.StructLayout) -> None:
        block = packet["first"].shape
        super().__init__({"joins": Out(1), "behind": Out(block), "packet": Out(packet), "successor": In(packet)})


class Successors(wiring.Component):
    """One memory for all kinds of queues: in a cycle one packet joins and one is taken, whatever queue it is in.

    Args:
        blocks: of the input's buffer.
        packets: of each kind of queue, the layout.

    Members:
        kind: which of the kinds a packet is of that joins.
        taken: the first block of a head that is taken in this cycle (x_0).
        first: that of the packet behind the head that was taken two cycles before.
        kind_N: of each kind, see `SuccessorsSignature`.
    """

    def __init__(self, blocks: int, packets: Sequence[data.StructLayout]) -> None:
        self._blocks = blocks
        self._packets = packets
        kinds = {f"kind_{number}": In(SuccessorsSignature(packet)) for number, packet in enumerate(packets)}
        block = packets[0]["first"].shape
        super().__init__({"kind": In(range(max(2, len(packets)))), "taken": In(block), "first": Out(block), **kinds})

    @property
    def kinds(self) -> list[Any]:
        """All `kind_N`."""
        return [getattr(self, f"kind_{number}") for number in range(len(self._packets))]

    def elaborate(self, platform: object) -> Module:
        """At a packet's first block, the packet behind it. What is taken is known late in its cycle, so the memory is
        read a cycle later, by a register of it, when a packet that joined at x_0 has been written.

        A word read while it is written belongs to no head: nothing joins behind one that was taken as the last.
        """
        m = Module()
        width = max(Shape.cast(packet).width for packet in self._packets)
        m.submodules.memory = memory = Memory(
            shape=width, depth=self._blocks, init=[], attrs=memory_by_block(self._blocks)
        )
        write, read = memory.write_port(), memory.read_port()
        some, *others = self.kinds
        m.d.comb += [
            write.en.eq(any_of(kind.joins for kind in self.kinds)),
            write.addr.eq(some.behind),
            write.data.eq(some.packet),
        ]
        for number, kind in enumerate(others, start=1):
            with m.If(self.kind == number):
                m.d.comb += [write.addr.eq(kind.behind), write.data.eq(kind.packet)]
        m.d.comb += [self.first.eq(some.successor.first), *(kind.successor.eq(read.data) for kind in self.kinds)]
        m.d.sync += read.addr.eq(self.taken)
        return m
