"""Congestion control's attributes: windows on the register bus, word by word (docs/management.md, section 7)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.management.attribute import Attribute, Word
from rtl.management.mad_packet import CC_DATA_WORD, GRH_WORD, KEPT_WORDS
from rtl.management.place import WHOLE, WORD_BITS, PacketWrite, masks, word_of
from rtl.management.task import ANSWER_SLOT, SET_SLOT, SLOT_STEPS, WORD_TAKEN, Stage
from rtl.rotation import any_of
from rtl.widths import PORT_BITS
from wire.congestion_control import CC_ATTRIBUTES, CC_DATA_BYTES, CONGESTION_KEY_INFO, CcAttribute
from wire.layout import Layout
from wire.mad import MadMethod
from wire.packet import WORD_BYTES
from wire.parameters import NodeParameters
from wire.registers import ADDRESS_BITS, CONGESTION_PAGE, PortRegister

__all__ = ["Access", "Window", "Windows", "outside"]

_OF_NONE: Final = (CcAttribute.NOTICE, CcAttribute.CA_CONGESTION_SETTING, CcAttribute.CONGESTION_CONTROL_TABLE)
"""A trap's; those of adapters."""
_OF_SWITCH: Final = [attribute for attribute in CcAttribute if attribute not in _OF_NONE]
_LAYOUTS: Final = {attribute: CC_ATTRIBUTES[attribute].format for attribute in _OF_SWITCH}
_WORDS: Final = {
    attribute: range(word_of(next(iter(layout.fields))), -(-layout.size_bytes // WORD_BYTES))
    for attribute, layout in _LAYOUTS.items()
    if isinstance(layout, Layout)
}
_WORD_BITS: Final = (CC_DATA_BYTES // WORD_BYTES - 1).bit_length()
_OFFSET_BITS: Final = 16
_PAGE_BITS: Final = ADDRESS_BITS - _OFFSET_BITS
_ELEMENTS: Final = CcAttribute.SWITCH_PORT_CONGESTION_SETTING
_BLOCK_PORTS: Final = len(_WORDS[_ELEMENTS])
_IN_BLOCK: Final = (_BLOCK_PORTS - 1).bit_length()
_KEY_WORDS: Final = tuple(masks(CONGESTION_KEY_INFO["cc_key"]))
_WRITE_READY: Final = 1
"""The step of a slot before that of a write."""

Access: Final = data.StructLayout({"write": 1, "read": 1, "addr": ADDRESS_BITS, "wdata": WORD_BITS})
"""An access to the register bus, in the step before its own."""

Window: Final = data.StructLayout(
    {"known": 1, "settable": 1, "named": 1, "first": _WORD_BITS, "last": _WORD_BITS, "of_ports": 1}
)
"""Of the attribute of a CC request: a switch has it; it has a Set; the modifier is allowed; its words, counted from
byte 32 of the MAD on. `of_ports`: they are registers of ports."""


class Windows(Stage):
    """Goes through one slot again and again in a Set, and another for the answer, once for each word of the attribute.

    Members:
        attribute: whether it is set, and answered; `word`: what came of it.
        hidden: the CC_Key may not be seen.
        window: of the request, from the cycle after it on.
        more: another word follows that of this slot. `packet_word`: where the next one is in the packet.
        access: of the word.
        read: what was read of it, in the slot's last step.
        write: that, to the packet, in the next cycle.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        super().__init__(
            parameters,
            attribute=In(Attribute),
            word=In(Word),
            hidden=In(1),
            window=Out(Window),
            more=Out(1),
            packet_word=Out(range(KEPT_WORDS)),
            access=Out(Access),
            read=In(WORD_BITS),
            write=Out(PacketWrite),
        )

    def elaborate(self, platform: object) -> Module:
        """The window, its word, the access, what comes of it."""
        m = Module()
        head, steps, attribute, window, write = self.task.head, self.steps, self.attribute, self.window, self.write
        kinds = {kind: head.attribute_id == kind for kind in _WORDS}
        settable = [here for kind, here in kinds.items() if MadMethod.SET in CC_ATTRIBUTES[kind].methods]
        blocks = self._ports // _BLOCK_PORTS
        m.d.sync += [
            window.known.eq(Cat(kinds.values()).any()),
            window.settable.eq(Cat(settable).any()),
            window.named.eq(
                Mux(kinds[_ELEMENTS], below(head.attribute_modifier, blocks + 1), head.attribute_modifier == 0)
            ),
            window.first.eq(any_of(Mux(here, _WORDS[kind][0], 0) for kind, here in kinds.items())),
            window.last.eq(any_of(Mux(here, _WORDS[kind][-1], 0) for kind, here in kinds.items())),
            window.of_ports.eq(kinds[_ELEMENTS]),
        ]

        # Before both slots the first word is next, in each the one behind its own.
        word, following = Signal(_WORD_BITS), Signal(_WORD_BITS)
        in_set = steps.slot == SET_SLOT
        begins = (steps.slot == SET_SLOT - 1) | (steps.slot == ANSWER_SLOT - 1)
        m.d.comb += [
            following.eq(Mux(begins, window.first, word + 1)),
            self.more.eq(word != window.last),
            self.packet_word.eq(CC_DATA_WORD + following),
        ]
        with m.If(steps.at_in_slot(WORD_TAKEN)):
            m.d.sync += word.eq(following)

        # The access is ready in the step before: of a read, the last of the slot before.
        at, there, access = Signal(_WORD_BITS), Signal(), self.access
        port = Cat((at - _WORDS[_ELEMENTS][0])[:_IN_BLOCK], head.attribute_modifier[: PORT_BITS - _IN_BLOCK])
        offset = Cat(at, head.attribute_id[: _OFFSET_BITS - _WORD_BITS])
        reads = (steps.number == SLOT_STEPS * ANSWER_SLOT - 1) | (
            (steps.slot == ANSWER_SLOT) & (steps.in_slot == WORD_TAKEN) & steps.again
        )
        m.d.comb += [
            at.eq(Mux(in_set, word, following)),
            there.eq(~window.of_ports | ((port != 0) & below(port, self._ports + 1))),
            access.read.eq(self.task.congestion & attribute.answering & reads & there),
            access.write.eq(
                self.task.congestion & attribute.setting & in_set & (steps.in_slot == _WRITE_READY) & there
            ),
            access.addr.eq(Mux(window.of_ports, _port_address(port), Cat(offset, Const(CONGESTION_PAGE, _PAGE_BITS)))),
            access.wdata.eq(self.word.request),
        ]

        # What is shown of it, in the last step of its own slot.
        was_read = Signal()
        with m.If(steps.go & reads):
            m.d.sync += was_read.eq(there)
        is_key = kinds[CcAttribute.CONGESTION_KEY_INFO] & Cat(word == of_key for of_key in _KEY_WORDS).any()
        answers = self.task.congestion & attribute.answering & (steps.slot == ANSWER_SLOT)
        m.d.sync += write.eq(0)
        with m.If(steps.at_in_slot(WORD_TAKEN) & answers):
            m.d.sync += [
                write.bytes.eq(WHOLE),
                write.index.eq(CC_DATA_WORD + word),
                write.word.eq(Mux(was_read & ~(self.hidden & is_key), self.read, 0)),
            ]
        return m


def _port_address(port: Value) -> Cat:
    return Cat(Const(PortRegister.CONGESTION, _OFFSET_BITS), port)


def outside(window: data.View, place: Value) -> Value:
    """The word of the packet behind that at PLACE is of the MAD's data, and not the attribute's."""
    in_data = ~below(place, CC_DATA_WORD - 1) & below(place, GRH_WORD)
    word = (place - (CC_DATA_WORD - 1))[:_WORD_BITS]
    return in_data & ((word < window.first) | (word > window.last))
