"""Which attribute an SMP names, whether it may, and where that is kept (docs/management.md, section 4.1)."""

from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute_memory import BLOCK_WORDS, AttributeMap
from rtl.rotation import any_of
from rtl.widths import PORT_BITS
from wire.forwarding_tables import BLOCK_MODIFIER, MFT_MODIFIER
from wire.layout import Layout
from wire.mad import MadMethod, MadStatus
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO_MODIFIER
from wire.port_tables import P_KEY_TABLE_MODIFIER, SL_TO_VL_MODIFIER, VL_ARBITRATION_MODIFIER, VLArbitrationBlock
from wire.sma import PORT_MODIFIER, SMA_ATTRIBUTES, SmaAttribute

__all__ = ["ANSWERED", "AttributeDecode", "Chosen", "Target"]

ANSWERED: Final = (
    SmaAttribute.NODE_DESCRIPTION,
    SmaAttribute.NODE_INFO,
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.GUID_INFO,
    SmaAttribute.PORT_INFO,
    SmaAttribute.P_KEY_TABLE,
    SmaAttribute.SL_TO_VL_MAPPING_TABLE,
    SmaAttribute.VL_ARBITRATION_TABLE,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
    SmaAttribute.VENDOR_DIAG,
    SmaAttribute.LED_INFO,
)
"""The attributes of a switch."""

_OF_SWITCHES: Final = (
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
)

Chosen = data.StructLayout({attribute.name: 1 for attribute in (*ANSWERED, SmaAttribute.NOTICE)})
"""One attribute, one-hot. NOTICE is a trap's."""

Target = data.StructLayout({"port": PORT_BITS, "in_port": PORT_BITS, "block": 16})
"""What the modifier names: a port, or the output of a pair of ports, the input of the pair, a block of LIDs."""


def _fields(modifier: Value, layout: Layout) -> Mapping[str, Value]:
    width = 8 * layout.size_bytes
    return {field.name: modifier[width - field.end_bits : width - field.offset_bits] for field in layout.fields}


def _times(value: Value, factor: int) -> Value:
    """A product with a small constant."""
    terms = [value << bit for bit in range(factor.bit_length()) if factor >> bit & 1]
    return reduce(add, terms)


class AttributeDecode(wiring.Component):
    """Decodes attribute and modifier, in stages that no input hurries.

    Members:
        attribute, modifier, is_set, version_known: the SMP's.
        trap: the attribute is a trap's Notice instead.
        chosen: the attribute, from the next cycle on.
        target: what the modifier names, from the cycle after that on.
        status: the answer's if no field is refused, from three cycles after the inputs on.
        base: the attribute's first word in the memory, from five cycles after them on.
    """

    def __init__(self, parameters: NodeParameters, attributes: AttributeMap) -> None:
        self._parameters = parameters
        self._attributes = attributes
        super().__init__(
            {
                "attribute": In(16),
                "modifier": In(32),
                "is_set": In(1),
                "version_known": In(1),
                "trap": In(1),
                "chosen": Out(Chosen),
                "target": Out(Target),
                "status": Out(8),
                "base": Out(attributes.address_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Which one, what of it, then the status and the address."""
        m = Module()
        is_switch = isinstance(self._parameters, SwitchParameters)
        answered = [attribute for attribute in ANSWERED if is_switch or attribute not in _OF_SWITCHES]
        chosen = self.chosen
        for attribute in answered:
            m.d.sync += chosen[attribute.name].eq(~self.trap & (self.attribute == attribute))
        m.d.sync += chosen[SmaAttribute.NOTICE.name].eq(self.trap)

        # Modifiers.
        if isinstance(self._parameters, SwitchParameters):
            allowed = self._allowed_in_switch(self._parameters.ports)
            self._target_in_switch(m)
        else:
            allowed = self._allowed_in_adapter()
        no_modifier = self.modifier == 0
        allowed_now = {attribute: Signal(name=f"{attribute.name}_allowed".lower()) for attribute in answered}
        for attribute, signal in allowed_now.items():
            m.d.sync += signal.eq(allowed.get(attribute, no_modifier))
        known = Signal()
        settable = Signal()
        named = Signal()
        m.d.sync += [
            known.eq(Cat(chosen[attribute.name] for attribute in answered).any()),
            settable.eq(
                Cat(
                    chosen[attribute.name]
                    for attribute in answered
                    if MadMethod.SET in SMA_ATTRIBUTES[attribute].methods
                ).any()
            ),
            named.eq(Cat(chosen[attribute.name] & allowed_now[attribute] for attribute in answered).any()),
        ]
        with m.If(~self.version_known):
            m.d.sync += self.status.eq(MadStatus.BAD_VERSION)
        with m.Elif(~known | (self.is_set & ~settable)):
            m.d.sync += self.status.eq(MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
        with m.Elif(~named):
            m.d.sync += self.status.eq(MadStatus.INVALID_ATTRIBUTE_VALUE)
        with m.Else():
            m.d.sync += self.status.eq(MadStatus.OK)

        # The address: where the attribute begins, and how far in it its part is.
        begin = Signal.like(self.base)
        offset = Signal.like(self.base)
        bases = self._attributes.base
        offsets = self._offsets(m)
        m.d.sync += [
            begin.eq(any_of(Mux(chosen[attribute.name], base, 0) for attribute, base in bases.items())),
            offset.eq(any_of(Mux(chosen[attribute.name], value, 0) for attribute, value in offsets.items())),
            self.base.eq(begin + offset),
        ]
        return m

    def _allowed_in_switch(self, ports: int) -> dict[SmaAttribute, Value]:
        modifier, attributes = self.modifier, self._attributes
        port_info = _fields(modifier, PORT_INFO_MODIFIER)
        p_key = _fields(modifier, P_KEY_TABLE_MODIFIER)
        pair = _fields(modifier, SL_TO_VL_MODIFIER)
        arbitration = _fields(modifier, VL_ARBITRATION_MODIFIER)
        port = _fields(modifier, PORT_MODIFIER)["port"]
        lft_block = _fields(modifier, BLOCK_MODIFIER)["block"]
        mft = _fields(modifier, MFT_MODIFIER)
        return {
            SmaAttribute.PORT_INFO: port_info["port"] <= ports,
            SmaAttribute.P_KEY_TABLE: (p_key["port"] <= ports) & (p_key["block"] == 0),
            SmaAttribute.SL_TO_VL_MAPPING_TABLE: (
                (modifier[16:] == 0) & (pair["input_port"] <= ports) & (pair["output_port"] <= ports)
            ),
            SmaAttribute.VL_ARBITRATION_TABLE: (
                self._half_of_a_list(arbitration["block"]) & (arbitration["port"] != 0) & (arbitration["port"] <= ports)
            ),
            SmaAttribute.LINEAR_FORWARDING_TABLE: lft_block < attributes.lft_blocks,
            SmaAttribute.MULTICAST_FORWARDING_TABLE: (
                (mft["block"] < attributes.mft_blocks) & (mft["position"] < attributes.mft_positions)
            ),
            SmaAttribute.LED_INFO: (port != 0) & (port <= ports),
        }

    def _allowed_in_adapter(self) -> dict[SmaAttribute, Value]:
        modifier = self.modifier
        every = Value.cast(1)
        return {
            SmaAttribute.PORT_INFO: _fields(modifier, PORT_INFO_MODIFIER)["port"] <= 1,
            SmaAttribute.P_KEY_TABLE: _fields(modifier, P_KEY_TABLE_MODIFIER)["block"] == 0,
            SmaAttribute.SL_TO_VL_MAPPING_TABLE: every,
            SmaAttribute.VL_ARBITRATION_TABLE: self._half_of_a_list(
                _fields(modifier, VL_ARBITRATION_MODIFIER)["block"]
            ),
            SmaAttribute.LED_INFO: _fields(modifier, PORT_MODIFIER)["port"] <= 1,
        }

    @staticmethod
    def _half_of_a_list(block: Value) -> Value:
        return (block == VLArbitrationBlock.LOW_0_31) | (block == VLArbitrationBlock.HIGH_0_31)

    def _target_in_switch(self, m: Module) -> None:
        """The parts of the modifier that an allowed one can have."""
        modifier, chosen = self.modifier, self.chosen
        pair = _fields(modifier, SL_TO_VL_MODIFIER)
        of_p_key = _fields(modifier, P_KEY_TABLE_MODIFIER)["port"]
        of_mft = _fields(modifier, MFT_MODIFIER)["block"]
        of_lft = _fields(modifier, BLOCK_MODIFIER)["block"]
        m.d.sync += [
            self.target.port.eq(Mux(chosen[SmaAttribute.P_KEY_TABLE.name], of_p_key, pair["output_port"])),
            self.target.in_port.eq(pair["input_port"]),
            self.target.block.eq(Mux(chosen[SmaAttribute.MULTICAST_FORWARDING_TABLE.name], of_mft, of_lft)),
        ]

    def _offsets(self, m: Module) -> dict[SmaAttribute, Value]:
        """Words between the beginning of an attribute and the part that the modifier names."""
        target = self.target
        high = _fields(self.modifier, VL_ARBITRATION_MODIFIER)["block"] == VLArbitrationBlock.HIGH_0_31
        blocks: dict[SmaAttribute, Value] = {
            SmaAttribute.VL_ARBITRATION_TABLE: Cat(high, target.port),
        }
        offsets: dict[SmaAttribute, Value] = {}
        if isinstance(self._parameters, SwitchParameters):
            ports, positions = self._parameters.ports, self._attributes.mft_positions
            pair = Signal(range((ports + 1) ** 2))
            block = Signal(range(self._attributes.mft_blocks * positions))
            m.d.sync += [
                pair.eq(_times(target.in_port, ports + 1) + target.port),
                block.eq(_times(target.block, positions) + _fields(self.modifier, MFT_MODIFIER)["position"]),
            ]
            blocks |= {
                SmaAttribute.PORT_INFO: target.port,
                SmaAttribute.P_KEY_TABLE: target.port,
                SmaAttribute.LINEAR_FORWARDING_TABLE: target.block,
                SmaAttribute.MULTICAST_FORWARDING_TABLE: block,
            }
            offsets = {SmaAttribute.SL_TO_VL_MAPPING_TABLE: Cat(Const(0, 1), pair), SmaAttribute.LED_INFO: target.port}
        shift = (BLOCK_WORDS - 1).bit_length()
        return offsets | {attribute: value << shift for attribute, value in blocks.items()}
