"""What the queues of an input have in common, whatever their order (docs/pipeline.md, section 4)."""

from amaranth.hdl import Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out, connect

from rtl.crossing.copies import CopyQueues
from rtl.crossing.queueing import QueueingSignature
from rtl.crossing.queues import PacketQueues
from rtl.crossing.successors import Successors, packet_layout

__all__ = ["InputQueues"]


class InputQueues(wiring.Component):
    """The queues of one input, whatever their order; see `QueueingSignature`.

    Args:
        block_bits, blocks: of the input's buffer: bits of a block's number, and how many there are.
        outputs, credited, vls, need_bits: see `HeadsSignature`.
        one_each: there is never more than one packet of a data VL, and none is oversize.
        multicast: packets may have several copies.
    """

    def __init__(
        self,
        block_bits: int,
        blocks: int,
        outputs: int,
        credited: int,
        vls: int,
        need_bits: int,
        *,
        one_each: bool = False,
        multicast: bool = False,
    ) -> None:
        self.block_bits = block_bits
        self.blocks = blocks
        self.outputs = outputs
        self.credited = credited
        self.vls = vls
        self.need_bits = need_bits
        self.one_each = one_each
        self.multicast = multicast
        signature = QueueingSignature(block_bits, outputs, credited, vls, need_bits, multicast=multicast)
        super().__init__({"queueing": Out(signature)})

    def _packet_queues(self, m: Module, count: int, key: data.StructLayout | None, queue: Value) -> PacketQueues:
        """So many queues with this key. A packet joins QUEUE, its key being what the queues keep of it."""
        m.submodules.queues = queues = PacketQueues(count, packet_layout(self.block_bits, key))
        m.d.comb += [
            queues.ended.eq(self.queueing.ended),
            queues.join_queue.eq(queue),
            queues.join_packet.first.eq(self.queueing.first),
        ]
        for name in queues.key_fields:
            m.d.comb += queues.join_packet.key[name].eq(self.queueing.packet[name])
        return queues

    def _copy_queues(self, m: Module, count: int) -> CopyQueues:
        """Queues for packets with copies, the data VLs' first. How they join is left open."""
        shape = (self.block_bits, self.outputs, self.credited, self.vls, self.need_bits)
        m.submodules.copy_queues = queues = CopyQueues(count, *shape)
        m.d.comb += [
            queues.ended.eq(self.queueing.ended),
            queues.queue.eq(self.queueing.packet.pool),
            queues.first.eq(self.queueing.first),
            queues.need.eq(self.queueing.packet.need),
            queues.facts.eq(self.queueing.heads.facts),
            queues.slots.eq(self.queueing.heads.slots_offered),
        ]
        return queues

    def _link(self, m: Module, *kinds: PacketQueues | CopyQueues) -> None:
        """These are all queues of the input; if there are two kinds, the second is of packets with copies."""
        m.submodules.successors = successors = Successors(self.blocks, [kind.packet for kind in kinds])
        for place, kind in zip(successors.kinds, kinds, strict=True):
            connect(m, place, kind.link)
        m.d.comb += successors.taken.eq(self.queueing.taken)
        if len(kinds) > 1:
            m.d.comb += successors.kind.eq(self.queueing.has_copies)
