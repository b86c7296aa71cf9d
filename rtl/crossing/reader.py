"""A reader: takes one granted packet at a time out of the buffer (docs/pipeline.md, section 8.1)."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import ASIDE_BITS, ROWS_OF_BLOCK, BufferReadSignature, release_layout, rows_with_next
from rtl.widths import LENGTH_BITS, REASON_BITS, ROW_BITS

__all__ = ["PassingRow", "Reader", "fate_layout", "job_layout"]

_X1_PHASE = 1
"""Cycle modulo 4 in which rows for a 1X output are read: three before they are on the wire."""


def job_layout(block_bits: int) -> data.StructLayout:
    """What is known of a packet at once: its first block, its output's width (4X)."""
    return data.StructLayout({"first": block_bits, "wide": 1})


def fate_layout(block_bits: int) -> data.StructLayout:
    """What becomes of a packet, in cycle x_0 + 1: it is `bad`, and not sent; otherwise swallowed: for this reason
    (`wire.trace.Discard`), if it is `swallowed`, or as it has `outlived` its life time, which is known last. If any of
    these, `end` is its last block.
    """
    return data.StructLayout({"bad": 1, "swallowed": 1, "outlived": 1, "reason": REASON_BITS, "end": block_bits})


PassingRow = data.StructLayout({"valid": 1, "data": 32, "last": 1, "bad": 1, "n": LENGTH_BITS})
"""A row between reader and output, in cycle x_r + 1. It goes from every reader to every output, so it holds no
more than it must.

It is not `valid` if the one before, which had not been seen yet, ended the packet. `last` is the end row, `bad` goes
with it, and means anything with a valid one before; `bad` without `valid`, in place of row 0, says that the packet is
bad and not sent; a valid row 0 being the `last`, that it is swallowed: then its lane 1 holds the reason
(`wire.trace.Discard`). That its life time is over, the row does not say. Lane 0 of row 0, where nothing but SDP can be,
holds the packet's blocks. `n` is the packet's PktLen, for nothing but the trace.
"""


class Reader(wiring.Component):
    """Reads one packet row by row.

    Args:
        block_bits: bits of a block's number.
        outputs: how many there are.
        vls: data VLs.
        described: see `description_layout`.

    Members:
        phase: the cycle modulo 4.
        ready: it may take up a packet in this cycle.
        takes: if any reader takes up a packet in this cycle, this one does. It may.
        grant, to, job: it does take one up, for the output of this mask (x_0 = g+1). Which output and packet these are
            comes late in the cycle; if none is taken up `to` is none. description, fate: the rest of it, in the cycle
            after.
        free: idle, or it takes up a packet in this cycle, or this is the last read.
        stays_free: it is free in the next cycle unless it takes up a packet in this one.
        serves: mask of the output being served; that is so from x_0+1 to the last busy cycle (section 8.3).
        leaves: mask of the output that was not available to others, and is from the next cycle on.
        memory: the buffer's read interface, seen from here.
        to_output: the mask of the output to which the row that is due (cycle x_r) goes (0: none is due).
        row: that row in the cycle after.
        done: the packet was done in the cycle before; `returns`: then its blocks return.
        release: a request from this cycle (y) on until `released`.
    """

    def __init__(self, block_bits: int, outputs: int, vls: int, described: data.StructLayout) -> None:
        self.block_bits = block_bits
        self.outputs = outputs
        self.vls = vls
        self.job_layout = job_layout(block_bits)
        super().__init__(
            {
                "phase": In(2),
                "ready": Out(1, init=1),
                "takes": In(1),
                "grant": In(1),
                "to": In(outputs),
                "job": In(self.job_layout),
                "description": In(described),
                "fate": In(fate_layout(block_bits)),
                "free": Out(1, init=1),
                "stays_free": Out(1),
                "serves": Out(outputs),
                "leaves": Out(outputs),
                "memory": In(BufferReadSignature(block_bits)),
                "to_output": Out(outputs),
                "row": Out(PassingRow),
                "done": Out(1),
                "returns": In(1),
                "release": Out(release_layout(block_bits, vls + 1)),
                "released": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Read in x_r, look at the row in x_r + 1; what follows from that is done in x_r + 2."""
        m = Module()
        memory = self.memory
        dropped = Signal()  # nothing of the packet is sent: this is x_0 + 2
        early = Signal()  # the row read two cycles ago ended the packet early

        described = Signal()  # this is x_0 + 1
        m.d.sync += described.eq(self.grant)
        job, description, description_kept = self._packet(m, described)
        words = description_kept.words

        # Cycle x_r: read a row. A packet's row 0 is read at once, at any width of its output. Until one is taken up a
        # reader that may reads anything, and has no row that is due.
        active = Signal()  # from x_0 + 1 on
        served = Signal(self.outputs, reset_less=True)  # mask of the output of the packet that is read
        block = Signal(self.block_bits)
        block_kept = Signal(self.block_bits, reset_less=True)
        row = Signal(ROW_BITS)
        following = Signal.like(words)  # index of the row behind the one that is due
        final_due = Signal()  # the row that is due is the last
        goes_on = Signal()  # a row is due, and not the first
        turn = Signal()  # a row is due
        last_read = Signal()
        read = Signal()  # a row was due in the cycle before
        over_early = dropped | early
        m.d.comb += [
            block.eq(Mux(self.takes, self.job.first, block_kept)),
            goes_on.eq(active & ~over_early & (job.wide | (self.phase == _X1_PHASE))),
            turn.eq(self.grant | goes_on),
            last_read.eq(goes_on & final_due),
            memory.block.eq(block),
            memory.row.eq(row),
        ]
        behind = self._block_behind(m, read, row)
        m.d.sync += block_kept.eq(block)
        with m.If(goes_on & (row == ROWS_OF_BLOCK - 1)):
            m.d.sync += block_kept.eq(behind)
        with m.If(self.free):
            m.d.sync += [row.eq(self.grant), following.eq(Mux(self.grant, 2, 1)), final_due.eq(0)]
        with m.Elif(goes_on):
            m.d.sync += [row.eq(row + 1), following.eq(following + 1), final_due.eq(following == words)]
        goes_to = Mux(self.grant, self.to, Mux(active & ~(last_read | over_early), served, 0))
        with m.If(self.grant):
            m.d.sync += [served.eq(self.to), active.eq(1)]
        with m.Elif(last_read | over_early):
            m.d.sync += active.eq(0)
        m.d.comb += self.to_output.eq(Mux(self.takes, self.to, Mux(goes_on, served, 0)))

        # Cycle x_r + 1: the row passes on to the output. By now the reader may have the next packet.
        first = Signal(reset_less=True)
        final = Signal(reset_less=True)
        passing = Signal()
        scrap = Signal()
        swallowed, outlived = Signal(), Signal()
        ends_early = Signal()
        m.d.sync += read.eq(turn)
        with m.If(turn):
            m.d.sync += [first.eq(self.grant), final.eq(final_due)]
        m.d.comb += [
            passing.eq(read & ~over_early),
            scrap.eq(passing & first & self.fate.bad),
            swallowed.eq(passing & first & self.fate.swallowed),
            outlived.eq(passing & first & self.fate.outlived),
            ends_early.eq(passing & ~first & ~final & memory.stored.last),
            self.row.valid.eq(passing & ~scrap),
            self.row.last.eq(Mux(first, swallowed, final | memory.stored.last)),
            self.row.bad.eq(Mux(first, scrap, passing & memory.stored.bad)),
            self.row.n.eq(description.words),
        ]
        self._fill_row(m, described, first)
        drops = scrap | swallowed | outlived
        # Whether the packet ends here is known late: nothing is joined with it before the next cycle.
        goes, was_last_read = Signal(self.outputs), Signal()
        m.d.sync += [dropped.eq(drops), early.eq(ends_early), goes.eq(goes_to), was_last_read.eq(last_read)]
        m.d.comb += [self.serves.eq(Mux(over_early, 0, goes)), self.done.eq(was_last_read | over_early)]

        # What comes behind the last read.
        turn_follows = Signal()
        last_follows = Signal()
        m.d.comb += [
            turn_follows.eq(job.wide | (self.phase == _X1_PHASE - 1)),
            last_follows.eq(turn_follows & Mux(goes_on, following == words, final_due)),
        ]
        self._become_free(m, ~active | last_read | over_early | last_follows, served)
        self._give_back(m, dropped, early, block, job.first, description_kept)
        return m

    def _packet(self, m: Module, described: Value) -> tuple[data.View, data.View, data.View]:
        """The packet's job, from x_0 + 1 on, the rest of it likewise and from x_0 + 2 on.

        Of the job only the first block is needed before, and the length not before x_0 + 2: the shortest packet has
        more rows than that. In x_0 all this is still of the packet before.
        """
        job = Signal(self.job_layout, reset_less=True)
        description = Signal(self.description.shape())
        description_kept = Signal(self.description.shape(), reset_less=True)
        m.d.comb += description.eq(Mux(described, self.description, description_kept))
        m.d.sync += description_kept.eq(description)
        with m.If(self.grant):
            m.d.sync += job.eq(self.job)
        return job, description, description_kept

    def _block_behind(self, m: Module, read: Value, row: Value) -> Value:
        """Of the block that is read, while its last row is due: what was stored beside the rows before."""
        rows = rows_with_next(self.block_bits)
        said = Signal(ASIDE_BITS * len(rows), reset_less=True)
        with m.If(read & (row != 0) & (row <= rows.stop)):  # by now the row behind the one that is answered
            m.d.sync += said.eq(Cat(said[ASIDE_BITS:], self.memory.aside))
        return said[: self.block_bits]

    def _fill_row(self, m: Module, described: Value, first: Value) -> None:
        """The row as stored, except what crosses in place of SDP, and of what is not sent, be it bad or not."""
        stored = self.memory.stored.data
        lane_0 = Mux(described, self.description.need, stored[24:])
        m.d.comb += self.row.data.eq(Cat(stored[:24], lane_0))
        with m.If(first & self.fate.swallowed):
            m.d.comb += self.row.data[16:][:REASON_BITS].eq(self.fate.reason)

    def _become_free(self, m: Module, is_over: Value, served: Value) -> None:
        """The next cycle has the last read, or none: known now, as all inputs and outputs look at it. While a packet is
        taken up the reader is free, whatever the next cycle has."""
        over = Signal()
        m.d.comb += [
            over.eq(is_over),
            self.leaves.eq(Mux(over & ~self.free, served, 0)),
            self.stays_free.eq(self.free | over),
        ]
        m.d.sync += [self.free.eq(self.stays_free & ~self.grant), self.ready.eq(self.free & ~self.grant)]

    def _give_back(self, m: Module, dropped: Value, early: Value, block: Value, first: Value, of: data.View) -> None:
        """The packet's blocks are asked to be released, from its first to that of its last row. It was done in the
        cycle before, x_0 + 1 at the earliest; if its reader takes up the next packet now, what is known of that follows
        later."""
        end = Signal(self.block_bits)  # of the packet whose row 0 was read two cycles ago
        blocks = [Signal(self.block_bits, name=f"block_{ago}") for ago in (1, 2)]  # that were read
        m.d.sync += [end.eq(self.fate.end), blocks[0].eq(block), blocks[1].eq(blocks[0])]
        now, kept = Signal(self.release.shape()), Signal(self.release.shape())
        m.d.comb += [
            now.valid.eq(self.returns),
            now.pool.eq(Cat(of.pool == pool for pool in range(self.vls + 1))),
            now.need.eq(of.need),
            now.first.eq(first),
            now.last.eq(Mux(dropped, end, Mux(early, blocks[1], blocks[0]))),
            self.release.eq(Mux(self.done, now, kept)),
        ]
        m.d.sync += [kept.eq(self.release), kept.valid.eq(self.release.valid & ~self.released)]
