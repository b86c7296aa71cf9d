"""FECN in a packet that leaves by a congested port (docs/pipeline.md, section 7.3)."""

from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.link.row import HEAD_BITS, lrh_field
from rtl.widths import INDEX_BITS
from wire.codes import LNH
from wire.headers import BTH, GRH, LRH
from wire.symbols import LANES

__all__ = ["Marked", "Marking"]

_BYTE_BITS: Final = 8
_FECN: Final = BTH["fecn"]
_IN_PACKET: Final = {
    LNH.IBA_LOCAL: LRH.size_bytes + _FECN.byte,
    LNH.IBA_GLOBAL: LRH.size_bytes + GRH.size_bytes + _FECN.byte,
}
_ROWS: Final = {lnh: (byte + 1) // LANES for lnh, byte in _IN_PACKET.items()}
(_LANE,) = {(byte + 1) % LANES for byte in _IN_PACKET.values()}
_BIT: Final = _BYTE_BITS * (LANES - _LANE) - 1 - _FECN.offset_bits % _BYTE_BITS
"""The row of FECN by LNH, row 0 having SDP before the packet's first byte, and the bit of the row."""

Marked: Final = data.StructLayout({"valid": 1, **{name: LRH[name].width for name in ("slid", "dlid", "sl")}})
"""A packet's FECN has been set in the row that is on the wires."""


class Marking(wiring.Component):
    """Sets FECN in the rows that pass the transmit stage.

    Members:
        row, index, first, last: a row, if `there`; of row 0 the index means anything. `valid`: it passes, too, which is
            known late.
        marks: in the cycle after row 0, this packet is to be marked.
        sent: the row as it is sent, if it is `valid`.
        marked: in the cycle after.
        done: FECN has been set in a row before this one, of the same packet.
    """

    row: In(_BYTE_BITS * LANES)
    index: In(INDEX_BITS)
    first: In(1)
    last: In(1)
    valid: In(1)
    there: In(1)
    marks: In(1)
    sent: Out(_BYTE_BITS * LANES)
    marked: Out(Marked)
    done: Out(1)

    def elaborate(self, platform: object) -> Module:
        """What is marked is known before the first row that can be; of every LRH is kept what is logged, which
        means nothing of a packet that does not pass."""
        m = Module()
        row, marked = self.row, self.marked
        begins, begun, has_grh, sets, here = Signal(), Signal(), Signal(), Signal(), Signal()
        at = Mux(has_grh, _ROWS[LNH.IBA_GLOBAL], _ROWS[LNH.IBA_LOCAL])
        m.d.comb += [
            sets.eq(begun & (self.index == at) & ~self.last & ~self.first),
            here.eq(self.valid & sets),
            self.sent.eq(Cat(row[:_BIT], row[_BIT] | sets, row[_BIT + 1 :])),
        ]
        m.d.sync += [marked.valid.eq(here), begins.eq(self.valid & self.first)]
        with m.If(begins):
            m.d.sync += begun.eq(self.marks)
        with m.If(here):
            m.d.sync += self.done.eq(1)
        head = row[:HEAD_BITS]
        with m.If(self.valid & self.first):
            m.d.sync += self.done.eq(0)
        with m.If(self.there & self.first):
            m.d.sync += [
                has_grh.eq(lrh_field(head, "lnh") == LNH.IBA_GLOBAL),
                marked.sl.eq(lrh_field(head, "sl")),
                marked.dlid[_BYTE_BITS:].eq(row),
            ]
        with m.If(self.there), m.Switch(self.index):
            with m.Case(1):
                m.d.sync += [marked.dlid[:_BYTE_BITS].eq(row[-_BYTE_BITS:]), marked.slid[_BYTE_BITS:].eq(row)]
            with m.Case(2):
                m.d.sync += marked.slid[:_BYTE_BITS].eq(row[-_BYTE_BITS:])
        return m
