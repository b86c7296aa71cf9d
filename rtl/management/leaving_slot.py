"""The slot on which the agent offers a packet (docs/management.md, sections 3, 4 and 6)."""

from typing import Final

from amaranth.hdl import Array, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute_memory import BLOCK_WORDS
from rtl.management.place import WORD_BITS
from rtl.widths import SL_BITS, SLOT_BITS
from wire.port_tables import SL_TO_VL_MAPPING_TABLE

__all__ = ["LeavingSlot"]

_ENTRY: Final = SL_TO_VL_MAPPING_TABLE.entry.width
_OF_WORD: Final = WORD_BITS // _ENTRY
_PLACE_BITS: Final = (_OF_WORD - 1).bit_length()


class LeavingSlot(wiring.Component):
    """VL15's for an SMP or a trap; for a PMA's answer that leaves by a link the VL of its SL.

    Args:
        vls: data VLs.

    Members:
        first: the step in this cycle is step 0.
        pma, to_host: the packet is a PMA's answer, to an adapter's host; `came_on`: the slot of the request.
        sl: its SL.
        look, word, kept: in this cycle `kept` is this word of the SLtoVLMappingTable.
        slot: the slot. `there`: the node has it.
    """

    def __init__(self, vls: int) -> None:
        self._vls = vls
        super().__init__(
            {
                "first": In(1),
                "pma": In(1),
                "to_host": In(1),
                "came_on": In(SLOT_BITS),
                "sl": In(SL_BITS),
                "look": In(1),
                "word": In(range(BLOCK_WORDS)),
                "kept": In(WORD_BITS),
                "slot": Out(SLOT_BITS),
                "there": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One register."""
        m = Module()
        place_in_word, word = self.sl[:_PLACE_BITS], self.sl[_PLACE_BITS:]
        entries = Array(self.kept.word_select(_OF_WORD - 1 - place, _ENTRY) for place in range(_OF_WORD))
        with m.If(self.first):
            m.d.sync += self.slot.eq(Mux(self.pma, self.came_on, self._vls))
        with m.Elif(self.look & self.pma & ~self.to_host & (self.word == word)):
            m.d.sync += self.slot.eq(entries[place_in_word])
        m.d.comb += self.there.eq(~self.pma | (self.slot < self._vls))
        return m
