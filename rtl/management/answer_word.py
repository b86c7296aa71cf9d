"""A word of an answer's or a trap's data: what is kept, what is seen at that moment, what is read over the bus."""

from itertools import pairwise
from typing import Any, Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.management.attribute import Attribute, Word
from rtl.management.attribute_memory import BLOCK_WORDS, SL_TO_VL_WORDS
from rtl.management.identity import IdentitySignature, NodeStateSignature
from rtl.management.key_violations import KEY_COUNTS, KeyCounts
from rtl.management.m_key import Key
from rtl.management.mad_head import DATA_WORD
from rtl.management.mad_packet import KEPT_WORDS
from rtl.management.place import WHOLE, WORD_BITS, PacketWrite, constant_words, fields_in_words, masks, place
from rtl.management.pma import AS_IT_CAME, COUNTER_WORDS, FIELDS_OF_WORDS
from rtl.management.port_sum import FIELD_ENDS, PortSum
from rtl.management.set_rules import shown_state
from rtl.management.settings import SettingsSignature
from rtl.management.task import LAP_STEP, SET_SLOT, SLOT_STEPS, WORD_TAKEN, Stage
from rtl.management.told_events import told_layout
from rtl.management.trap_packet import CC_TRAP, TRAPS, VIOLATION, notice_words, told_traps, told_words
from rtl.rotation import any_of
from wire.layout import Field
from wire.mad import CLASS_PORT_INFO
from wire.node_info import NODE_INFO, NodeType
from wire.packet import WORD_BYTES
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import PMA_CAPABILITIES, PMA_RESP_TIME, PORT_SAMPLES_CONTROL, PmaAttribute
from wire.port_info import PORT_INFO, CapabilityMask
from wire.port_tables import GUID_INFO
from wire.registers import DATA_BITS
from wire.sma import SmaAttribute
from wire.smp import SMP_DATA_BYTES
from wire.switch_info import SWITCH_INFO

__all__ = ["AnswerWord"]

_CHANGE: Final = place(SWITCH_INFO["port_state_change"])
_CHANGE_CLEARED_STEP: Final = SLOT_STEPS * (SET_SLOT + _CHANGE.word) + 1
_SUM_BEGINS: Final = LAP_STEP
"""The step of a slot that says what of its word is added up: behind the last of the slot before, which takes until then
to be written, and before its own."""

_Answer: Final = data.StructLayout({"given": 1, "counted": 1, "bytes": WORD_BYTES, "index": range(KEPT_WORDS)})
"""A word is written, these bytes of it there; it has counters."""

_Seen: Final = data.StructLayout(
    {
        "m_key_protect_bits": PORT_INFO["m_key_protect_bits"].width,
        "port_state_change": 1,
        "is_sm": 1,
        **{name: PORT_INFO[name].width for name in KEY_COUNTS},
    }
)


class AnswerWord(Stage):
    """Puts a word together in its slot, and writes it in the third cycle after its last step.

    Members:
        settings: see `Settings`.
        attribute, word: the attribute, and its word.
        trap: which of the node's traps a Notice is, one-hot. `told`: what it tells of a packet.
        key, key_counts, node_state, identity, client_reregister: what is not kept in the attribute memory.
        read: what was read over the bus for the word, its lowest field from bit 0 on. `p_key_violations` (switch): of a
            port, for its PortInfo.
        write: to the packet.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        super().__init__(
            parameters,
            settings=In(SettingsSignature(parameters)),
            attribute=In(Attribute),
            word=In(Word),
            trap=In(TRAPS),
            told=In(told_layout(isinstance(parameters, SwitchParameters))),
            key=In(Key),
            key_counts=In(KeyCounts),
            node_state=In(NodeStateSignature(parameters)),
            identity=In(IdentitySignature(is_switch=isinstance(parameters, SwitchParameters))),
            client_reregister=In(1),
            read=In(DATA_BITS),
            write=Out(PacketWrite),
            **(
                {"p_key_violations": In(PORT_INFO["p_key_violations"].width)}
                if isinstance(parameters, SwitchParameters)
                else {}
            ),
        )

    def elaborate(self, platform: object) -> Module:
        """The word's parts, zeros where they have nothing; the word; its counters, which are added up meanwhile."""
        m = Module()
        seen = self._sampled(m)
        class_port_info = CLASS_PORT_INFO.pack(capability_mask=PMA_CAPABILITIES, resp_time_value=PMA_RESP_TIME)
        tick = PORT_SAMPLES_CONTROL["tick"]
        of_node = [
            *self._of_identity(m),
            self._part(m, SmaAttribute.NODE_INFO, fields_in_words(self._node_info())),
        ]
        of_ports = [
            self._part(m, SmaAttribute.PORT_INFO, fields_in_words(self._port_info(seen))),
            self._part(m, PmaAttribute.CLASS_PORT_INFO, constant_words(class_port_info[:SMP_DATA_BYTES])),
            self._part(m, PmaAttribute.PORT_SAMPLES_CONTROL, fields_in_words({tick: self.read[: tick.width]})),
        ]
        if self._is_switch:
            change = {SWITCH_INFO["port_state_change"]: seen.port_state_change}
            of_ports.append(self._part(m, SmaAttribute.SWITCH_INFO, fields_in_words(change)))
        producer = Const(NodeType.SWITCH) if self._is_switch else self.identity.node_type
        notices = [
            self._part(m, SmaAttribute.NOTICE, words, self.trap[trap])
            for trap, words in enumerate(notice_words(self._is_switch, producer, self.settings.lid, seen.is_sm))
        ]
        told = told_words(self._is_switch, self.told, self.settings.lid)
        notices.append(self._part(m, SmaAttribute.NOTICE, told, self.trap[told_traps(self._is_switch)].any()))

        # A register behind the parts, one behind the word, and then it waits for the counters.
        parts = Signal(data.ArrayLayout(WORD_BITS, 4), reset_less=True)
        answers = [self._answer(m), *(Signal(_Answer, name=f"answer_{later}") for later in (1, 2, 3))]
        word, most, write = Signal(WORD_BITS, reset_less=True), Signal(WORD_BITS, reset_less=True), self.write
        m.d.sync += [
            *(answer.eq(before) for before, answer in pairwise(answers)),
            Cat(parts).eq(Cat(Mux(self._shown(), self.word.kept, 0), *map(any_of, (of_node, of_ports, notices)))),
            word.eq(any_of(parts)),
            most.eq(Mux(answers[2].given, word, 0)),
        ]
        answer = answers[-1]
        counted = answer.given & answer.counted
        with m.If(answer.given):
            m.d.comb += [write.bytes.eq(answer.bytes), write.index.eq(answer.index)]
        counters = self._add_ports(m, answer, counted) if self._is_switch else Mux(counted, self.read, 0)
        m.d.comb += write.word.eq(most | counters)
        return m

    def _answer(self, m: Module) -> data.View:
        """What is written of the word of this step's slot: in a PMA's answer some bytes are as they came."""
        attribute, steps, number, answer = self.attribute, self.steps, self.word.number, Signal(_Answer)
        chosen = attribute.chosen
        shown = (attribute.answering & ~self.task.congestion) | self.task.trap
        with m.If(steps.at_in_slot(WORD_TAKEN) & steps.of_slot.in_answer & ~steps.again):
            m.d.comb += answer.given.eq(shown)
        counters = [chosen[kind.name] & (number == of) for kind, words in COUNTER_WORDS.items() for of in words]
        m.d.comb += [
            answer.counted.eq(any_of(counters)),
            answer.bytes.eq(WHOLE),
            answer.index.eq(DATA_WORD + number),
        ]
        for kind, as_it_came in AS_IT_CAME.items():
            for of, left in as_it_came.items():
                with m.If(chosen[kind.name] & (number == of)):
                    m.d.comb += answer.bytes.eq(WHOLE & ~left)
        return answer

    def _add_ports(self, m: Module, answer: data.View, counted: Value) -> Value:
        """The counters of all ports. Those of 64 bits are known with the last lower half: the upper half follows it."""
        m.submodules.port_sum = port_sum = PortSum(self._parameters.vls)
        steps, chosen, write, number = self.steps, self.attribute.chosen, self.write, self.word.number
        m.d.sync += [
            port_sum.clear.eq(steps.at_in_slot(_SUM_BEGINS) & (steps.lap == 1)),
            port_sum.add.eq(steps.at_in_slot(WORD_TAKEN) & steps.of_slot.in_answer),
        ]
        with m.If(steps.at_in_slot(_SUM_BEGINS)):
            m.d.sync += port_sum.pairs.eq(chosen[PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS.name])
            m.d.sync += port_sum.lower_half.eq(chosen[PmaAttribute.PORT_COUNTERS_EXTENDED.name] & number[0])
            for kind, words in FIELDS_OF_WORDS.items():
                with m.If(chosen[kind.name]), m.Switch(number):
                    for of_word, fields in words.items():
                        bounds = {bit for field in fields for bit in (field.lsb, field.lsb + field.width)}
                        ends = sum(1 << index for index, end in enumerate(FIELD_ENDS) if end in bounds)
                        with m.Case(of_word):
                            m.d.sync += port_sum.ends.eq(ends)
        m.d.comb += port_sum.word.eq(self.read)
        joins, index_of_upper = Signal(), Signal.like(answer.index, reset_less=True)
        m.d.sync += [joins.eq(counted & port_sum.lower_half), index_of_upper.eq(answer.index - 1)]
        with m.If(joins):
            m.d.comb += [write.bytes.eq(WHOLE), write.index.eq(index_of_upper)]
        return Mux(counted, port_sum.total, 0) | Mux(joins, port_sum.upper, 0)

    def _sampled(self, m: Module) -> Signal:
        """What can change at any time is seen in a slot's first step, a trap's IsSM in step 0."""
        steps, attribute = self.steps, self.attribute
        seen, samples = Signal(_Seen, reset_less=True), steps.at_in_slot(0)
        with m.If(samples):
            m.d.sync += seen.m_key_protect_bits.eq(self.key.protect)
        if self._is_switch:
            change = Signal()
            clears = attribute.chosen[SmaAttribute.SWITCH_INFO.name] & _CHANGE.of(self.word.request)
            with m.If(steps.at(_CHANGE_CLEARED_STEP) & attribute.setting & clears):
                m.d.sync += change.eq(0)
            with m.If(self.node_state.state_reported):
                m.d.sync += change.eq(1)
            with m.If(samples):
                m.d.sync += seen.port_state_change.eq(change)
        else:
            with m.If(samples & (~self.task.trap | steps.first)):
                m.d.sync += seen.is_sm.eq(self.node_state.host_sm)
            with m.If(samples):
                m.d.sync += [getattr(seen, name).eq(getattr(self.key_counts, name)) for name in KEY_COUNTS]
        return seen

    def _part(self, m: Module, kind: SmaAttribute | PmaAttribute, words: dict[int, Value], applies: Any = 1) -> Value:
        """The word of an attribute that has these, 0 if it is another one or they do not apply."""
        of_word = Signal(WORD_BITS, name=f"{kind.name}_seen".lower())
        with m.Switch(self.word.number):
            for number, value in sorted(words.items()):
                with m.Case(number):
                    m.d.comb += of_word.eq(value)
        return Mux(self.attribute.chosen[kind.name] & applies, of_word, 0)

    def _shown(self) -> Value:
        """What is kept is shown. Behind a short attribute the memory has the next one."""
        chosen, number = self.attribute.chosen, self.word.number
        is_kept = self.trap[VIOLATION]
        if self._is_switch:
            is_kept |= self.trap[CC_TRAP]
        return ~(
            chosen[SmaAttribute.NODE_DESCRIPTION.name]
            | chosen[SmaAttribute.VENDOR_DIAG.name]
            | (chosen[SmaAttribute.LED_INFO.name] & (number != 0))
            | (chosen[SmaAttribute.SL_TO_VL_MAPPING_TABLE.name] & ~below(number, SL_TO_VL_WORDS))
            | (
                chosen[SmaAttribute.PORT_INFO.name]
                & self.key.hidden
                & below(number, 1 + max(masks(PORT_INFO["m_key"])))
            )
            | (chosen[SmaAttribute.NOTICE.name] & ~is_kept)
            | Cat(chosen[of_pma.name] for of_pma in PmaAttribute).any()
        )

    def _of_identity(self, m: Module) -> list[Value]:
        """The identity's words, of which none or one is not 0, found a step before those of others are.

        Each has a register, whose reset chooses it: they are too many for a multiplexer.
        """
        chosen, number, identity = self.attribute.chosen, self.word.number, self.identity
        description = chosen[SmaAttribute.NODE_DESCRIPTION.name]
        in_turn = [identity.description.word_select(of, WORD_BITS) for of in reversed(range(BLOCK_WORDS))]
        words = [(description & (number == of), word) for of, word in enumerate(in_turn)]
        node_guids = [(SmaAttribute.NODE_INFO, NODE_INFO[name]) for name in ("system_image_guid", "node_guid")]
        port_guids = [(SmaAttribute.NODE_INFO, NODE_INFO["port_guid"]), (SmaAttribute.GUID_INFO, GUID_INFO.field(0))]
        for guid, places in ((identity.node_guid, node_guids), (identity.port_guid, port_guids)):
            for half in range(2):
                here = Cat(chosen[of.name] & (number == list(masks(field))[half]) for of, field in places).any()
                words.append((here, guid.word_select(1 - half, WORD_BITS)))
        found = [Signal(WORD_BITS, name=f"of_identity_{place}", reset_less=True) for place in range(len(words))]
        m.d.sync += [of_word.eq(Mux(here, word, 0)) for of_word, (here, word) in zip(found, words, strict=True)]
        return list(map(Value.cast, found))

    def _node_info(self) -> dict[Field, Value]:
        """Kinds of adapters and their numbers of ports are identities: ports of all are alike."""
        seen: dict[Field, Value] = {NODE_INFO["local_port_num"]: self.task.head.arrival}
        if not self._is_switch:
            seen |= {NODE_INFO[name]: getattr(self.identity, name) for name in ("node_type", "num_ports")}
        return seen

    def _port_info(self, seen: data.View) -> dict[Field, Value]:
        physical_state_bits = PORT_INFO["port_physical_state"].width
        of_node: dict[str, Value] = {
            "m_key_protect_bits": seen.m_key_protect_bits,
            "m_key_violations": self.key.violations,
            "client_reregister": self.client_reregister,
        }
        of_link: dict[str, Value] = {
            "link_width_active": self.read[: PORT_INFO["link_width_active"].width],
            "port_state": shown_state(self.read[physical_state_bits:][: PORT_INFO["port_state"].width]),
            "port_physical_state": self.read[:physical_state_bits],
            **({"p_key_violations": self.p_key_violations} if self._is_switch else {}),
        }
        at_port_0 = self.attribute.target.at_port_0
        at_node, on_link = (at_port_0, ~at_port_0) if self._is_switch else (Const(1, 1), Const(1, 1))
        port_info = {
            PORT_INFO["local_port_num"]: self.task.head.arrival,
            **{PORT_INFO[name]: Mux(at_node, value, 0) for name, value in of_node.items()},
            **{PORT_INFO[name]: Mux(on_link, value, 0) for name, value in of_link.items()},
        }
        if not self._is_switch:
            port_info[PORT_INFO["capability_mask"]] = Mux(seen.is_sm, CapabilityMask.IS_SM, 0)
            port_info |= {PORT_INFO[name]: getattr(seen, name) for name in KEY_COUNTS}
        return port_info
