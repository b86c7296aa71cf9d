"""Which packets are for the agent: SMPs, PMA requests to the adapter itself (docs/management.md, section 1)."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.multicast_dlid import MulticastDlid
from rtl.link.packet_check import StoreRow
from rtl.link.row import HEAD_BITS, lrh_field
from rtl.management.mad_packet import (
    GRH_BYTES,
    GRH_WORDS,
    LRH_WORDS,
    MAD_WORDS,
    PMA_REQUEST_BYTES,
    SMP_BYTES,
    words_that_differ,
)
from wire.codes import LNH
from wire.headers import LRH
from wire.port_info import PORT_INFO

__all__ = ["MadCheck", "OwnLid"]


class MadCheck(wiring.Component):
    """Says which whole packets are SMPs, and which PMA requests.

    Members:
        row: rows that go to a buffer.
        is_smp, is_pma_request: the packet is one, in the cycle of its last row.
    """

    def __init__(self, vls: int) -> None:
        self._vls = vls
        super().__init__({"row": In(StoreRow), "is_smp": Out(1), "is_pma_request": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Each row is compared as it passes. The rows that decide end long before the packet."""
        m = Module()
        row = self.row
        on_vl15 = row.slot == self._vls
        m.submodules.dlid = dlid = MulticastDlid()
        m.d.comb += [
            dlid.row.eq(row.data),
            dlid.first.eq(row.valid & row.first),
            dlid.second.eq(row.valid & (row.index == 1)),
        ]
        has_grh = Signal()
        with m.If(row.valid & row.first):
            m.d.sync += has_grh.eq(lrh_field(row.data[:HEAD_BITS], "lnh") == LNH.IBA_GLOBAL)

        def is_row(index: int) -> Value:
            """It is this row, counted without a GRH."""
            return row.index == (Mux(has_grh, index + GRH_WORDS, index) if index >= LRH_WORDS else index)

        of_grh = words_that_differ(
            {LRH.size_bytes + byte: bits for byte, bits in GRH_BYTES.items()}, row.data, before=1
        )
        wrong_grh = has_grh & Cat((row.index == index) & in_row for index, in_row in of_grh.items()).any()
        for allowed, found, slot in (
            (SMP_BYTES, self.is_smp, on_vl15),
            (PMA_REQUEST_BYTES, self.is_pma_request, ~on_vl15 & ~dlid.multicast),
        ):
            # Row 0 has SDP before byte 0.
            in_rows = words_that_differ(allowed, row.data, before=1)
            differs = wrong_grh | Cat(is_row(index) & in_row for index, in_row in in_rows.items()).any()
            so_far = Signal(name=f"{found.name}_so_far")
            with m.If(row.valid):
                m.d.sync += so_far.eq((row.first | so_far) & ~differs)
            m.d.comb += found.eq(so_far & slot & (row.n == Mux(has_grh, MAD_WORDS + GRH_WORDS, MAD_WORDS)))
        return m


class OwnLid(wiring.Component):
    """Says whether a packet of the host is for the adapter itself.

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
