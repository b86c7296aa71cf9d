"""How inputs are connected to matcher and crossbar, in a switch and in an adapter."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module

from rtl.crossing.crossbar import Crossbar
from rtl.crossing.matcher import Matcher
from rtl.crossing.store import PacketStore
from rtl.switch.input import Input

__all__ = ["connect_inputs"]


def connect_inputs(m: Module, inputs: Sequence[Input | PacketStore], matcher: Matcher, crossbar: Crossbar) -> None:
    """Grants to the inputs, all but requests from them to the matcher, and their readers' rows to the crossbar."""
    m.d.comb += matcher.inputs_available.eq(Cat(side.available for side in inputs))
    source = 0
    for number, side in enumerate(inputs):
        m.d.comb += [
            side.grant_output.eq(matcher.output_of[number]),
            side.grant_slots.eq(matcher.slot_of),
            side.granted.eq(matcher.matched[number]),
        ]
        for to_output, slot, row in zip(side.to_output, side.slots, side.rows, strict=True):
            m.d.comb += [
                crossbar.to_output[source].eq(to_output),
                crossbar.slots[source].eq(slot),
                crossbar.rows[source].eq(row),
            ]
            source += 1
