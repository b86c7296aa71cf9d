"""The counters of all ports, added up lap by lap (docs/management.md, sections 4.3 and 6)."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.place import WORD_BITS

__all__ = ["FIELD_ENDS", "PortSum"]

FIELD_ENDS = (4, 8, 16, 24)
"""Bits at which a field of a word with counters may end and the next one begin."""


class PortSum(wiring.Component):
    """Adds a word of each port in turn, field by field; a field that overflows is all ones from then on.

    Members:
        clear: the next word is the first one, of new fields or of lower halves.
        ends: which of `FIELD_ENDS` divide the word's fields.
        lower_half: it is the lower half of counters whose upper halves were added up before.
        add: `word` is added in this cycle; `total` is the sum with it, and `upper` that of the upper halves.
    """

    clear: In(1)
    ends: In(len(FIELD_ENDS))
    lower_half: In(1)
    add: In(1)
    word: In(WORD_BITS)
    total: Out(WORD_BITS)
    upper: Out(WORD_BITS)

    def elaborate(self, platform: object) -> Module:
        """Parts of the word between the bits at which fields may end, with what is carried from each to the next."""
        m = Module()
        kept, kept_upper, beyond = Signal(WORD_BITS), Signal(WORD_BITS), Signal()
        bounds = [0, *FIELD_ENDS, WORD_BITS]
        sums: list[Value] = []
        carries: list[Value] = []
        for part, (first, end) in enumerate(pairwise(bounds)):
            total = Signal(end - first + 1, name=f"sum_{first}")
            carried = carries[-1] & ~self.ends[part - 1] if part else 0
            m.d.comb += total.eq(kept[first:end] + self.word[first:end] + carried)
            sums.append(total[:-1])
            carries.append(total[-1])

        # A field is too small if its highest part carries. One of 64 bits goes on in the upper halves: what becomes of
        # them with a carry does not wait for it.
        upper, carried_upper = Signal(WORD_BITS), Signal(WORD_BITS + 1)
        too_large = Signal()
        m.d.comb += [
            carried_upper.eq(kept_upper + 1),
            upper.eq(Mux(carries[-1], carried_upper, kept_upper)),
            too_large.eq(beyond | (carries[-1] & carried_upper[-1])),
            self.upper.eq(upper | too_large.replicate(WORD_BITS)),
        ]
        overflows = Mux(self.lower_half, too_large, carries[-1])
        parts: list[Value] = []
        for part in reversed(range(len(sums))):
            if part < len(FIELD_ENDS):
                overflows = Mux(self.ends[part], carries[part], overflows)
            parts.insert(0, sums[part] | overflows.replicate(len(sums[part])))
        m.d.comb += self.total.eq(Cat(parts))

        with m.If(self.clear):
            m.d.sync += kept.eq(0)
            with m.If(~self.lower_half):
                m.d.sync += beyond.eq(0)
        with m.If(self.add & self.lower_half):
            m.d.sync += [kept.eq(Cat(sums)), kept_upper.eq(upper), beyond.eq(too_large)]
        with m.Elif(self.add):
            # What is added to all ones carries, or is 0.
            m.d.sync += [kept.eq(self.total), kept_upper.eq(Cat(sums)), beyond.eq(beyond | carries[-1])]
        return m
