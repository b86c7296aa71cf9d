"""Virtual output queues: one queue for each (output, slot), so no packet waits for another output."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data

from rtl.crossing.eligibility import data_eligible
from rtl.crossing.queues import InputQueues
from rtl.rotation import any_of
from rtl.widths import NEED_BITS

__all__ = ["VirtualOutputQueues"]

_KEY = data.StructLayout({"need": NEED_BITS, "oversize": 1})


class VirtualOutputQueues(InputQueues):
    """One queue for each (output, slot), number output * slots + slot; no keys where a slot has one packet."""

    def elaborate(self, platform: object) -> Module:
        """Join, requests, grant."""
        m = Module()
        port, heads = self.queueing, self.queueing.heads
        slots = self.vls + 1
        joins = port.packet.output * slots + port.packet.slot
        queues = self._queues(m, self.outputs * slots, None if self.one_each else _KEY, joins)
        needs = self._one_each_needs(m) if self.one_each else []

        # What could go is known when its cycle begins, except for a head granted in the cycle before: its
        # request lasts a cycle longer, and its output is not available in that cycle.
        shown = Signal(self.outputs * slots)
        m.d.comb += shown.eq(queues.visible | queues.appears)
        for output in range(self.outputs):
            for slot in range(slots):
                queue = output * slots + slot
                goes = shown[queue]
                if output < self.credited:
                    facts = heads.facts[output]
                    swallowed = facts.swallows[slot]
                    if slot < self.vls:
                        if self.one_each:
                            need, oversize = needs[slot], Const(0)
                        else:
                            key = queues.following[queue]
                            need, oversize = key.need, key.oversize
                        goes &= ~facts.blocked & data_eligible(facts.room[slot], need, oversize)
                        swallowed |= oversize
                    goes &= ~(swallowed & queues.arriving[queue])
                m.d.sync += heads.requests[slot][output].eq(goes)
                m.d.comb += heads.visible[slot][output].eq(queues.visible[queue])

        m.d.comb += [
            queues.take.eq(
                Cat(heads.grant_output[o].replicate(slots) & heads.grant_slots[o] for o in range(self.outputs))
            ),
            port.granted.first.eq(queues.taken),
            port.granted.slot.eq(any_of(queues.taken_from[o * slots :][:slots] for o in range(self.outputs))),
        ]
        return m

    def _one_each_needs(self, m: Module) -> list[Signal]:
        """Blocks of the only packet of each data VL, from the cycle on in which it joins."""
        needs = []
        for vl in range(self.vls):
            need, before = Signal(NEED_BITS, name=f"need_{vl}"), Signal(NEED_BITS, name=f"need_{vl}_before")
            joins = self.queueing.join & (self.queueing.packet.slot == vl)
            m.d.comb += need.eq(Mux(joins, self.queueing.packet.need, before))
            m.d.sync += before.eq(need)
            needs.append(need)
        return needs
