"""An attribute's words in turn: for a Set what is kept of each is merged with what comes (docs/management.md, 4.3)."""

from itertools import zip_longest
from typing import Final

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.below import below
from rtl.management.attribute import Attribute, Word
from rtl.management.attribute_memory import BLOCK_WORDS, AttributeMap, AttributeMemory
from rtl.management.place import WORD_BITS, place
from rtl.management.set_rules import WRITES, SetRules
from rtl.management.task import ANSWER_SLOT, BASE_STEP, NEXT_WORD, SET_SLOT, WORD_TAKEN, Stage
from rtl.management.trap_packet import VIOLATION_M_KEY_WORD, cc_violation_words, violation_words
from wire.mad import MadStatus
from wire.parameters import NodeParameters
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute

__all__ = ["AttributeWords"]

_MERGED: Final = 1
"""The step of a slot in which a word's merging begins; the one before judges it, the one after writes it."""

_VIOLATION_SLOT: Final = 1


class AttributeWords(Stage):
    """Follows the steps through the attribute.

    Members:
        attribute: what the words are of. `base`: its first word in the memory.
        packet_word: the slot's word of the MAD that came, in the last step of the slot before; a violating M_Key.
        read: the port's state, for PortState.
        word: what came, what was kept, what is written.
        writes: the registers to write (see `SetRules`), from the slot's second step on.
        status: the answer's, with what was refused so far.
        client_reregister: the Set's.
    """

    def __init__(self, parameters: NodeParameters, attributes: AttributeMap) -> None:
        self._attributes = attributes
        super().__init__(
            parameters,
            attribute=In(Attribute),
            base=In(attributes.address_bits),
            packet_word=In(WORD_BITS),
            read=In(PORT_INFO["port_state"].width),
            word=Out(Word),
            writes=Out(WRITES),
            status=Out(8),
            client_reregister=Out(1),
        )

    def elaborate(self, platform: object) -> Module:
        """Read, judge, merge, write: a register behind each."""
        m = Module()
        m.submodules.kept_words = kept_words = AttributeMemory(self._attributes)
        m.submodules.rules = rules = SetRules(self._parameters)
        steps, word, chosen = self.steps, self.word, self.attribute.chosen
        m.d.comb += word.number.eq(steps.of_slot.word)
        write, mask = kept_words.write, rules.judged.mask
        with m.If(steps.at_in_slot(NEXT_WORD) & (steps.lap == 1) & below(steps.of_slot.word, BLOCK_WORDS)):
            begins = steps.slot == ANSWER_SLOT - 1
            m.d.sync += kept_words.address.eq(Mux(begins, self.base, kept_words.address + 1))
            m.d.sync += write.address.eq(kept_words.address)
        with m.If(steps.at(BASE_STEP)):
            m.d.sync += kept_words.address.eq(self.base)
        # Congestion control's are not kept. The word with the answer's VL is, from before its slots on.
        congestion = self.task.congestion
        with m.If(steps.at_in_slot(WORD_TAKEN) & (~steps.again | congestion)):
            m.d.sync += word.request.eq(self.packet_word)
        with m.If(steps.at_in_slot(WORD_TAKEN) & ~steps.again & (~congestion | (steps.slot == SET_SLOT - 1))):
            m.d.sync += word.kept.eq(kept_words.word)

        connect(m, flipped(self.attribute), rules.attribute)
        connect(m, word, rules.word)
        m.d.comb += [rules.state.eq(self.read), self.writes.eq(rules.judged.writes)]

        took, refused = Signal(), Signal(reset_less=True)
        client_reregister = place(PORT_INFO["client_reregister"])
        m.d.sync += [took.eq(0), write.valid.eq(0)]
        self._note_violation(m, write)
        with m.If(steps.first):
            m.d.sync += [refused.eq(0), self.client_reregister.eq(0)]
        setting = self.attribute.setting & ~self.task.gmp
        with m.If(steps.at_in_slot(_MERGED) & steps.of_slot.in_set & setting):
            m.d.sync += [
                took.eq(1),
                refused.eq(refused | rules.judged.refused),
                write.valid.eq(1),
                write.word.eq((word.kept & ~mask) | (word.request & mask)),
            ]
            with m.If(chosen[SmaAttribute.PORT_INFO.name] & (word.number == client_reregister.word)):
                m.d.sync += self.client_reregister.eq(client_reregister.of(word.request))
        of_node = self.attribute.target.at_port_0 if self._is_switch else 1
        m.d.comb += [
            word.of_own_port_info.eq(took & chosen[SmaAttribute.PORT_INFO.name] & of_node),
            word.of_switch_info.eq(took & chosen[SmaAttribute.SWITCH_INFO.name]),
            word.merged.eq(write.word),
            self.status.eq(
                Mux(self.attribute.answering & refused, MadStatus.INVALID_ATTRIBUTE_VALUE, self.attribute.status)
            ),
        ]
        return m

    def _note_violation(self, m: Module, write: data.View) -> None:
        """As its trap reports it, a word in each step."""
        steps, task, head = self.steps, self.task, self.task.head
        dr_slid = Mux(head.directed, head.dr_slid, 0)
        words = violation_words(head.slid, head.method, head.attribute_id, head.attribute_modifier, dr_slid)
        words |= {VIOLATION_M_KEY_WORD + half: self.packet_word for half in range(2)}
        base = self._attributes.base[SmaAttribute.NOTICE]
        noted, cc_noted = sorted((base + index, word) for index, word in words.items()), []
        if self._is_switch:
            of_cc = cc_violation_words(head.slid, head.method, head.attribute_id, head.attribute_modifier, head.cc_key)
            cc_noted = sorted((base + BLOCK_WORDS + index, word) for index, word in of_cc.items())
        with m.If(steps.go & task.violated & (steps.slot == _VIOLATION_SLOT)), m.Switch(steps.in_slot):
            for place_in_slot, (of_smp, of_request) in enumerate(zip_longest(noted, cc_noted)):
                with m.Case(place_in_slot):
                    for kind, noted_here in ((0, of_smp), (1, of_request)):
                        if noted_here is not None:
                            address, word = noted_here
                            with m.If(task.congestion == kind):
                                m.d.sync += [write.valid.eq(1), write.address.eq(address), write.word.eq(word)]
