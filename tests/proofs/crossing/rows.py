"""A reader's rows leave in order, all of them or the last marked (docs/pipeline.md, section 8.1)."""

from typing import Final

from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from rtl.crossing.descriptions import description_layout
from rtl.crossing.reader import Reader
from rtl.widths import LENGTH_BITS, NEED_BITS, ROW_BITS
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants
from tests.proofs.rotation import one_of

__all__ = ["ROWS_PROOFS"]

_LEAST_WORDS: Final = 5
"""Of the shortest packet."""


class RowsInOrder(wiring.Component):
    """Of a packet rows 0, 1, 2, ... go to the output that it was granted, and to no other; the last that goes says so,
    and only one that the buffer says is the end, or that is not sent at all, is not row PktLen. A 4X output has one a
    cycle. Of four cycles a reader takes up a packet in one.

    Members:
        grant, to, wide: a reader that may takes up a packet for this output, one-hot.
        words: PktLen of the packet that was taken up in the cycle before; fate: what becomes of it.
        ends, ends_bad: the row that the buffer answers is marked as the packet's end, and as bad.
    """

    def __init__(self, outputs: int) -> None:
        self._reader = Reader(2, outputs, 1, description_layout(1, NEED_BITS, LENGTH_BITS))
        members = self._reader.signature.members
        super().__init__(
            {
                "grant": In(1),
                "to": In(outputs),
                "wide": In(1),
                "words": In(LENGTH_BITS),
                "fate": members["fate"],
                "ends": In(1),
                "ends_bad": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Count the rows that are due, and those that pass."""
        m = Module()
        reader = self._reader
        opened = Opened(reader)
        m.submodules.reader = opened.fragment
        phase, ago = Signal(2), Signal(3)
        grant = self.grant & reader.ready
        is_next = Signal()  # x_0 + 1
        m.d.sync += [phase.eq(phase + 1), is_next.eq(grant), ago.eq(Cat(grant, ago))]
        m.d.comb += [
            reader.phase.eq(phase),
            reader.takes.eq(grant),
            reader.grant.eq(grant),
            reader.to.eq(Mux(grant, self.to, 0)),
            reader.job.wide.eq(self.wide),
            reader.description.words.eq(self.words),
            reader.fate.eq(self.fate),
            reader.memory.stored.last.eq(self.ends),
            reader.memory.stored.bad.eq(self.ends_bad),
            Assume(one_of(self.to) & self.to.any()),
            Assume(~is_next | ((self.words >= _LEAST_WORDS) & ~self.words.all())),  # so long is none of any MTU
        ]

        to = Signal.like(self.to)
        wide = Signal()
        words = Signal(LENGTH_BITS)
        words_now = Mux(is_next, self.words, words)
        m.d.sync += words.eq(words_now)
        with m.If(grant):
            m.d.sync += [to.eq(self.to), wide.eq(self.wide)]
        due = reader.to_output.any()
        # Of the packet: rows that were due before this cycle, and whether its last has passed.
        rows = Signal(LENGTH_BITS + 1)
        over = Signal(init=1)
        number = Mux(grant, 0, rows)
        m.d.sync += rows.eq(number + due)
        # The row that passes is the one that was due in the cycle before.
        passing = Signal(LENGTH_BITS + 1)
        was_due = Signal()
        m.d.sync += [passing.eq(number), was_due.eq(due)]
        row = reader.row
        drops = self.fate.bad | self.fate.swallowed | self.fate.outlived
        is_first = passing == 0
        with m.If(row.valid):
            m.d.sync += over.eq(row.last | (is_first & drops))
        with m.Elif(was_due & is_first):
            m.d.sync += over.eq(1)
        m.d.comb += [
            Assert(~grant | (ago == 0)),
            # What is due.
            Assert(~due | (reader.to_output == Mux(grant, self.to, to))),
            Assert(~due | (reader.memory.row == number[:ROW_BITS])),
            Assert(~due | grant | (number <= words_now)),
            # What passes.
            Assert(~row.valid | was_due),
            Assert(~row.valid | is_first | ~over),
            Assert(~row.valid | is_first | (row.last == (self.ends | (passing == words_now)))),
            Assert(~(row.valid & is_first) | (row.last == (self.fate.swallowed & ~self.fate.bad))),
            Assert(~was_due | row.valid | over | (is_first & self.fate.bad)),
            Cover(row.valid & row.last & (passing == words_now) & ~self.ends & (words == 6)),
            Cover(row.valid & row.last & self.ends & (passing == 2)),
        ]

        names = ("active", "served", "row", "following", "final_due", "read", "first", "final", "dropped", "early")
        active, served, at, following, final_due, read, first, final, dropped, early = map(opened.inside, names)
        ready, free = reader.ready, reader.free
        job = data.View(reader.job_layout, opened.inside("job"))
        kept = data.View(reader.description.shape(), opened.inside("description_kept"))
        ending = dropped | early
        m.d.comb += invariants(
            ~active | ((served == to) & (job.wide == wide) & (at == rows[:ROW_BITS]) & (following == rows + 1)),
            ~active | (one_of(to) & to.any()),
            ~active | ((rows != 0) & (rows <= words_now)),
            ~active | (final_due == (rows == words_now)),
            (kept.words == 0) | (kept.words >= _LEAST_WORDS),
            ~active | ~words_now.all(),
            ~active | is_next | (kept.words == words),
            ~is_next | (active & (rows == 1) & was_due),
            read == was_due,
            ~read | ((first == (passing == 0)) & (first | (final == (passing == words_now)))),
            ~(ending & ~over),
            ~(over & (active | was_due)) | ending | (passing == 0) | ~was_due,
            ~(over & active & ~was_due) | ending,
            ~ready | (~active & free),
            ~ready | (ago == 0),
            (ago[:2] == 0) | ~free,
            ~(free & active) | ending | (final_due & (wide | (phase == 1))),
        )
        return m


ROWS_PROOFS: Final = (
    Proof(
        "a packet's rows leave in order, for the output it was granted, and the last of them says so",
        RowsInOrder,
        parameters={"outputs": 2},
        cycles=14,
        induction=4,
        reaches=14,
        mutants=(
            Change(
                "the row before the last is taken for the last",
                "crossing/reader.py",
                "final_due.eq(following == words)",
                "final_due.eq(following + 1 == words)",
            ),
            Change(
                "a reader may take up the next packet a cycle too early",
                "crossing/reader.py",
                "self.ready.eq(self.free & ~self.grant)",
                "self.ready.eq(self.stays_free & ~self.grant)",
            ),
        ),
    ),
)
