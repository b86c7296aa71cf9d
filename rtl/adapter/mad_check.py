"""Which whole packets are SMPs, and which are PMA requests (docs/management.md, section 1)."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.packet_check import StoreRow
from rtl.management.mad_packet import MAD_WORDS, PMA_REQUEST_BYTES, SMP_BYTES, words_that_differ

__all__ = ["MadCheck"]


class MadCheck(wiring.Component):
    """Looks at the rows of one packet after the other.

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
        for allowed, found, slot in (
            (SMP_BYTES, self.is_smp, on_vl15),
            (PMA_REQUEST_BYTES, self.is_pma_request, ~on_vl15),
        ):
            # Row 0 has SDP before byte 0.
            in_rows = words_that_differ(allowed, row.data, before=1)
            differs = Cat((row.index == index) & in_row for index, in_row in in_rows.items()).any()
            so_far = Signal(name=f"{found.name}_so_far")
            with m.If(row.valid):
                m.d.sync += so_far.eq((row.first | so_far) & ~differs)
            m.d.comb += found.eq(so_far & slot & (row.n == MAD_WORDS))
        return m
