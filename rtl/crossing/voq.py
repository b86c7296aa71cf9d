"""Virtual output queues: one queue for each (output, slot), so no packet waits for another output."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data

from rtl.crossing.eligibility import data_eligible
from rtl.crossing.queues import InputQueues
from rtl.rotation import any_of
from rtl.widths import NEED_BITS

__all__ = ["VirtualOutputQueues"]

_KEY = data.StructLayout({"need": NEED_BITS, "oversize": 1})


class VirtualOutputQueues(InputQueues):
    """One queue for each (output, slot), number output * slots + slot; no keys where all packets need the same."""

    def elaborate(self, platform: object) -> Module:
        """Join, requests, grant."""
        m = Module()
        port, heads = self.queueing, self.queueing.heads
        slots = self.vls + 1
        joins = port.packet.output * slots + port.packet.slot
        queues = self._queues(m, self.outputs * slots, _KEY if self.need is None else None, joins)

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
                        if self.need is None:
                            key = queues.following[queue]
                            need, oversize = key.need, key.oversize
                        else:
                            need, oversize = Const(self.need, NEED_BITS), Const(0)
                        goes &= ~facts.blocked & data_eligible(facts.room[slot], need, oversize)
                        swallowed |= oversize
                    goes &= ~(swallowed & queues.arriving[queue])
                m.d.sync += heads.requests[slot][output].eq(goes)
            m.d.comb += heads.visible[output].eq(queues.visible[output * slots :][:slots].any())

        m.d.comb += [
            queues.take.eq(
                Cat(heads.grant_output[o].replicate(slots) & heads.grant_slots[o] for o in range(self.outputs))
            ),
            port.granted.first.eq(queues.taken),
            port.granted.slot.eq(any_of(queues.taken_from[o * slots :][:slots] for o in range(self.outputs))),
        ]
        return m
