"""A word of an answer's or a trap's data: what is kept, what is seen at that moment, what is read over the bus."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute_decode import Chosen
from rtl.management.attribute_memory import BLOCK_WORDS, SL_TO_VL_WORDS
from rtl.management.identity import IdentitySignature
from rtl.management.packet_memory import WHOLE
from rtl.management.place import WORD_BITS, constant_words, fields_in_words, masks
from rtl.management.pma import AS_IT_CAME, COUNTER_WORDS
from rtl.management.trap_packet import notice_words
from rtl.rotation import any_of
from rtl.widths import PORT_BITS
from wire.class_port_info import CLASS_PORT_INFO
from wire.layout import Field
from wire.node_info import NODE_INFO
from wire.packet import WORD_BYTES
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import PMA_CAPABILITIES, PMA_RESP_TIME, PORT_SAMPLES_CONTROL, PmaAttribute
from wire.port_info import PORT_INFO, CapabilityMask
from wire.port_tables import GUID_INFO
from wire.registers import DATA_BITS
from wire.sma import SmaAttribute
from wire.smp import SMP_DATA_BYTES
from wire.switch_info import SWITCH_INFO

__all__ = ["AnswerWord", "Seen"]

Seen = data.StructLayout(
    {
        "local_port": PORT_BITS,
        "lid": PORT_INFO["lid"].width,
        "is_sm": 1,
        "port_state_change": 1,
        "client_reregister": 1,
        "m_key_hidden": 1,
        "m_key_protect_bits": PORT_INFO["m_key_protect_bits"].width,
        "m_key_violations": PORT_INFO["m_key_violations"].width,
        "read": DATA_BITS,
    }
)
"""What is not kept in the attribute memory; `local_port`: LocalPortNum, `lid`: the node's own LID, `read`: what was
read over the bus for the word, fields next to each other."""


class AnswerWord(wiring.Component):
    """Puts a word together.

    Members:
        chosen, at_port_0: the attribute, and of PortInfo whether it is a switch's port 0.
        trap: which of the node's traps a Notice is.
        word: number of the word.
        kept: it, in the attribute memory.
        seen, identity: the rest.
        answer: the word, in the next cycle; of a PMA's with counters, with what is read by then.
        bytes: those of the word that are to be written, others are as in the request; from the next cycle on.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        super().__init__(
            {
                "chosen": In(Chosen),
                "at_port_0": In(1),
                "trap": In(1),
                "word": In(range(BLOCK_WORDS)),
                "kept": In(WORD_BITS),
                "seen": In(Seen),
                "identity": In(IdentitySignature()),
                "answer": Out(WORD_BITS),
                "bytes": Out(WORD_BYTES),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Where something is seen, the memory holds zeros."""
        m = Module()
        chosen, word, seen, identity = self.chosen, self.word, self.seen, self.identity

        # Of short attributes the memory has the next one behind them.
        m_key_words = tuple(masks(PORT_INFO["m_key"]))
        shown = Signal()
        m.d.comb += shown.eq(
            ~(
                chosen[SmaAttribute.NODE_DESCRIPTION.name]
                | chosen[SmaAttribute.VENDOR_DIAG.name]
                | (chosen[SmaAttribute.LED_INFO.name] & (word != 0))
                | (chosen[SmaAttribute.SL_TO_VL_MAPPING_TABLE.name] & (word >= SL_TO_VL_WORDS))
                | (chosen[SmaAttribute.PORT_INFO.name] & seen.m_key_hidden & (word <= m_key_words[-1]))
                | (chosen[SmaAttribute.NOTICE.name] & ~self.trap)
                | Cat(chosen[of_pma.name] for of_pma in PmaAttribute).any()
            )
        )

        parts: list[Value] = []

        def show(
            attribute: SmaAttribute | PmaAttribute, words: dict[int, Value], condition: Value | None = None
        ) -> None:
            of_word = Signal(WORD_BITS, name=f"{attribute.name}_seen".lower())
            with m.Switch(word):
                for number, value in sorted(words.items()):
                    with m.Case(number):
                        m.d.comb += of_word.eq(value)
            applies = chosen[attribute.name] if condition is None else chosen[attribute.name] & condition
            parts.append(Mux(applies, of_word, 0))

        guids: tuple[tuple[Value, tuple[tuple[SmaAttribute, Field], ...]], ...] = (
            (
                identity.node_guid,
                (
                    (SmaAttribute.NODE_INFO, NODE_INFO["system_image_guid"]),
                    (SmaAttribute.NODE_INFO, NODE_INFO["node_guid"]),
                ),
            ),
            (
                identity.port_guid,
                ((SmaAttribute.NODE_INFO, NODE_INFO["port_guid"]), (SmaAttribute.GUID_INFO, GUID_INFO.field(0))),
            ),
        )
        for guid, places in guids:
            for half in range(2):
                here = Cat(chosen[of.name] & (word == list(masks(field))[half]) for of, field in places).any()
                parts.append(Mux(here, guid.word_select(1 - half, WORD_BITS), 0))
        show(SmaAttribute.NODE_INFO, fields_in_words({NODE_INFO["local_port_num"]: seen.local_port}))
        description = {
            number: identity.description.word_select(BLOCK_WORDS - 1 - number, WORD_BITS)
            for number in range(BLOCK_WORDS)
        }
        show(SmaAttribute.NODE_DESCRIPTION, description)

        of_every_port: dict[Field, Value] = {PORT_INFO["local_port_num"]: seen.local_port}
        of_node = {name: seen[name] for name in ("m_key_protect_bits", "m_key_violations", "client_reregister")}
        physical_state_bits = PORT_INFO["port_physical_state"].width
        of_link: dict[str, Value] = {
            "link_width_active": seen.read[: PORT_INFO["link_width_active"].width],
            "port_state": seen.read[physical_state_bits:][: PORT_INFO["port_state"].width],
            "port_physical_state": seen.read[:physical_state_bits],
        }
        at_node, on_link = (self.at_port_0, ~self.at_port_0) if self._is_switch else (Const(1, 1), Const(1, 1))
        port_info = {
            **of_every_port,
            **{PORT_INFO[name]: Mux(at_node, value, 0) for name, value in of_node.items()},
            **{PORT_INFO[name]: Mux(on_link, value, 0) for name, value in of_link.items()},
        }
        if not self._is_switch:
            port_info[PORT_INFO["capability_mask"]] = Mux(seen.is_sm, CapabilityMask.IS_SM, 0)
        show(SmaAttribute.PORT_INFO, fields_in_words(port_info))
        if self._is_switch:
            change = {SWITCH_INFO["port_state_change"]: seen.port_state_change}
            show(SmaAttribute.SWITCH_INFO, fields_in_words(change))
        for trap, words in enumerate(notice_words(self._is_switch, seen.lid, seen.is_sm)):
            show(SmaAttribute.NOTICE, words, self.trap == trap)

        class_port_info = CLASS_PORT_INFO.pack(capability_mask=PMA_CAPABILITIES, resp_time_value=PMA_RESP_TIME)
        show(PmaAttribute.CLASS_PORT_INFO, constant_words(class_port_info[:SMP_DATA_BYTES]))
        show(
            PmaAttribute.PORT_SAMPLES_CONTROL,
            fields_in_words({PORT_SAMPLES_CONTROL["tick"]: seen.read[: PORT_SAMPLES_CONTROL["tick"].width]}),
        )
        counted = Signal()
        m.d.sync += counted.eq(
            Cat(
                chosen[of_pma.name] & Cat(word == number for number in words).any()
                for of_pma, words in COUNTER_WORDS.items()
            ).any()
        )

        most = Signal(WORD_BITS)
        m.d.sync += [most.eq(Mux(shown, self.kept, 0) | any_of(parts)), self.bytes.eq(WHOLE)]
        m.d.comb += self.answer.eq(most | Mux(counted, seen.read, 0))
        for of_pma, of_request in AS_IT_CAME.items():
            for number, left in of_request.items():
                with m.If(chosen[of_pma.name] & (word == number)):
                    m.d.sync += self.bytes.eq(WHOLE & ~left)
        return m
