"""Which attribute a MAD names, whether it may, and where that is kept (docs/management.md, sections 4.1 and 6)."""

from functools import reduce
from operator import add
from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.management.attribute import ANSWERED, Attribute
from rtl.management.attribute_memory import BLOCK_WORDS, AttributeMap
from rtl.management.pma import OF_PORTS
from rtl.management.task import Task
from rtl.management.windows import Window
from rtl.rotation import any_of
from rtl.widths import PORT_BITS
from wire.forwarding_tables import BLOCK_MODIFIER, MFT_MODIFIER
from wire.layout import Layout
from wire.mad import MadMethod, MadStatus
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import ALL_PORTS, PMA_ATTRIBUTES, PmaAttribute
from wire.port_info import PORT_INFO_MODIFIER
from wire.port_tables import P_KEY_TABLE_MODIFIER, SL_TO_VL_MODIFIER, VL_ARBITRATION_MODIFIER, VLArbitrationBlock
from wire.sma import PORT_MODIFIER, SMA_ATTRIBUTES, SmaAttribute

__all__ = ["AttributeDecode"]

_OF_SWITCHES: Final = (
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
)
_HALVES: Final = (VLArbitrationBlock.LOW_0_31, VLArbitrationBlock.HIGH_0_31)


def _times(value: Value, factor: int) -> Value:
    """A product with a small constant."""
    terms = [value << bit for bit in range(factor.bit_length()) if factor >> bit & 1]
    return reduce(add, terms)


class AttributeDecode(wiring.Component):
    """Decodes attribute and modifier, in stages that no input hurries.

    Members:
        task: the MAD's, or a trap's. `lap`: which port is accessed, if all are asked about.
        before_data (switch): the step is before the data's slots.
        output_port (switch): by which port a PMA's or a CC answer leaves.
        window (switch): of a CC request, see `Windows`.
        attribute: `chosen` from the cycle after the inputs on, the target's parts from the next two on, `status` from
            three after them on.
        base: the attribute's first word in the memory, from five cycles after them on. For a PMA request it is the
            first of the SLtoVLMappingTable by which the answer leaves, from two cycles after `output_port` on; for a CC
            request, and before its data for congestion control's trap, the one with its SL.
    """

    def __init__(self, parameters: NodeParameters, attributes: AttributeMap) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        self._ports = parameters.ports if isinstance(parameters, SwitchParameters) else 1
        self._attributes = attributes
        super().__init__(
            {
                "task": In(Task),
                "lap": In(PORT_BITS),
                "output_port": In(PORT_BITS),
                "attribute": Out(Attribute),
                "base": Out(attributes.address_bits),
                **({"window": In(Window), "before_data": In(1)} if self._is_switch else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Which one, what of it, then the status and the address."""
        m = Module()
        task, attribute = self.task, self.attribute
        of_sma = [kind for kind in ANSWERED if self._is_switch or kind not in _OF_SWITCHES]
        chosen, attribute_id = attribute.chosen, task.head.attribute_id
        for kind in of_sma:
            m.d.sync += chosen[kind.name].eq(~task.trap & ~task.gmp & (attribute_id == kind))
        for of_pma in PmaAttribute:
            of_class = task.gmp & ~task.congestion
            m.d.sync += chosen[of_pma.name].eq(~task.trap & of_class & (attribute_id == of_pma))
        m.d.sync += [
            chosen[SmaAttribute.NOTICE.name].eq(task.trap),
            attribute.target.at_port_0.eq(attribute.target.port == 0),
        ]
        if self._is_switch:
            self._target_in_switch(m)
        fine = self._judge(m, of_sma)
        m.d.comb += [
            attribute.answering.eq(task.answers & fine),
            attribute.setting.eq(attribute.answering & task.is_set),
        ]

        # The address: where the attribute begins, and how far in it its part is.
        begin = Signal.like(self.base, reset_less=True)
        offset = Signal.like(self.base, reset_less=True)
        offsets = self._offsets(m)
        used = {kind: Value.cast(chosen[kind.name]) for kind in self._attributes.base}
        by_table = self._leaves_by_table()
        used[SmaAttribute.SL_TO_VL_MAPPING_TABLE] |= by_table
        used[SmaAttribute.NOTICE] &= ~by_table
        m.d.sync += [
            begin.eq(any_of(Mux(used[kind], base, 0) for kind, base in self._attributes.base.items())),
            offset.eq(any_of(Mux(condition, value, 0) for condition, value in offsets)),
            self.base.eq(begin + offset),
        ]
        return m

    def _leaves_by_table(self) -> Value:
        """The word is wanted with the VL by which a GMP leaves."""
        task = self.task
        return task.gmp | (task.gmp_trap & self.before_data) if self._is_switch else Value.cast(task.gmp)

    def _judge(self, m: Module, of_sma: list[SmaAttribute]) -> Signal:
        """Modifier and PortSelect, then the status, the first that applies. Returns whether it is none."""
        head, chosen, status = self.task.head, self.attribute.chosen, self.attribute.status
        no_modifier = head.attribute_modifier == 0
        is_port = self._is_port(head.port_select)
        one_port = no_modifier & (is_port | (head.port_select == ALL_PORTS))
        allowed = self._allowed()
        allowed_by_name = {kind.name: allowed.get(kind, no_modifier) for kind in of_sma}
        allowed_by_name |= {of_pma.name: one_port if of_pma in OF_PORTS else no_modifier for of_pma in PmaAttribute}
        methods = {kind.name: SMA_ATTRIBUTES[kind].methods for kind in of_sma}
        methods |= {of_pma.name: PMA_ATTRIBUTES[of_pma].methods for of_pma in PmaAttribute}
        allowed_now = {name: Signal(name=f"{name}_allowed".lower()) for name in allowed_by_name}
        for name, signal in allowed_now.items():
            m.d.sync += signal.eq(allowed_by_name[name])
        known, settable, named = Signal(), Signal(), Signal(reset_less=True)
        judged = {"known": known, "settable": settable, "named": named}
        m.d.sync += [
            known.eq(Cat(chosen[name] for name in methods).any()),
            settable.eq(Cat(chosen[name] for name, of_it in methods.items() if MadMethod.SET in of_it).any()),
            named.eq(Cat(chosen[name] & signal for name, signal in allowed_now.items()).any()),
        ]
        if self._is_switch:
            with m.If(self.task.congestion):
                m.d.sync += [signal.eq(self.window[name]) for name, signal in judged.items()]
        fine = Signal()
        m.d.sync += fine.eq(0)
        with m.If(~head.version_known):
            m.d.sync += status.eq(MadStatus.BAD_VERSION)
        with m.Elif(~known | (self.task.is_set & ~settable)):
            m.d.sync += status.eq(MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
        with m.Elif(~named):
            m.d.sync += status.eq(MadStatus.INVALID_ATTRIBUTE_VALUE)
        with m.Else():
            m.d.sync += [status.eq(MadStatus.OK), fine.eq(1)]
        return fine

    def _named(self, modifier: Layout, name: str) -> Value:
        """A field of the MAD's modifier."""
        end, field = 8 * modifier.size_bytes, modifier[name]
        return self.task.head.attribute_modifier[end - field.end_bits : end - field.offset_bits]

    def _is_port(self, number: Value) -> Value:
        """Whether there is an external port of this number: in an adapter the one that the agent is behind."""
        return (number != 0) & below(number, self._ports + 1) if self._is_switch else number == self.task.head.arrival

    def _allowed(self) -> dict[SmaAttribute, Value]:
        """The modifiers of attributes that have one."""
        named, ports, attributes = self._named, self._ports, self._attributes
        of_port_info = named(PORT_INFO_MODIFIER, "port")
        port, block = named(PORT_MODIFIER, "port"), named(VL_ARBITRATION_MODIFIER, "block")
        allowed = {
            SmaAttribute.PORT_INFO: (of_port_info == 0) | self._is_port(of_port_info),
            SmaAttribute.P_KEY_TABLE: named(P_KEY_TABLE_MODIFIER, "block") == 0,
            SmaAttribute.SL_TO_VL_MAPPING_TABLE: Value.cast(1),
            SmaAttribute.VL_ARBITRATION_TABLE: Cat(block == half for half in _HALVES).any(),
            SmaAttribute.LED_INFO: (port == 0) | self._is_port(port),
        }
        if self._is_switch:
            inputs, outputs = (named(SL_TO_VL_MODIFIER, name) for name in ("input_port", "output_port"))
            of_list = named(VL_ARBITRATION_MODIFIER, "port")
            mft_block, mft_position = (named(MFT_MODIFIER, name) for name in ("block", "position"))
            allowed[SmaAttribute.P_KEY_TABLE] &= below(named(P_KEY_TABLE_MODIFIER, "port"), ports + 1)
            allowed[SmaAttribute.VL_ARBITRATION_TABLE] &= self._is_port(of_list)
            allowed[SmaAttribute.LED_INFO] &= port != 0
            allowed |= {
                SmaAttribute.SL_TO_VL_MAPPING_TABLE: (
                    (self.task.head.attribute_modifier[16:] == 0) & below(inputs, ports + 1) & below(outputs, ports + 1)
                ),
                SmaAttribute.LINEAR_FORWARDING_TABLE: below(named(BLOCK_MODIFIER, "block"), attributes.lft_blocks),
                SmaAttribute.MULTICAST_FORWARDING_TABLE: (
                    below(mft_block, attributes.mft_blocks) & below(mft_position, attributes.mft_positions)
                ),
            }
        return allowed

    def _target_in_switch(self, m: Module) -> None:
        """PortSelect, or the parts of the modifier that an allowed one can have."""
        named, chosen, target = self._named, self.attribute.chosen, self.attribute.target
        of_sma = Mux(
            chosen[SmaAttribute.P_KEY_TABLE.name],
            named(P_KEY_TABLE_MODIFIER, "port"),
            named(SL_TO_VL_MODIFIER, "output_port"),
        )
        asked = self.task.head.port_select
        of_pma = Mux(asked == ALL_PORTS, self.lap, asked)
        of_mft, of_lft = named(MFT_MODIFIER, "block"), named(BLOCK_MODIFIER, "block")
        m.d.sync += [
            target.port.eq(Mux(self.task.gmp, of_pma, of_sma)),
            target.in_port.eq(named(SL_TO_VL_MODIFIER, "input_port")),
            target.block.eq(Mux(chosen[SmaAttribute.MULTICAST_FORWARDING_TABLE.name], of_mft, of_lft)),
        ]

    def _offsets(self, m: Module) -> list[tuple[Value, Value]]:
        """Words between the beginning of an attribute and the part that is used, each with when it is."""
        target, chosen = self.attribute.target, self.attribute.chosen
        high = self._named(VL_ARBITRATION_MODIFIER, "block") == VLArbitrationBlock.HIGH_0_31
        blocks: dict[SmaAttribute, Value] = {SmaAttribute.VL_ARBITRATION_TABLE: Cat(high, target.port)}
        offsets: list[tuple[Value, Value]] = []
        if self._is_switch:
            ports, positions = self._ports, self._attributes.mft_positions
            pair = Signal(range((ports + 1) ** 2), reset_less=True)
            block = Signal(range(self._attributes.mft_blocks * positions), reset_less=True)
            m.d.sync += [
                pair.eq(_times(target.in_port, ports + 1) + target.port),
                block.eq(_times(target.block, positions) + self._named(MFT_MODIFIER, "position")),
            ]
            blocks |= {
                SmaAttribute.PORT_INFO: target.port,
                SmaAttribute.P_KEY_TABLE: target.port,
                SmaAttribute.LINEAR_FORWARDING_TABLE: target.block,
                SmaAttribute.MULTICAST_FORWARDING_TABLE: block,
            }
            # The tables of input 0 are the first.
            with_sl = (self.task.congestion | self.task.gmp_trap) & self.task.sl[-1]
            offsets = [
                (chosen[SmaAttribute.SL_TO_VL_MAPPING_TABLE.name], Cat(Const(0, 1), pair)),
                (self._leaves_by_table(), Cat(with_sl, self.output_port)),
                (self.task.gmp_trap & ~self.before_data, Const(BLOCK_WORDS)),
                (chosen[SmaAttribute.LED_INFO.name], target.port),
            ]
        shift = (BLOCK_WORDS - 1).bit_length()
        return offsets + [(chosen[attribute.name], value << shift) for attribute, value in blocks.items()]
