"""Whether a packet of the host is for the adapter itself (docs/management.md, section 1)."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.packet_check import StoreRow
from rtl.link.row import HEAD_BITS, lrh_field
from wire.headers import LRH
from wire.port_info import PORT_INFO

__all__ = ["OwnLid"]


class OwnLid(wiring.Component):
    """Compares the DLID of one packet after the other.

    Members:
        row: rows that go to a buffer, two cycles after the row was received.
        lid, lmc: the registers.
        own: the packet's DLID is one of the adapter's own by what was visible two cycles before; from the fourth
            cycle after its row 1 on.
    """

    row: In(StoreRow)
    lid: In(PORT_INFO["lid"].width)
    lmc: In(PORT_INFO["lmc"].width)
    own: Out(1)

    def elaborate(self, platform: object) -> Module:
        """Two registers, as many as the row has behind it."""
        m = Module()
        row = self.row
        head, dlid = Signal(HEAD_BITS), Signal(LRH["dlid"].width)
        with m.If(row.valid & row.first):
            m.d.sync += head.eq(row.data)
        with m.If(row.valid & (row.index == 1)):
            m.d.sync += dlid.eq(lrh_field(Cat(row.data, head), "dlid"))
        other_bits, has_lid = Signal.like(dlid), Signal()
        m.d.sync += [
            other_bits.eq((dlid ^ self.lid) >> self.lmc),
            has_lid.eq(self.lid != 0),
            self.own.eq((other_bits == 0) & has_lid),
        ]
        return m
