"""An attribute's words in turn: for a Set what is kept of each is merged with what comes (docs/management.md, 4.3)."""

from typing import Final

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute_decode import Chosen
from rtl.management.attribute_memory import BLOCK_WORDS, AttributeMap, AttributeMemory, attribute_write_layout
from rtl.management.place import WORD_BITS, place
from rtl.management.set_rules import WRITES, SetRules
from rtl.management.step import ANSWER_SLOT, NEXT_WORD, SET_SLOT, STEP_BITS, WORD_TAKEN
from wire.parameters import NodeParameters
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute

__all__ = ["AttributeWords"]

_MERGED: Final = 1
"""The step of a slot in which a word's merging begins; the one before judges it, the one after writes it."""


class AttributeWords(wiring.Component):
    """Follows the steps through the attribute.

    Members:
        go, step, first: see `Work`.
        base: the attribute's first word in the memory.
        chosen, at_port_0, setting: the attribute, whether it is PortInfo of a switch's port 0, and whether it is set.
        word: number of the slot's word.
        given: that word of the SMP that came, in the last step of the slot before.
        state: the port's state, for PortState.
        request, kept: what came and what was kept, from the first step of the slot on; `writes`: the registers to
            write (see `SetRules`), from the second on.
        took: a word of a Set has just been merged; `merged` is what is written now.
        refused: some field was so far; `client_reregister`: the Set's.
        note: another word to write, none of a Set.
    """

    def __init__(self, parameters: NodeParameters, attributes: AttributeMap) -> None:
        self._parameters = parameters
        self._attributes = attributes
        super().__init__(
            {
                "go": In(1),
                "step": In(STEP_BITS),
                "first": In(1),
                "base": In(attributes.address_bits),
                "chosen": In(Chosen),
                "at_port_0": In(1),
                "setting": In(1),
                "word": Out(range(BLOCK_WORDS)),
                "given": In(WORD_BITS),
                "state": In(PORT_INFO["port_state"].width),
                "request": Out(WORD_BITS),
                "kept": Out(WORD_BITS),
                "writes": Out(WRITES),
                "took": Out(1),
                "merged": Out(WORD_BITS),
                "refused": Out(1),
                "client_reregister": Out(1),
                "note": In(attribute_write_layout(attributes.address_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Read, judge, merge, write: a register behind each."""
        m = Module()
        m.submodules.kept_words = kept_words = AttributeMemory(self._attributes)
        m.submodules.rules = rules = SetRules(self._parameters)
        slot, in_slot = self.step[3:], self.step[:3]
        m.d.comb += [
            self.word.eq(slot - SET_SLOT),
            rules.chosen.eq(self.chosen),
            rules.at_port_0.eq(self.at_port_0),
            rules.word.eq(self.word),
            rules.request.eq(self.request),
            rules.state.eq(self.state),
            self.writes.eq(rules.writes),
        ]
        with m.If(self.go & (in_slot == NEXT_WORD)):
            begins = (slot == SET_SLOT - 1) | (slot == ANSWER_SLOT - 1)
            m.d.sync += kept_words.address.eq(Mux(begins, self.base, kept_words.address + 1))
        with m.If(self.go & (in_slot == WORD_TAKEN)):
            m.d.sync += [self.request.eq(self.given), self.kept.eq(kept_words.word)]

        write = kept_words.write
        in_set = (slot >= SET_SLOT) & (slot < SET_SLOT + BLOCK_WORDS)
        client_reregister = place(PORT_INFO["client_reregister"])
        m.d.sync += [self.took.eq(0), write.eq(self.note)]
        m.d.comb += self.merged.eq(write.word)
        with m.If(self.first):
            m.d.sync += [self.refused.eq(0), self.client_reregister.eq(0)]
        with m.If(self.go & in_set & self.setting & (in_slot == _MERGED)):
            m.d.sync += [
                self.took.eq(1),
                self.refused.eq(self.refused | rules.refused),
                write.valid.eq(1),
                write.address.eq(kept_words.address),
                write.word.eq((self.kept & ~rules.mask) | (self.request & rules.mask)),
            ]
            with m.If(self.chosen[SmaAttribute.PORT_INFO.name] & (self.word == client_reregister.word)):
                m.d.sync += self.client_reregister.eq(client_reregister.of(self.request))
        return m
