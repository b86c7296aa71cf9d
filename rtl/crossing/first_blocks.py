"""The first blocks of heads, for each output at the same time (docs/pipeline.md, section 4)."""

from amaranth.hdl import Module, Mux, Shape, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import LUT_RAM

__all__ = ["FirstBlocks", "new_head_layout"]


def new_head_layout(outputs: int, queues: int, block_bits: int) -> data.StructLayout:
    """A packet that will be a head in the next cycle.

    `to`: mask of the outputs for which it is in a queue, none if there is no such packet. `queue`: of the `queues` that
    there are for each output. `first`: its first block.
    """
    return data.StructLayout({"to": outputs, "queue": range(queues), "first": block_bits})


class FirstBlocks(wiring.Component):
    """First blocks of the heads in one input's queues for each output.

    They are in LUT RAM, a word for each queue, and not in registers, which takes a third. One is written in a cycle. If
    two heads appear at once, the second waits a cycle: a head is granted in the cycle after it has appeared, at the
    earliest, and its block is read in the one after that. No more than one ever waits, as no two packets join in
    adjacent cycles, and no more than two are taken in any four (each reader takes up one in four).

    Members:
        starting: a packet that joins, see `new_head_layout`.
        loading: likewise one that was behind a head that was taken.
        queues: of each output, the queue that is asked for.
        firsts: of each output, the first block of its head there.
    """

    def __init__(self, outputs: int, queues: int, block_bits: int) -> None:
        self._queues = queues
        self._head = new_head_layout(outputs, queues, block_bits)
        super().__init__(
            {
                "starting": In(self._head),
                "loading": In(self._head),
                "queues": In(data.ArrayLayout(range(queues), outputs)),
                "firsts": Out(data.ArrayLayout(block_bits, outputs)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What is written now, what waits, and a memory for each output."""
        m = Module()
        starting, loading, waiting, written = self.starting, self.loading, Signal(self._head), Signal(self._head)
        loads, waits = Signal(), Signal()
        m.d.comb += [
            loads.eq(loading.to.any()),
            waits.eq(waiting.to.any()),
            written.eq(Mux(waits, waiting, Mux(loads, loading, starting))),
        ]
        with m.If(waits | loads):
            m.d.sync += waiting.eq(Mux(waits & loads, loading, starting))
        with m.Else():
            m.d.sync += waiting.to.eq(0)
        for o, queue in enumerate(self.queues):
            shape = Shape.cast(self._head["first"].shape)
            m.submodules[f"of_output_{o}"] = firsts = Memory(shape=shape, depth=self._queues, init=[], attrs=LUT_RAM)
            write, read = firsts.write_port(), firsts.read_port(domain="comb")
            m.d.comb += [
                write.en.eq(written.to[o]),
                write.addr.eq(written.queue),
                write.data.eq(written.first),
                read.addr.eq(queue),
                self.firsts[o].eq(read.data),
            ]
        return m
