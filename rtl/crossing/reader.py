"""A reader: takes one granted packet at a time out of the buffer (docs/pipeline.md, section 8.1)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import ROWS_OF_BLOCK, BufferReadSignature, release_layout
from rtl.crossing.causes import CAUSE_BITS, cause_of, reason_of
from rtl.crossing.descriptions import description_layout, length_of
from rtl.crossing.time_limits import LifeClock, outlived
from rtl.widths import LENGTH_BITS, REASON_BITS, ROW_BITS
from wire.trace import Discard

__all__ = ["PassingRow", "Reader", "job_layout"]

_X1_PHASE = 1
"""Cycle modulo 4 in which rows for a 1X output are read: three before they are on the wire."""


def job_layout(block_bits: int, vls: int) -> data.StructLayout:
    """What is known of a granted packet at once: its first block, its slot at its output, the output's width (4X).

    `cause`: why its output swallows it, for another reason than its length or its life time. `oversize`: a copy is too
    long for its output.
    """
    return data.StructLayout(
        {"first": block_bits, "slot": range(vls + 1), "wide": 1, "cause": CAUSE_BITS, "oversize": 1}
    )


PassingRow = data.StructLayout({"valid": 1, "data": 32, "last": 1, "bad": 1, "n": LENGTH_BITS})
"""A row between reader and output, in cycle x_r + 1. It goes from every reader to every output, so it holds no
more than it must.

It is not `valid` if the one before, which had not been seen yet, ended the packet. `last` is the end row, `bad` goes
with it; `bad` without `last`, in place of row 0, says that the packet is bad and not sent; row 0 being the `last`, that
it is swallowed. Lane 0 of row 0, where nothing but SDP can be, holds the packet's blocks, or if it is swallowed the
reason (`wire.trace.Discard`). `n` is the packet's PktLen, for the trace.
"""


class Reader(wiring.Component):
    """Reads one packet row by row.

    Args:
        block_bits: bits of a block's number.
        outputs: how many there are.
        vls: data VLs.
        aging: data for so many of them, from the first on, have a life time.

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
        done: the packet is done in this cycle (d); `returns`: then its blocks return.
        release: a request from cycle y on until `released`.
        clock: of life time.
    """

    def __init__(self, block_bits: int, outputs: int, vls: int, aging: int) -> None:
        self.block_bits = block_bits
        self.outputs = outputs
        self.vls = vls
        self.aging = aging
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
                "memory": In(BufferReadSignature(block_bits, stamped=aging > 0)),
                "to_output": Out(outputs),
                "slot": Out(range(vls + 1)),
                "row": Out(PassingRow),
                "done": Out(1),
                "returns": In(1),
                "release": Out(release_layout(block_bits)),
                "released": In(1),
                **({"clock": In(LifeClock)} if aging else {}),
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
        job, job_kept, description, words = self._packet(m, fresh, described)
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
            turn.eq(active & (fresh | job_kept.wide | (self.phase == _X1_PHASE))),
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
        too_old = self._is_too_old(served) & is_data
        m.d.comb += [
            scrap.eq(passing & first & memory.bad),
            too_long.eq((description.oversize | job_kept.oversize) & is_data),
            swallowed.eq(passing & first & ~memory.bad & (job_kept.cause.any() | too_long | too_old)),
            early.eq(passing & ~first & ~final & memory.stored.last),
            end.eq(scrap | swallowed | early),
            self.row.valid.eq(passing),
            self.row.last.eq(Mux(first, swallowed, final | memory.stored.last)),
            self.row.bad.eq(Mux(first, scrap, memory.stored.bad & (final | memory.stored.last))),
            self.row.n.eq(length_of(description)),
        ]
        reason = self._reason(job_kept.cause, too_long, too_old)
        self._fill_row(m, described, Mux(swallowed, reason, self.description.need))

        # What comes behind the last read.
        turn_follows = Signal()
        last_follows = Signal()
        m.d.comb += [
            turn_follows.eq(job.wide | (self.phase == _X1_PHASE - 1)),
            last_follows.eq(turn_follows & Mux(turn, following == words, final_due)),
        ]
        self._become_available(m, ~active | last_read | scrap | swallowed | last_follows, served)
        last = Mux(scrap | swallowed, memory.end, Mux(early, passing_block, block))
        m.d.comb += self.done.eq(last_read | end)
        self._give_back(m, self.done & self.returns, job.first, last, description)
        return m

    def _packet(self, m: Module, fresh: Value, described: Value) -> tuple[data.View, data.View, data.View, Signal]:
        """The packet's job, the same of the cycle before, the rest of it, and its length.

        Its width and cause are not needed before g+2, and the length not before g+3: the shortest packet has more rows
        than that.
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
        return job, job_kept, description, words

    def _is_too_old(self, served: Value) -> Value:
        """Data for this output would be over its life time, in cycle x_0 + 1."""
        if not self.aging:
            return Const(0, 1)
        return served[: self.aging].any() & self.memory.ended & outlived(self.clock, self.memory.stamp)

    def _reason(self, cause: Value, too_long: Value, too_old: Value) -> Value:
        """The first that applies."""
        inactive = cause == cause_of(Discard.INACTIVE)
        of_output = Mux(too_old & ~inactive, Discard.LIFE_TIME, reason_of(cause))
        return Mux(too_long, Discard.NEIGHBOR_MTU, of_output)[:REASON_BITS]

    def _fill_row(self, m: Module, described: Value, in_place_of_sdp: Value) -> None:
        """The row as stored, except what crosses in place of SDP."""
        stored = self.memory.stored.data
        m.d.comb += self.row.data.eq(Cat(stored[:24], Mux(described, in_place_of_sdp, stored[24:])))

    def _become_available(self, m: Module, is_over: Value, served: Value) -> None:
        """The next cycle has the last read, or none: known now, as all inputs and outputs look at it."""
        over = Signal()
        m.d.comb += [
            over.eq(is_over),
            self.leaves.eq(Mux(over & ~self.available, served, 0)),
            self.stays_available.eq(self.available | over),
        ]
        m.d.sync += self.available.eq(self.stays_available & ~self.grant)

    def _give_back(self, m: Module, returns: Value, first: Value, last: Value, description: data.View) -> None:
        """The blocks first..last of the packet are asked to be released."""
        release = self.release
        with m.If(returns):
            m.d.sync += [
                release.valid.eq(1),
                release.slot.eq(description.pool),
                release.need.eq(description.need),
                release.first.eq(first),
                release.last.eq(last),
            ]
        with m.Elif(self.released):
            m.d.sync += release.valid.eq(0)
