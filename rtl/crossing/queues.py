"""Queues of packets at one input (docs/pipeline.md, section 4).

A queue is a list through the memory `successor`: at a packet's first block it holds the packet behind it,
which is its own first block and its *key*, what decides about eligibility. Of each queue's head both are in registers,
but where many queues' blocks are in LUT RAM (`first_blocks`).
What is taken is known late in its cycle (docs/pipeline.md, section 7), so all that can wait for the next waits there:
its successor is read a cycle later, by a register of its first block.
"""

from amaranth.hdl import Module, Mux, Signal
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
        heads: each visible head.
        starts: mask of the queue whose head the packet that joins is from the next cycle on, none or one.
        loads, successor: likewise for the packet that was behind a head that was taken; that packet.
        appears: mask of queues that have a new visible head in the next cycle, by either.
        appearing: the heads of those.
        following: what `heads` will be in the next cycle, if it is visible then.
        ended: the end row of the packet that joined last is being stored, or was.
        arriving: mask of the queue whose last packet has not ended; from the cycle on in which it joins.
        take: one-hot, the queue whose head is taken in this cycle (g+1 = x_0, g the cycle of its grant).
        stays: mask of the queues whose head stays, though it is taken.
        taken: the first block of that head. The head is among `heads` in the cycle after, for the last time.
    """

    def __init__(self, count: int, blocks: int, packet: data.StructLayout) -> None:
        self.count = count
        self.blocks = blocks
        self.packet = packet
        self.key_fields = [name for name, _ in packet["key"].shape] if "key" in dict(packet) else []
        super().__init__(
            {
                "join": In(1),
                "join_queue": In(range(max(2, count))),
                "join_packet": In(packet),
                "visible": Out(count),
                "starts": Out(count),
                "loads": Out(count),
                "successor": Out(packet),
                "appears": Out(count),
                "ended": In(1),
                "arriving": Out(count),
                "take": In(count),
                "stays": In(count),
                "taken": In(packet["first"].shape),
                **dict.fromkeys(("heads", "appearing", "following"), Out(data.ArrayLayout(packet, count))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join, take, then two cycles more to fetch the successor."""
        m = Module()
        count = self.count
        visible = self.visible
        fetches = Signal(count)  # the head was taken in the cycle before, and its successor is being fetched
        more = Signal(count)  # there are packets behind the head

        first_block, depth = self.packet["first"].shape, max(2, count)
        m.submodules.tails = tails = Memory(shape=first_block, depth=depth, init=[])
        # A word read while it is written belongs to no head: nothing joins behind one that was taken as the last.
        m.submodules.successor = successor = Memory(
            shape=self.packet, depth=self.blocks, init=[], attrs=NO_COLLISION | BLOCK_RAM
        )

        # Join: at the head of an empty queue, or behind its tail.
        join_mask = Signal(count)
        unended = Signal(count)
        with m.If(self.join):
            m.d.comb += join_mask.eq(1 << self.join_queue)
        m.d.comb += self.arriving.eq(Mux(self.ended, 0, unended | join_mask))
        m.d.sync += unended.eq(self.arriving)
        m.d.comb += self.starts.eq(join_mask & ~(visible | fetches | self.loads))
        starts = self.starts.any()
        tail_behind = tails.read_port(domain="comb")
        tail_write = tails.write_port()
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

        # Fetch: the successor is read at x_0+1, after a packet that joined at x_0 was written; it becomes
        # the head at the end of x_0+2.
        taken_before = Signal(first_block)
        load_queue = Signal(range(depth))
        successor_read = successor.read_port()
        tail_loaded = tails.read_port(domain="comb")
        more_behind = Signal()
        m.d.sync += [
            taken_before.eq(self.taken),
            self.loads.eq(fetches),
            load_queue.eq(number_of(fetches)),
        ]
        m.d.comb += [
            self.successor.eq(successor_read.data),
            successor_read.addr.eq(taken_before),
            tail_loaded.addr.eq(load_queue),
            more_behind.eq(tail_loaded.data != self.successor.first),
        ]

        # Heads.
        leaves = self.take & ~self.stays
        m.d.comb += self.appears.eq(self.starts | self.loads)
        m.d.sync += [
            visible.eq((visible & ~leaves) | self.appears),
            fetches.eq(leaves & (more | join_mask)),
            more.eq((more & ~self.loads) | (self.loads & more_behind.replicate(count)) | (join_mask & ~self.starts)),
        ]
        for queue in range(count):
            head, appearing = self.heads[queue], self.appearing[queue]
            m.d.comb += [
                appearing.eq(Mux(self.loads[queue], self.successor, self.join_packet)),
                self.following[queue].eq(Mux(self.appears[queue], appearing, head)),
            ]
            with m.If(self.appears[queue]):
                m.d.sync += head.eq(appearing)
        return m
