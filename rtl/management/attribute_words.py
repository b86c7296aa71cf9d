"""An attribute's words in turn: for a Set what is kept of each is merged with what comes (docs/management.md, 4.3)."""

from typing import Final

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.management.attribute import AttributeSignature, SetWordSignature, WordSignature
from rtl.management.attribute_memory import AttributeMap, AttributeMemory, attribute_write_layout
from rtl.management.place import WORD_BITS, place
from rtl.management.set_rules import WRITES, SetRules
from rtl.management.step import ANSWER_SLOT, NEXT_WORD, SET_SLOT, WORD_TAKEN, StepsSignature
from rtl.management.task import TaskSignature
from wire.mad import MadStatus
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute

__all__ = ["AttributeWords"]

_MERGED: Final = 1
"""The step of a slot in which a word's merging begins; the one before judges it, the one after writes it."""


class AttributeWords(wiring.Component):
    """Follows the steps through the attribute.

    Members:
        steps, task: see `Work`, `Decision`.
        attribute: what the words are of. `base`: its first word in the memory.
        given: the slot's word of the MAD that came, in the last step of the slot before.
        state: the port's state, for PortState.
        word: what came and what was kept. `set_word`: what is written.
        writes: the registers to write (see `SetRules`), from the slot's second step on.
        status: the answer's, with what was refused so far.
        client_reregister: the Set's.
        note: another word to write, none of a Set.
    """

    def __init__(self, parameters: NodeParameters, attributes: AttributeMap) -> None:
        self._parameters = parameters
        self._attributes = attributes
        super().__init__(
            {
                "steps": In(StepsSignature()),
                "task": In(TaskSignature()),
                "attribute": In(AttributeSignature()),
                "base": In(attributes.address_bits),
                "given": In(WORD_BITS),
                "state": In(PORT_INFO["port_state"].width),
                "word": Out(WordSignature()),
                "set_word": Out(SetWordSignature()),
                "writes": Out(WRITES),
                "status": Out(8),
                "client_reregister": Out(1),
                "note": In(attribute_write_layout(attributes.address_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Read, judge, merge, write: a register behind each."""
        m = Module()
        m.submodules.kept_words = kept_words = AttributeMemory(self._attributes)
        m.submodules.rules = rules = SetRules(self._parameters)
        steps, word, set_word, chosen = self.steps, self.word, self.set_word, self.attribute.chosen
        m.d.comb += word.number.eq(steps.slot - SET_SLOT)
        with m.If(steps.at_in_slot(NEXT_WORD)):
            begins = (steps.slot == SET_SLOT - 1) | (steps.slot == ANSWER_SLOT - 1)
            m.d.sync += kept_words.address.eq(Mux(begins, self.base, kept_words.address + 1))
        with m.If(steps.at_in_slot(WORD_TAKEN)):
            m.d.sync += [word.request.eq(self.given), word.kept.eq(kept_words.word)]

        connect(m, flipped(self.attribute), rules.attribute)
        connect(m, word, rules.word)
        m.d.comb += [rules.state.eq(self.state), self.writes.eq(rules.judged.writes)]

        write, mask = kept_words.write, rules.judged.mask
        took, refused = Signal(), Signal()
        client_reregister = place(PORT_INFO["client_reregister"])
        m.d.sync += [took.eq(0), write.eq(self.note)]
        with m.If(steps.first):
            m.d.sync += [refused.eq(0), self.client_reregister.eq(0)]
        setting = self.attribute.setting & ~self.task.pma
        with m.If(steps.at_in_slot(_MERGED) & steps.within(SET_SLOT) & setting):
            m.d.sync += [
                took.eq(1),
                refused.eq(refused | rules.judged.refused),
                write.valid.eq(1),
                write.address.eq(kept_words.address),
                write.word.eq((word.kept & ~mask) | (word.request & mask)),
            ]
            with m.If(chosen[SmaAttribute.PORT_INFO.name] & (word.number == client_reregister.word)):
                m.d.sync += self.client_reregister.eq(client_reregister.of(word.request))
        of_node = self.attribute.target.at_port_0 if isinstance(self._parameters, SwitchParameters) else 1
        m.d.comb += [
            set_word.port_info.eq(took & chosen[SmaAttribute.PORT_INFO.name] & of_node),
            set_word.switch_info.eq(took & chosen[SmaAttribute.SWITCH_INFO.name]),
            set_word.number.eq(word.number),
            set_word.request.eq(word.request),
            set_word.merged.eq(write.word),
            self.status.eq(
                Mux(self.attribute.answering & refused, MadStatus.INVALID_ATTRIBUTE_VALUE, self.attribute.status)
            ),
        ]
        return m
