"""The counters of all ports, added up lap by lap (docs/management.md, sections 4.3 and 6)."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.place import WORD_BITS

__all__ = ["FIELD_ENDS", "PortSum"]

FIELD_ENDS = (4, 8, 16, 24)
"""Bits at which a field of a word with counters may end and the next one begin."""


class PortSum(wiring.Component):
    """Adds a word of each port in turn, field by field; a field that overflows is all ones from then on.

    Args:
        vls: data VLs of the ports.

    Members:
        clear: the next word is the first one, of new fields or of lower halves.
        ends: which of `FIELD_ENDS` divide the word's fields. `pairs`: instead they are of 2 bits, the highest data VL
            0's; those of VLs that there are not are 0.
        lower_half: it is the lower half of counters whose upper halves were added up before. Like `ends` it stays as it
            is from `clear` on until two cycles after the last word.
        add: `word` is added. In the second cycle after, `total` is the sum with it, and `upper` that of the upper
            halves.
    """

    def __init__(self, vls: int) -> None:
        self._pairs = vls
        super().__init__(
            {
                "clear": In(1),
                "ends": In(len(FIELD_ENDS)),
                "pairs": In(1),
                "lower_half": In(1),
                "add": In(1),
                "word": In(WORD_BITS),
                "total": Out(WORD_BITS),
                "upper": Out(WORD_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Add, then see to what is too large."""
        m = Module()
        kept, kept_upper, beyond = Signal(WORD_BITS), Signal(WORD_BITS), Signal(reset_less=True)
        bounds = list(pairwise([0, *FIELD_ENDS, WORD_BITS]))

        # One chain of carries, with a place behind each part of the word: where a field ends the carry stays there,
        # elsewhere a one there passes it on.
        passes = ~self.ends
        of_kept: list[Value] = []
        of_word: list[Value] = []
        for part, (first, end) in enumerate(bounds):
            of_kept += [kept[first:end], passes[part] if part < len(FIELD_ENDS) else Const(0, 1)]
            of_word += [self.word[first:end], Const(0, 1)]
        chain, added = Signal(WORD_BITS + len(bounds)), Signal()
        m.d.sync += [chain.eq(Cat(of_kept) + Cat(of_word)), added.eq(self.add)]
        sums = [chain[first + part : end + part] for part, (first, end) in enumerate(bounds)]
        carries = [chain[end + part] for part, (_, end) in enumerate(bounds)]

        # A field is too small if its highest part carries. What is added to all ones carries, or is 0. A field of 64
        # bits goes on in the upper halves.
        overflows = carries[-1] & ~self.lower_half
        parts = [sums[-1] | overflows.replicate(len(sums[-1]))]
        for part in reversed(range(len(FIELD_ENDS))):
            overflows = Mux(self.ends[part], carries[part] & ~self.lower_half, overflows)
            parts.insert(0, sums[part] | overflows.replicate(len(sums[part])))

        of_pairs = Signal(2 * self._pairs, reset_less=True)  # likewise, of fields of 2 bits
        for pair in range(self._pairs):
            here = slice(WORD_BITS - 2 * (pair + 1), WORD_BITS - 2 * pair)
            more = kept[here] + self.word[here]
            m.d.sync += of_pairs[len(of_pairs) - 2 * (pair + 1) :][:2].eq(more[:2] | more[2].replicate(2))

        upper = Signal(WORD_BITS + 1)
        m.d.comb += upper.eq(Mux(self.lower_half, kept_upper + carries[-1], Cat(sums, carries[-1])))
        with m.If(self.clear):
            m.d.sync += kept.eq(0)
            with m.If(~self.lower_half):
                m.d.sync += beyond.eq(0)
        with m.If(added):
            of_pairs_in_place = Cat(Const(0, WORD_BITS - len(of_pairs)), of_pairs)
            m.d.sync += [
                kept.eq(Mux(self.pairs, of_pairs_in_place, Cat(parts))),
                kept_upper.eq(upper),
                beyond.eq(beyond | upper[-1]),
            ]
        m.d.comb += [
            self.total.eq(kept | (self.lower_half & beyond).replicate(WORD_BITS)),
            self.upper.eq(kept_upper | beyond.replicate(WORD_BITS)),
        ]
        return m
