"""The slot on which the agent offers a packet (docs/management.md, sections 3, 4 and 6)."""

from typing import Final

from amaranth.hdl import Array, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute import WordSignature
from rtl.management.place import WORD_BITS
from rtl.management.step import ANSWER_SLOT, StepsSignature
from rtl.management.task import TaskSignature
from rtl.widths import SLOT_BITS
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
        steps, task: see `Work`, `Decision`.
        word: of a PMA's answer, in the slots for it, of the SLtoVLMappingTable.
        slot: the slot. `there`: the node has it.
    """

    def __init__(self, vls: int) -> None:
        self._vls = vls
        super().__init__(
            {
                "steps": In(StepsSignature()),
                "task": In(TaskSignature()),
                "word": In(WordSignature()),
                "slot": Out(SLOT_BITS),
                "there": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One register."""
        m = Module()
        steps, task, head = self.steps, self.task, self.task.head
        place_in_word, number = head.sl[:_PLACE_BITS], head.sl[_PLACE_BITS:]
        entries = Array(self.word.kept.word_select(_OF_WORD - 1 - place, _ENTRY) for place in range(_OF_WORD))
        looks = steps.at_in_slot(0) & steps.within(ANSWER_SLOT) & (self.word.number == number)
        with m.If(steps.first):
            m.d.sync += self.slot.eq(Mux(task.pma, head.slot, self._vls))
        with m.Elif(looks & task.pma & ~task.from_host):
            m.d.sync += self.slot.eq(entries[place_in_word])
        m.d.comb += self.there.eq(~task.pma | (self.slot < self._vls))
        return m
