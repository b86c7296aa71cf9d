"""Which whole packets are SMPs (docs/management.md, section 1)."""

from collections import defaultdict

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.packet_check import StoreRow
from rtl.management.smp_packet import SMP_BYTES, SMP_WORDS
from wire.symbols import LANES

__all__ = ["SmpCheck"]


class SmpCheck(wiring.Component):
    """Looks at the rows of one packet after the other.

    Members:
        row: rows on their way to a buffer.
        is_smp: the packet is one, in the cycle of its last row.
    """

    def __init__(self, vls: int) -> None:
        self._vls = vls
        super().__init__({"row": In(StoreRow), "is_smp": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Each row is compared as it comes by. What decides is over long before the packet is."""
        m = Module()
        row = self.row
        # Row 0 has SDP before byte 0.
        at_row: dict[int, list[Value]] = defaultdict(list)
        for byte, (mask, value) in SMP_BYTES.items():
            index, lane = divmod(1 + byte, LANES)
            at_row[index].append((row.data.word_select(LANES - 1 - lane, 8) & mask) == value)
        differs = Signal()
        so_far = Signal()
        m.d.comb += differs.eq(
            Cat((row.index == index) & ~Cat(same).all() for index, same in at_row.items()).any(),
        )
        with m.If(row.valid):
            m.d.sync += so_far.eq((row.first | so_far) & ~differs)
        m.d.comb += self.is_smp.eq(so_far & (row.slot == self._vls) & (row.n == SMP_WORDS))
        return m
