"""One queue for each input slot: the plain input-queued switch, with its head-of-line blocking."""

from amaranth.hdl import Cat, Module
from amaranth.lib.wiring import connect, flipped

from rtl.crossing.input_queues import InputQueues
from rtl.rotation import select

__all__ = ["FifoQueues"]


class FifoQueues(InputQueues):
    """One queue for each slot of the input. A packet that is no multicast packet has one copy."""

    def elaborate(self, platform: object) -> Module:
        """Join, requests, what is taken."""
        m = Module()
        port, heads, packet = self.queueing, self.queueing.heads, self.queueing.packet
        queues = self._copy_queues(m, self.vls + 1)
        self._link(m, queues)
        copies = queues.copies
        m.d.comb += [
            queues.join.eq(port.join),
            copies.to.eq(1 << packet.output),
            copies.oversize.eq(packet.oversize.replicate(self.credited)),
            heads.visible.eq(queues.visible),
            queues.going.eq(~0),
            queues.accepted.eq(port.accepted),
            port.oversize.eq(Cat((of & heads.slots_offered[o]).any() for o, of in enumerate(queues.oversize))),
            *(
                port.firsts[o].eq(select(select(slots, choices), [head.first for head in queues.heads]))
                for o, (slots, choices) in enumerate(zip(heads.slots_offered, queues.choices, strict=True))
            ),
            port.copy.eq(queues.copy),
        ]
        m.d.sync += [heads.requests.eq(queues.following), heads.starving.eq(queues.starving)]
        if self.vls > 1:
            m.d.comb += [copies.slots[output].eq(packet.slot) for output in range(self.credited)]
        if self.multicast:
            connect(m, queues.inspection, flipped(port.inspection))
            with m.If(port.has_copies):
                m.d.comb += copies.eq(port.copies)
        return m
