"""A reader: takes one granted packet at a time out of the buffer (docs/pipeline.md, section 8.1)."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import ROWS_OF_BLOCK, BufferReadSignature, release_layout
from rtl.crossing.descriptions import description_layout, length_of
from rtl.widths import LENGTH_BITS, ROW_BITS

__all__ = ["PassingRow", "Reader", "job_layout"]

_X1_PHASE = 1
"""Cycle modulo 4 in which rows for a 1X output are read: three before they are on the wire."""


def job_layout(block_bits: int, vls: int) -> data.StructLayout:
    """What is known of a granted packet at once: its first block, its slot at its output, the output's width (4X).

    `swallowed`: its output's port may not send it, for another reason than its length.
    """
    return data.StructLayout({"first": block_bits, "slot": range(vls + 1), "wide": 1, "swallowed": 1})


PassingRow = data.StructLayout({"valid": 1, "data": 32, "last": 1, "bad": 1, "n": LENGTH_BITS})
"""A row between reader and output, in cycle x_r + 1. It goes from every reader to every output, so it holds no
more than it must.

It is not `valid` if the one before, which had not been seen yet, ended the packet. `last` is the end row, `bad` goes
with it; `bad` without `last`, in place of row 0, says that the packet is bad and not sent; row 0 being the `last`, that
it is swallowed, and then `bad` that it is oversize. Lane 0 of row 0, where nothing but SDP can be, holds the packet's
blocks. `n` is the packet's PktLen, for the trace.
"""


class Reader(wiring.Component):
    """Reads one packet row by row.

    Members:
        phase: the cycle modulo 4.
        grant, to: a packet is granted, for the output of this mask (cycle g); only when available.
        job: that packet, in the cycle after (g+1 = x_0); description: the rest of it, in the cycle after that.
        available: idle, or this is the last read.
        stays_available: it is available in the next cycle unless it is granted something in this one.
        busy: mask of the output being served, from g+1 to the last busy cycle (section 8.3).
        leaves: mask of the output that was not available to others, and is from the next cycle on.
        memory: the buffer's read interface, seen from here.
        to_output, slot: the mask of the output to which the row that is due (cycle x_r) goes (0: none is due), and its
            slot there.
        row: that row in the cycle after.
        release: a request from cycle y on until `released`.
    """

    def __init__(self, block_bits: int, outputs: int, vls: int) -> None:
        self.block_bits = block_bits
        self.outputs = outputs
        self.vls = vls
        self.job_layout = job_layout(block_bits, vls)
        super().__init__(
            {
                "phase": In(2),
                "grant": In(1),
                "to": In(outputs),
                "job": In(self.job_layout),
                "description": In(description_layout(vls)),
                "available": Out(1, init=1),
                "stays_available": Out(1),
                "busy": Out(outputs),
                "leaves": Out(outputs),
                "memory": In(BufferReadSignature(block_bits)),
                "to_output": Out(outputs),
                "slot": Out(range(vls + 1)),
                "row": Out(PassingRow),
                "release": Out(release_layout(block_bits)),
                "released": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Read in x_r, look at the row in x_r + 1."""
        m = Module()
        memory = self.memory
        end = Signal()  # the packet is over early: the row read last was flagged, or nothing of it is sent
        scrap = Signal()
        swallowed = Signal()

        fresh = Signal()  # this is g+1
        described = Signal()  # this is g+2
        m.d.sync += [fresh.eq(self.grant), described.eq(fresh)]
        job, wide, description, words = self._packet(m, fresh, described)
        is_data = job.slot != self.vls
        too_long = Signal()

        # Cycle x_r: read a row. A packet's row 0 is read at g+1, at any width of its output.
        active = Signal()
        served = Signal(self.outputs)  # mask of the output of the packet that is read
        block = Signal(self.block_bits)
        block_kept = Signal(self.block_bits)
        row = Signal(ROW_BITS)
        following = Signal(LENGTH_BITS)  # index of the row behind the one that is due
        final_due = Signal()  # the row that is due is the last
        turn = Signal()  # a row is due
        reading = Signal()
        last_read = Signal()
        m.d.comb += [
            block.eq(Mux(fresh, self.job.first, block_kept)),
            turn.eq(active & (fresh | wide | (self.phase == _X1_PHASE))),
            reading.eq(turn & ~end),
            last_read.eq(turn & final_due),
            memory.block.eq(block),
            memory.row.eq(row),
        ]
        m.d.sync += block_kept.eq(block)
        with m.If(turn):
            m.d.sync += [row.eq(row + 1), following.eq(following + 1), final_due.eq(following == words)]
            with m.If(row == ROWS_OF_BLOCK - 1):
                m.d.sync += block_kept.eq(memory.next)
        # A grant comes late in its cycle: what it does not decide is made ready without it. Behind a last read nothing
        # but the next packet looks at these.
        with m.If(self.available):
            m.d.sync += [served.eq(self.to), row.eq(0), following.eq(1), final_due.eq(0)]
        with m.If(self.grant):
            m.d.sync += active.eq(1)
        with m.Elif(last_read | end):
            m.d.sync += active.eq(0)
        m.d.comb += [
            self.busy.eq(Mux(active, served, 0)),
            self.to_output.eq(Mux(turn, served, 0)),
            self.slot.eq(job.slot),
        ]

        # Cycle x_r + 1: the row passes on to the output. By now the reader may have the next packet.
        passing = Signal()
        passing_block = Signal(self.block_bits)
        first = Signal()
        final = Signal()
        early = Signal()
        m.d.sync += passing.eq(reading)
        with m.If(turn):
            m.d.sync += [
                passing_block.eq(block),
                first.eq(fresh),
                final.eq(final_due),
            ]
        m.d.comb += [
            scrap.eq(passing & first & memory.bad),
            too_long.eq(description.oversize & is_data),
            swallowed.eq(passing & first & ~memory.bad & (job.swallowed | too_long)),
            early.eq(passing & ~first & ~final & memory.stored.last),
            end.eq(scrap | swallowed | early),
            self.row.valid.eq(passing),
            self.row.last.eq(Mux(first, swallowed, final | memory.stored.last)),
            self.row.bad.eq(Mux(first, scrap | too_long, memory.stored.bad & (final | memory.stored.last))),
            self.row.n.eq(length_of(description)),
        ]
        self._fill_row(m, described)

        # What comes behind the last read.
        turn_follows = Signal()
        last_follows = Signal()
        m.d.comb += [
            turn_follows.eq(job.wide | (self.phase == _X1_PHASE - 1)),
            last_follows.eq(turn_follows & Mux(turn, following == words, final_due)),
        ]
        self._become_available(m, ~active | last_read | scrap | swallowed | last_follows, served)
        last = Mux(scrap | swallowed, memory.end, Mux(early, passing_block, block))
        self._give_back(m, last_read | end, job.first, last, description)
        return m

    def _packet(self, m: Module, fresh: Value, described: Value) -> tuple[data.View, Value, data.View, Signal]:
        """The packet's job, whether its output is 4X, the rest of it, and its length.

        The width is that of the cycle before, and the length is not needed before g+3: the shortest packet has more
        rows than that.
        """
        job = Signal(self.job_layout)
        job_kept = Signal(self.job_layout)
        description = Signal(self.description.shape())
        description_kept = Signal(self.description.shape())
        words = Signal(LENGTH_BITS)
        m.d.comb += [
            job.eq(Mux(fresh, self.job, job_kept)),
            description.eq(Mux(described, self.description, description_kept)),
        ]
        m.d.sync += [
            job_kept.eq(job),
            description_kept.eq(description),
            words.eq(length_of(description)),
        ]
        return job, job_kept.wide, description, words

    def _fill_row(self, m: Module, described: Value) -> None:
        """The row as stored, except what crosses in place of SDP."""
        stored = self.memory.stored.data
        m.d.comb += self.row.data.eq(Cat(stored[:24], Mux(described, self.description.need, stored[24:])))

    def _become_available(self, m: Module, is_over: Value, served: Value) -> None:
        """The next cycle has the last read, or none: known now, as all inputs and outputs look at it."""
        over = Signal()
        m.d.comb += [
            over.eq(is_over),
            self.leaves.eq(Mux(over & ~self.available, served, 0)),
            self.stays_available.eq(self.available | over),
        ]
        m.d.sync += self.available.eq(self.stays_available & ~self.grant)

    def _give_back(self, m: Module, done: Value, first: Value, last: Value, description: data.View) -> None:
        """The blocks first..last of a packet that is done are asked to be released."""
        release = self.release
        with m.If(done):
            m.d.sync += [
                release.valid.eq(1),
                release.slot.eq(description.pool),
                release.need.eq(description.need),
                release.first.eq(first),
                release.last.eq(last),
            ]
        with m.Elif(self.released):
            m.d.sync += release.valid.eq(0)
