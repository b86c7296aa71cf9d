"""P_KeyViolations and Q_KeyViolations of an adapter (docs/management.md, sections 4.2, 4.3 and 7)."""

from typing import Final

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute import Attribute, Word
from rtl.management.place import place
from rtl.management.task import SET_SLOT, SLOT_STEPS, Stage
from rtl.management.told_events import KEYS
from wire.parameters import NodeParameters
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute

__all__ = ["KEY_COUNTS", "KeyCounts", "KeyViolations"]

KEY_COUNTS: Final = ("p_key_violations", "q_key_violations")
"""PortInfo's fields, by the bits of `wire.stimulus.KeyViolation`."""

_CLEARED: Final = 1
"""The step of its word's slot in which a count is cleared."""

KeyCounts: Final = wiring.Signature({name: Out(PORT_INFO[name].width) for name in KEY_COUNTS})
"""Both counts, as visible."""


class KeyViolations(Stage):
    """Counts what the transport of the adapter's host finds.

    Members:
        found: one of each of these keys in this cycle.
        attribute, word: of a Set.
        counts: of packets with a wrong key.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        super().__init__(parameters, found=In(KEYS), attribute=In(Attribute), word=In(Word), counts=Out(KeyCounts))

    def elaborate(self, platform: object) -> Module:
        """Clear, count."""
        m = Module()
        sets = self.attribute.setting & self.attribute.chosen[SmaAttribute.PORT_INFO.name]
        for bit, name in enumerate(KEY_COUNTS):
            count, where = getattr(self.counts, name), place(PORT_INFO[name])
            at = self.steps.at(SLOT_STEPS * (SET_SLOT + where.word) + _CLEARED)
            left = Signal.like(count, name=f"left_{name}")
            m.d.comb += left.eq(Mux(at & sets & (where.of(self.word.request) == 0), 0, count))
            m.d.sync += count.eq(left + (self.found[bit] & ~left.all()))
        return m
