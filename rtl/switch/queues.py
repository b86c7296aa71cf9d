"""Queues of packets at one input (docs/pipeline.md, section 4).

A queue is a list through the memory `successor`: at a packet's first block it holds the description
of the packet behind it. Only what decides about eligibility, the *key* of each queue's head, is in
registers; the rest of a head is in two small memories, one written when a packet joins an empty
queue, one when a head is followed by its successor, and a bit for each queue says which counts.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.switch.rotation import number_of

__all__ = ["PacketQueues", "packet_layout"]


def packet_layout(block_bits: int, key: data.StructLayout) -> data.StructLayout:
    """A packet in a queue.

    Its first block, the pool it lies in (`pool`, the slot it came in on), its length in words (PktLen),
    and its key, which the matcher sees.
    """
    return data.StructLayout({"first": block_bits, "pool": 4, "words": 11, "key": key})


class PacketQueues(wiring.Component):
    """`count` first-in first-out queues; one packet may join and one head may be taken in a cycle.

    Members:
        join, join_queue, join_packet: a packet joins (cycle e).
        visible: bit q says that queue q has a visible head.
        keys: key of each visible head.
        take: one-hot, the queue whose head is granted in this cycle (g).
        taken: that head, in the same cycle.
    """

    def __init__(self, count: int, blocks: int, packet: data.StructLayout) -> None:
        self.count = count
        self.blocks = blocks
        self.packet = packet
        super().__init__(
            {
                "join": In(1),
                "join_queue": In(range(count)),
                "join_packet": In(packet),
                "visible": Out(count),
                "keys": Out(data.ArrayLayout(packet["key"].shape, count)),
                "take": In(count),
                "taken": Out(packet),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join, take, then two cycles to fetch the successor."""
        m = Module()
        count = self.count
        visible = self.visible
        fetching = Signal(count)  # the head was taken, its successor is on its way
        followed = Signal(count)  # the head came from the successor memory

        m.submodules.joined = joined = Memory(shape=self.packet, depth=count, init=[])
        m.submodules.fetched = fetched = Memory(shape=self.packet, depth=count, init=[])
        m.submodules.successor = successor = Memory(shape=self.packet, depth=self.blocks, init=[])
        m.submodules.tails = tails = Memory(shape=self.packet["first"].shape, depth=count, init=[])

        # Join: at the head of an empty queue, or behind its tail.
        join_mask = Signal(count)
        with m.If(self.join):
            m.d.comb += join_mask.eq(1 << self.join_queue)
        empty = Signal()
        m.d.comb += empty.eq(~(join_mask & (visible | fetching)).any())
        tail_behind = tails.read_port(domain="comb")
        tail_write = tails.write_port()
        joined_write = joined.write_port()
        successor_write = successor.write_port()
        m.d.comb += [
            tail_behind.addr.eq(self.join_queue),
            tail_write.addr.eq(self.join_queue),
            tail_write.data.eq(self.join_packet.first),
            tail_write.en.eq(self.join),
            joined_write.addr.eq(self.join_queue),
            joined_write.data.eq(self.join_packet),
            joined_write.en.eq(self.join & empty),
            successor_write.addr.eq(tail_behind.data),
            successor_write.data.eq(self.join_packet),
            successor_write.en.eq(self.join & ~empty),
        ]

        # Take, in cycle g.
        take_queue = Signal(range(count))
        m.d.comb += take_queue.eq(number_of(self.take))
        joined_read = joined.read_port(domain="comb")
        fetched_read = fetched.read_port(domain="comb")
        tail_taken = tails.read_port(domain="comb")
        more = Signal()
        m.d.comb += [
            joined_read.addr.eq(take_queue),
            fetched_read.addr.eq(take_queue),
            tail_taken.addr.eq(take_queue),
            self.taken.eq(Mux((followed & self.take).any(), fetched_read.data, joined_read.data)),
            more.eq((tail_taken.data != self.taken.first) | (join_mask & self.take).any()),
        ]

        # Fetch: the successor is read at g+1, after a packet that joined at g was written; it becomes
        # the head at the end of g+2.
        reading = Signal()
        loading = Signal()
        taken_first = Signal.like(self.taken.first)
        read_queue = Signal(range(count))
        load_queue = Signal(range(count))
        load_mask = Signal(count)
        successor_read = successor.read_port()
        fetched_write = fetched.write_port()
        m.d.sync += [
            reading.eq(self.take.any() & more),
            taken_first.eq(self.taken.first),
            read_queue.eq(take_queue),
            loading.eq(reading),
            load_queue.eq(read_queue),
        ]
        m.d.comb += [
            successor_read.addr.eq(taken_first),
            fetched_write.addr.eq(load_queue),
            fetched_write.data.eq(successor_read.data),
            fetched_write.en.eq(loading),
        ]
        with m.If(loading):
            m.d.comb += load_mask.eq(1 << load_queue)

        # Heads.
        start_mask = Signal(count)
        m.d.comb += start_mask.eq(Mux(empty, join_mask, 0))
        m.d.sync += [
            visible.eq((visible & ~self.take) | start_mask | load_mask),
            fetching.eq((fetching & ~load_mask) | Mux(more, self.take, 0)),
            followed.eq((followed & ~start_mask) | load_mask),
        ]
        for queue in range(count):
            with m.If(load_mask[queue]):
                m.d.sync += self.keys[queue].eq(successor_read.data.key)
            with m.Elif(start_mask[queue]):
                m.d.sync += self.keys[queue].eq(self.join_packet.key)
        return m
