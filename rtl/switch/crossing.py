"""How inputs are connected to matcher and crossbar, in a switch and in an adapter."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module

from rtl.management.agent_port import AgentPort
from rtl.switch.crossbar import Crossbar
from rtl.switch.input import Input
from rtl.switch.matcher import Matcher
from rtl.switch.store import PacketStore

__all__ = ["connect_agent", "connect_inputs"]


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


def connect_agent(m: Module, agent_port: AgentPort, store: PacketStore) -> None:
    """What the agent offers to the store of its input."""
    m.d.comb += [
        agent_port.free.eq(store.free),
        store.write.eq(agent_port.write),
        store.accept.eq(agent_port.accept),
        store.accept_slot.eq(agent_port.accept_slot),
        store.accept_need.eq(agent_port.accept_need),
        store.join.eq(agent_port.join),
        store.packet.eq(agent_port.packet),
    ]
