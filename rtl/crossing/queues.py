"""Queues of packets at one input (docs/pipeline.md, section 4).

A queue is a list through the memory `successor`: at a packet's first block it holds the packet behind it,
which is its own first block and its *key*, what decides about eligibility. The key of each queue's head is in
registers; a head's first block is in one of two small memories, one written when a packet joins an empty
queue, one when a head is followed by its successor, and a bit for each queue says which counts.
What is taken is known late in its cycle (docs/pipeline.md, section 7), so all that can wait for the next waits there:
its first block is read at once, from these memories, and its successor a cycle later, by a register of that.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import BLOCK_RAM, NO_COLLISION
from rtl.rotation import number_of

__all__ = ["PacketQueues", "packet_layout"]


def packet_layout(block_bits: int, key: data.StructLayout | None) -> data.StructLayout:
    """A packet in a queue: its first block, and its key, unless all are equal."""
    return data.StructLayout({"first": block_bits} | ({} if key is None else {"key": key}))


class PacketQueues(wiring.Component):
    """`count` first-in first-out queues; one packet may join and one head may be taken in a cycle.

    Members:
        join, join_queue, join_packet: a packet joins (cycle e).
        visible: bit q says that queue q has a visible head.
        keys: key of each visible head, if there are keys.
        appears: mask of queues that have a new visible head in the next cycle.
        following: what `keys` will be in the next cycle, likewise.
        ended: the end row of the packet that joined last is being stored, or was.
        arriving: mask of the queue whose last packet has not ended; from the cycle on in which it joins.
        take: one-hot, the queue whose head is taken in this cycle (g+1 = x_0, g the cycle of its grant).
        stays: mask of the queues whose head stays, though it is taken.
        taken: the first block of that head.
        taken_from: that queue, one-hot, in the cycle after. The head's key is among `keys` then, for the last time.
    """

    def __init__(self, count: int, blocks: int, packet: data.StructLayout) -> None:
        self.count = count
        self.blocks = blocks
        self.packet = packet
        self.key_fields: list[str] = []
        key_members = {}
        if "key" in dict(packet):
            key = packet["key"].shape
            self.key_fields = [name for name, _ in key]
            key_members = dict.fromkeys(("keys", "following"), Out(data.ArrayLayout(key, count)))
        super().__init__(
            {
                "join": In(1),
                "join_queue": In(range(max(2, count))),
                "join_packet": In(packet),
                "visible": Out(count),
                "appears": Out(count),
                "ended": In(1),
                "arriving": Out(count),
                "take": In(count),
                "stays": In(count),
                "taken": Out(packet["first"].shape),
                "taken_from": Out(count),
                **key_members,
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join, take, then two cycles more to fetch the successor."""
        m = Module()
        count = self.count
        visible = self.visible
        fetching = Signal(count)  # the head was taken, its successor is being fetched
        followed = Signal(count)  # the head came from the successor memory
        more = Signal(count)  # there are packets behind the head

        first_block, depth = self.packet["first"].shape, max(2, count)
        m.submodules.joined = joined = Memory(shape=first_block, depth=depth, init=[])
        m.submodules.fetched = fetched = Memory(shape=first_block, depth=depth, init=[])
        m.submodules.tails = tails = Memory(shape=first_block, depth=depth, init=[])
        # A word read while it is written belongs to no head: nothing joins behind one that was taken as the last.
        m.submodules.successor = successor = Memory(
            shape=self.packet, depth=self.blocks, init=[], attrs=NO_COLLISION | BLOCK_RAM
        )

        # Join: at the head of an empty queue, or behind its tail.
        join_mask = Signal(count)
        start_mask = Signal(count)
        unended = Signal(count)
        with m.If(self.join):
            m.d.comb += join_mask.eq(1 << self.join_queue)
        m.d.comb += self.arriving.eq(Mux(self.ended, 0, unended | join_mask))
        m.d.sync += unended.eq(self.arriving)
        m.d.comb += start_mask.eq(join_mask & ~visible & ~fetching)
        starts = start_mask.any()
        tail_behind = tails.read_port(domain="comb")
        tail_write = tails.write_port()
        joined_write = joined.write_port()
        successor_write = successor.write_port()
        m.d.comb += [
            tail_behind.addr.eq(self.join_queue),
            tail_write.addr.eq(self.join_queue),
            tail_write.data.eq(self.join_packet.first),
            tail_write.en.eq(self.join),
            successor_write.addr.eq(tail_behind.data),
            successor_write.data.eq(self.join_packet),
            successor_write.en.eq(self.join & ~starts),
        ]
        # A cycle later: nobody reads it before e+2.
        m.d.sync += [
            joined_write.addr.eq(self.join_queue),
            joined_write.data.eq(self.join_packet.first),
            joined_write.en.eq(starts),
        ]

        taken_queue = self._take(m, joined, fetched, followed)

        # Fetch: the successor is read at x_0+1, after a packet that joined at x_0 was written; it becomes
        # the head at the end of x_0+2.
        taken_before, taken_queue_before = Signal(first_block), Signal.like(taken_queue)
        load_mask = Signal(count)
        load_queue = Signal(range(depth))
        successor_read = successor.read_port()
        fetched_write = fetched.write_port()
        tail_loaded = tails.read_port(domain="comb")
        more_behind = Signal()
        m.d.sync += [
            taken_before.eq(self.taken),
            taken_queue_before.eq(taken_queue),
            load_mask.eq(self.taken_from & fetching),
            load_queue.eq(taken_queue_before),
        ]
        m.d.comb += [
            successor_read.addr.eq(taken_before),
            fetched_write.addr.eq(load_queue),
            fetched_write.data.eq(successor_read.data.first),
            fetched_write.en.eq(load_mask.any()),
            tail_loaded.addr.eq(load_queue),
            more_behind.eq(tail_loaded.data != successor_read.data.first),
        ]

        # Heads.
        leaves = self.take & ~self.stays
        m.d.comb += self.appears.eq(start_mask | load_mask)
        m.d.sync += [
            visible.eq((visible & ~leaves) | self.appears),
            fetching.eq((fetching & ~load_mask) | (leaves & (more | join_mask))),
            followed.eq((followed & ~start_mask) | load_mask),
            more.eq(
                (more & ~start_mask & ~load_mask)
                | (load_mask & more_behind.replicate(count))
                | (join_mask & ~start_mask)
            ),
        ]
        if self.key_fields:
            # The head of a queue that has none is the next to join.
            for queue in range(count):
                key = Mux(visible[queue], self.keys[queue].as_value(), self.join_packet.key.as_value())
                m.d.comb += self.following[queue].eq(Mux(load_mask[queue], successor_read.data.key.as_value(), key))
            m.d.sync += self.keys.eq(self.following)
        return m

    def _take(self, m: Module, joined: Memory, fetched: Memory, followed: Value) -> Signal:
        """The head taken, and the number of its queue."""
        taken_queue = Signal(range(max(2, self.count)))
        joined_read = joined.read_port(domain="comb")
        fetched_read = fetched.read_port(domain="comb")
        m.d.sync += self.taken_from.eq(self.take)
        m.d.comb += [
            taken_queue.eq(number_of(self.take)),
            joined_read.addr.eq(taken_queue),
            fetched_read.addr.eq(taken_queue),
            self.taken.eq(Mux((followed & self.take).any(), fetched_read.data, joined_read.data)),
        ]
        return taken_queue
