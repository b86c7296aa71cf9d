"""Virtual output queues: one queue for each (output, slot), so no packet waits for another output."""

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from rtl.switch.eligibility import data_eligible
from rtl.switch.queueing import QueueingSignature
from rtl.switch.queues import PacketQueues, packet_layout

__all__ = ["VirtualOutputQueues"]

_KEY = data.StructLayout({"need": 7, "oversize": 1})


class VirtualOutputQueues(wiring.Component):
    """One queue for each (output, slot); see `QueueingSignature`. Queue number: output * slots + slot."""

    def __init__(self, block_bits: int, blocks: int, outputs: int, vls: int) -> None:
        self.block_bits = block_bits
        self.blocks = blocks
        self.outputs = outputs
        self.vls = vls
        super().__init__({"queueing": Out(QueueingSignature(block_bits, outputs, vls))})

    def elaborate(self, platform: object) -> Module:
        """Join, requests, grant."""
        m = Module()
        port = self.queueing
        slots = self.vls + 1
        m.submodules.queues = queues = PacketQueues(
            self.outputs * slots, self.blocks, packet_layout(self.block_bits, _KEY)
        )

        packet = port.packet
        m.d.comb += [
            queues.join.eq(port.join),
            queues.join_queue.eq(packet.output * slots + packet.slot),
            queues.join_packet.first.eq(port.first),
            queues.join_packet.pool.eq(packet.pool),
            queues.join_packet.words.eq(packet.words),
            queues.join_packet.key.need.eq(packet.need),
            queues.join_packet.key.oversize.eq(packet.oversize),
        ]

        for output in range(self.outputs):
            facts = port.facts[output]
            visible = queues.visible[output * slots :][:slots]
            m.d.comb += port.heads[output].eq(visible.any())
            for vl in range(self.vls):
                key = queues.keys[output * slots + vl]
                fit = data_eligible(facts.swallow[vl], facts.credit[vl], key.need, key.oversize)
                m.d.comb += port.requests[vl][output].eq(visible[vl] & ~facts.blocked & fit)
            m.d.comb += port.requests[self.vls][output].eq(visible[self.vls] & ~facts.blocked)

        takes = [output & slot for output in port.grant_output for slot in port.grant_slot]
        m.d.comb += [
            queues.take.eq(Cat(takes)),
            port.granted.first.eq(queues.taken.first),
            port.granted.pool.eq(queues.taken.pool),
            port.granted.words.eq(queues.taken.words),
            port.granted.need.eq(queues.taken.key.need),
            port.granted.oversize.eq(queues.taken.key.oversize),
        ]
        return m
