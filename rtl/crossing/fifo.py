"""One queue for each input slot: the plain input-queued switch, with its head-of-line blocking."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data

from rtl.crossing.eligibility import data_eligible
from rtl.crossing.queues import InputQueues
from rtl.rotation import RotatingChoice, any_of, select
from rtl.widths import NEED_BITS, SLOT_BITS

__all__ = ["FifoQueues"]


class FifoQueues(InputQueues):
    """One queue for each slot of the input. Where a packet goes is in its key, and what it needs in any case."""

    def elaborate(self, platform: object) -> Module:
        """Join, requests, grant."""
        m = Module()
        port, heads = self.queueing, self.queueing.heads
        outputs, vls = self.outputs, self.vls
        slots = vls + 1
        key_layout = data.StructLayout({"need": NEED_BITS, "oversize": 1, "output": range(outputs), "slot": SLOT_BITS})
        queues = self._queues(m, slots, key_layout, port.packet.pool)

        # Whether a head could go is known when its cycle begins.
        able = Signal(slots)
        for queue in range(slots):
            key = queues.following[queue]
            facts = [heads.facts[output] for output in range(self.credited)]
            blocked = Array(of_output.blocked for of_output in facts)[key.output]
            room = Array(Array(of_output.room[vl] for vl in range(vls))[key.slot] for of_output in facts)[key.output]
            swallows = Array(of_output.swallows for of_output in facts)[key.output].bit_select(key.slot, 1)
            fit = data_eligible(room, key.need, key.oversize)
            always = key.output >= self.credited
            is_vl15 = key.slot == vls
            swallowed = swallows | (key.oversize & ~is_vl15)
            goes = (is_vl15 | (~blocked & fit)) & ~(swallowed & queues.arriving[queue])
            m.d.sync += able[queue].eq(always | goes)

        # Each queue's head: masks of its output and slot, and whether it could go.
        to_output = [Signal(outputs, name=f"to_output_{queue}") for queue in range(slots)]
        to_slot = [Signal(slots, name=f"to_slot_{queue}") for queue in range(slots)]
        ready = Signal(slots)
        m.d.comb += ready.eq(queues.visible & able)
        for queue in range(slots):
            with m.If(queues.visible[queue]):
                m.d.comb += [
                    to_output[queue].eq(1 << queues.keys[queue].output),
                    to_slot[queue].eq(1 << queues.keys[queue].slot),
                ]
        for slot in range(slots):
            heads_of_slot = [Mux(to_slot[queue][slot], to_output[queue], 0) for queue in range(slots)]
            m.d.comb += [
                heads.visible[slot].eq(any_of(heads_of_slot)),
                heads.requests[slot].eq(any_of(Mux(ready[queue], heads_of_slot[queue], 0) for queue in range(slots))),
            ]

        # Grant: of the queues with a head for it, each data VL's in turn.
        m.submodules.turn = turn = RotatingChoice(vls)
        grant_slot = select(heads.grant_output, [heads.grant_slots[output] for output in range(outputs)])
        fitting = Signal(slots)
        m.d.comb += [
            fitting.eq(
                Cat(
                    ready[queue] & (to_output[queue] & heads.grant_output).any() & (to_slot[queue] & grant_slot).any()
                    for queue in range(slots)
                )
            ),
            turn.requests.eq(fitting),
            turn.serve.eq(turn.requests.any()),
            turn.served.eq(turn.chosen),
            queues.take.eq(Cat(turn.chosen, fitting[vls])),
        ]
        m.d.comb += port.granted.first.eq(queues.taken)
        m.d.sync += port.granted.slot.eq(grant_slot)
        return m
