"""A reader: takes one granted packet at a time out of the buffer (docs/pipeline.md, section 8.1)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.switch.buffer import ROWS_OF_BLOCK, BufferReadSignature, release_layout
from rtl.widths import LENGTH_BITS, NEED_BITS, ROW_BITS, SLOT_BITS

__all__ = ["PassingPacket", "PassingRow", "Reader", "job_layout"]

_X1_PHASE = 1
"""Cycle modulo 4 in which rows for a 1X output are read: three before they are on the wire."""


def job_layout(block_bits: int) -> data.StructLayout:
    """A granted packet.

    `slot` is its slot at its output, `wide` the output's width (4X); `pool` is the slot it came in on.
    """
    return data.StructLayout(
        {
            "first": block_bits,
            "pool": SLOT_BITS,
            "words": LENGTH_BITS,
            "need": NEED_BITS,
            "oversize": 1,
            "slot": SLOT_BITS,
            "wide": 1,
        }
    )


PassingPacket = data.StructLayout(
    {
        "first": 1,
        "slot": SLOT_BITS,
        "oversize": 1,
        "n": LENGTH_BITS,
        "need": NEED_BITS,
    }
)
"""What a row belongs to, known while the row is being read, in cycle x_r: `first` says row 0."""


PassingRow = data.StructLayout(
    {
        "valid": 1,
        "data": 32,
        "last": 1,
        "bad": 1,
        "scrap": 1,
    }
)
"""A row between reader and output, in cycle x_r + 1.

It is not `valid` if the one before, which had not been seen yet, ended the packet. `scrap` in place of row 0 says
that the packet is bad and not sent.
"""


class Reader(wiring.Component):
    """Reads one packet row by row.

    Members:
        phase: the cycle modulo 4.
        grant, to: a packet is granted, for the output of this mask (cycle g); only when available.
        job: that packet, in the cycle after (g+1 = x_0).
        available: idle, or this is the last read.
        busy: mask of the output being served, from g+1 to the last busy cycle (section 8.3).
        holds: `busy` but for the cycle of the last read: the output that is not available.
        memory: the buffer's read interface, seen from here.
        packet, to_output: what the row that is due (cycle x_r) belongs to, and the mask of the output it goes
            to (0: none is due).
        row: that row in the cycle after.
        release: a request from cycle y on until `released`.
    """

    def __init__(self, block_bits: int, outputs: int) -> None:
        self.block_bits = block_bits
        self.outputs = outputs
        self.job_layout = job_layout(block_bits)
        super().__init__(
            {
                "phase": In(2),
                "grant": In(1),
                "to": In(outputs),
                "job": In(self.job_layout),
                "available": Out(1, init=1),
                "busy": Out(outputs),
                "holds": Out(outputs),
                "memory": In(BufferReadSignature(block_bits)),
                "packet": Out(PassingPacket),
                "to_output": Out(outputs),
                "row": Out(PassingRow),
                "release": Out(release_layout(block_bits)),
                "released": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Read in x_r, look at the row in x_r + 1."""
        m = Module()
        memory = self.memory
        end = Signal()  # the packet is over early: the row read last was flagged, or all of it is scrap
        scrap = Signal()

        # Cycle x_r: read a row. A packet's row 0 is read at g+1, at any width of its output.
        active = Signal()
        fresh = Signal()  # this is g+1
        job = Signal(self.job_layout)
        job_kept = Signal(self.job_layout)
        block = Signal(self.block_bits)
        block_kept = Signal(self.block_bits)
        row = Signal(ROW_BITS)
        following = Signal(LENGTH_BITS)  # index of the row behind the one that is due
        final_due = Signal()  # the row that is due is the last
        turn = Signal()  # a row is due
        reading = Signal()
        last_read = Signal()
        m.d.comb += [
            job.eq(Mux(fresh, self.job, job_kept)),
            block.eq(Mux(fresh, self.job.first, block_kept)),
            turn.eq(active & (fresh | job_kept.wide | (self.phase == _X1_PHASE))),
            reading.eq(turn & ~end),
            last_read.eq(turn & final_due),
            memory.block.eq(block),
            memory.row.eq(row),
        ]
        m.d.sync += [fresh.eq(self.grant), job_kept.eq(job), block_kept.eq(block)]
        with m.If(turn):
            m.d.sync += [row.eq(row + 1), following.eq(following + 1), final_due.eq(following == job.words)]
            with m.If(row == ROWS_OF_BLOCK - 1):
                m.d.sync += block_kept.eq(memory.next)
        with m.If(self.grant):
            m.d.sync += [active.eq(1), self.busy.eq(self.to), row.eq(0), following.eq(1), final_due.eq(0)]
        with m.Elif(last_read | end):
            m.d.sync += [active.eq(0), self.busy.eq(0)]
        m.d.comb += [
            self.to_output.eq(Mux(turn, self.busy, 0)),
            self.packet.first.eq(fresh),
            self.packet.slot.eq(job.slot),
            self.packet.oversize.eq(job.oversize),
            self.packet.n.eq(job.words),
            self.packet.need.eq(job.need),
        ]

        # Whether the next cycle has the last read: known now, for all inputs and outputs look at it.
        turn_follows = Signal()
        last_follows = Signal()
        m.d.comb += [
            turn_follows.eq(job.wide | (self.phase == _X1_PHASE - 1)),
            last_follows.eq(turn_follows & Mux(turn, following == job.words, final_due)),
        ]
        with m.If(self.grant):
            m.d.sync += [self.available.eq(0), self.holds.eq(self.to)]
        with m.Elif(~active | last_read | scrap | last_follows):
            m.d.sync += [self.available.eq(1), self.holds.eq(0)]

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
            early.eq(passing & ~final & memory.stored.last & ~scrap),
            end.eq(scrap | early),
            self.row.valid.eq(passing),
            self.row.data.eq(memory.stored.data),
            self.row.last.eq(final | memory.stored.last),
            self.row.bad.eq(memory.stored.bad),
            self.row.scrap.eq(scrap),
        ]

        # Done: the blocks go back.
        with m.If(last_read | end):
            m.d.sync += [
                self.release.valid.eq(1),
                self.release.slot.eq(job.pool),
                self.release.need.eq(job.need),
                self.release.first.eq(job.first),
                self.release.last.eq(Mux(scrap, memory.end, Mux(early, passing_block, block))),
            ]
        with m.Elif(self.released):
            m.d.sync += self.release.valid.eq(0)
        return m
