"""What can change at any time, as an answer shows it (docs/management.md, sections 4.3 and 5)."""

from typing import Final

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute import AttributeSignature, WordSignature
from rtl.management.m_key import KeySignature
from rtl.management.node_state import NodeStateSignature
from rtl.management.place import place
from rtl.management.step import SET_SLOT, StepsSignature, first_step
from rtl.management.task import TaskSignature
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO

__all__ = ["Sampled"]

_CHANGE: Final = place(SWITCH_INFO["port_state_change"])
_CHANGE_CLEARED_STEP: Final = first_step(SET_SLOT + _CHANGE.word) + 2


class Sampled(wiring.Component):
    """Samples it in the first step of each slot.

    Members:
        steps, task: see `Work`, `Decision`.
        attribute, word: a Set of SwitchInfo clears PortStateChange.
        key, node_state: what is sampled.
        seen: how it was; a trap's IsSM in step 0.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        super().__init__(
            {
                "steps": In(StepsSignature()),
                "task": In(TaskSignature()),
                "attribute": In(AttributeSignature()),
                "word": In(WordSignature()),
                "key": In(KeySignature()),
                "node_state": In(NodeStateSignature(parameters)),
                "seen": Out(
                    data.StructLayout(
                        {
                            "m_key_protect_bits": PORT_INFO["m_key_protect_bits"].width,
                            "port_state_change": 1,
                            "is_sm": 1,
                        }
                    )
                ),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A register for each, and PortStateChange itself."""
        m = Module()
        steps, attribute, seen = self.steps, self.attribute, self.seen
        samples = steps.at_in_slot(0)
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
        return m
