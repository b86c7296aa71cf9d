"""A reader: takes one granted packet at a time out of the buffer (docs/pipeline.md, section 8.1)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.switch.buffer import ROWS_OF_BLOCK, BufferReadSignature, release_layout

__all__ = ["PassingRow", "Reader", "job_layout"]

_X1_PHASE = 2
"""Cycle modulo 4 in which rows for a 1X output are read: two before they are on the wire."""


def job_layout(block_bits: int, outputs: int) -> data.StructLayout:
    """A granted packet.

    `to` is the mask of its output, `slot` its slot there, `wide` the output's width (4X); `pool` is the
    slot it came in on.
    """
    return data.StructLayout(
        {
            "first": block_bits,
            "pool": 4,
            "words": 11,
            "need": 7,
            "oversize": 1,
            "to": outputs,
            "slot": 4,
            "wide": 1,
        }
    )


PassingRow = data.StructLayout(
    {
        "data": 32,
        "first": 1,
        "last": 1,
        "bad": 1,
        "scrap": 1,
        "slot": 4,
        "oversize": 1,
        "n": 11,
        "need": 7,
    }
)
"""A row between reader and output, in cycle x_r + 1.

`scrap` in place of row 0 says that the packet is bad and not sent. `slot` to `need` hold from row
0 to the end row.
"""


class Reader(wiring.Component):
    """Reads one packet row by row.

    Members:
        phase: the cycle modulo 4.
        grant, job: a packet is granted (cycle g); only when available.
        available: idle, or this is the last read.
        busy: mask of the output being served, from g+1 to the last busy cycle (section 8.3).
        holds: `busy` but for the cycle of the last read: the output that is not available.
        memory: the buffer's read interface, seen from here.
        row, row_to: a row in cycle x_r + 1, and the mask of the output it goes to (0: no row).
        release: a request from cycle y on until `released`.
    """

    def __init__(self, block_bits: int, outputs: int) -> None:
        self.block_bits = block_bits
        self.outputs = outputs
        self.job_layout = job_layout(block_bits, outputs)
        super().__init__(
            {
                "phase": In(2),
                "grant": In(1),
                "job": In(self.job_layout),
                "available": Out(1),
                "busy": Out(outputs),
                "holds": Out(outputs),
                "memory": In(BufferReadSignature(block_bits)),
                "row": Out(PassingRow),
                "row_to": Out(outputs),
                "release": Out(release_layout(block_bits)),
                "released": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Read in x_r, look at the row in x_r + 1."""
        m = Module()
        memory = self.memory
        end = Signal()  # the packet is over early: the row read last was flagged, or all of it is scrap

        # Cycle x_r: read a row.
        active = Signal()
        job = Signal(self.job_layout)
        block = Signal(self.block_bits)
        row = Signal(11)
        turn = Signal()  # a row is due
        reading = Signal()
        last_read = Signal()
        m.d.comb += [
            turn.eq(active & (job.wide | (self.phase == _X1_PHASE))),
            reading.eq(turn & ~end),
            last_read.eq(turn & (row == job.words)),
            memory.block.eq(block),
            memory.row.eq(row),
            self.available.eq(~active | last_read),
            self.busy.eq(Mux(active, job.to, 0)),
            self.holds.eq(Mux(active & ~last_read, job.to, 0)),
        ]
        with m.If(reading):
            m.d.sync += row.eq(row + 1)
            with m.If(row[:4] == ROWS_OF_BLOCK - 1):
                m.d.sync += block.eq(memory.next)
        with m.If(self.grant):
            m.d.sync += [active.eq(1), job.eq(self.job), block.eq(self.job.first), row.eq(0)]
        with m.Elif(last_read | end):
            m.d.sync += active.eq(0)

        # Cycle x_r + 1: the row passes on to the output. By now the reader may have the next packet.
        passing = Signal()
        passing_job = Signal(self.job_layout)
        passing_block = Signal(self.block_bits)
        first = Signal()
        final = Signal()
        scrap = Signal()
        early = Signal()
        m.d.sync += passing.eq(reading)
        with m.If(reading):
            m.d.sync += [
                passing_job.eq(job),
                passing_block.eq(block),
                first.eq(row == 0),
                final.eq(row == job.words),
            ]
        m.d.comb += [
            scrap.eq(passing & first & memory.bad),
            early.eq(passing & ~final & memory.stored.last & ~scrap),
            end.eq(scrap | early),
            self.row_to.eq(Mux(passing, passing_job.to, 0)),
            self.row.data.eq(memory.stored.data),
            self.row.first.eq(first),
            self.row.last.eq(final | memory.stored.last),
            self.row.bad.eq(memory.stored.bad),
            self.row.scrap.eq(scrap),
            self.row.slot.eq(passing_job.slot),
            self.row.oversize.eq(passing_job.oversize),
            self.row.n.eq(passing_job.words),
            self.row.need.eq(passing_job.need),
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
