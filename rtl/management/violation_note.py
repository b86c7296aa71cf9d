"""A violation of the M_Key, noted as trap 256 tells of it (docs/management.md, section 5)."""

from typing import Final

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute_memory import AttributeMap, attribute_write_layout
from rtl.management.place import WORD_BITS
from rtl.management.step import StepsSignature
from rtl.management.task import TaskSignature
from rtl.management.trap_packet import VIOLATION_M_KEY_WORD, violation_words
from wire.sma import SmaAttribute

__all__ = ["ViolationNote"]

_SLOT: Final = 1


class ViolationNote(wiring.Component):
    """Writes the latest violating SMP's part of the Notice, a word in each step.

    Members:
        steps, task: see `Work`, `Decision`.
        m_key_word: of the SMP, in the step of its word.
        note: to the attribute memory.
    """

    def __init__(self, attributes: AttributeMap) -> None:
        self._base = attributes.base[SmaAttribute.NOTICE]
        super().__init__(
            {
                "steps": In(StepsSignature()),
                "task": In(TaskSignature()),
                "m_key_word": In(WORD_BITS),
                "note": Out(attribute_write_layout(attributes.address_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Words in their order."""
        m = Module()
        steps, head, note = self.steps, self.task.head, self.note
        dr_slid = Mux(head.directed, head.dr_slid, 0)
        words = violation_words(head.slid, head.method, head.attribute_id, head.attribute_modifier, dr_slid)
        words |= {VIOLATION_M_KEY_WORD + half: self.m_key_word for half in range(2)}
        with m.If(steps.go & self.task.violated & (steps.slot == _SLOT)), m.Switch(steps.in_slot):
            for place, (index, word) in enumerate(sorted(words.items())):
                with m.Case(place):
                    m.d.comb += [note.valid.eq(1), note.address.eq(self._base + index), note.word.eq(word)]
        return m
