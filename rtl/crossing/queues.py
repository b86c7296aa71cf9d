"""Queues of packets at one input (docs/pipeline.md, section 4).

A queue is a list: the memory of all of an input's queues (`successors`) has which packet is behind which. A packet
there is its first block and its *key*, what decides about eligibility. Of each queue's head both are in registers,
but where many queues' blocks are in LUT RAM (`first_blocks`).
What is taken is known late in its cycle (docs/pipeline.md, section 7), so all that can wait for the next waits there.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.successors import SuccessorsSignature
from rtl.rotation import number_of

__all__ = ["PacketQueues"]


class PacketQueues(wiring.Component):
    """`count` first-in first-out queues; one packet may join and one head may be taken in a cycle.

    Members:
        join, join_queue, join_packet: a packet joins (cycle e).
        visible: bit q says that queue q has a visible head.
        heads: each visible head.
        starts: mask of the queue whose head the packet that joins is from the next cycle on, none or one.
        link: who is behind whom. `loads`: mask of the queue that has got what was behind a head that was taken, none or
            one. It is a visible head from the cycle after the next on (g+5).
        shows: mask of the queues that have a visible head in the next cycle, or whose head is taken in this.
        following: what `heads` will be in the next cycle, if it is visible then.
        ended: the end row of the packet that joined last is being stored, or was.
        arriving: mask of the queue whose last packet has not ended; a packet that joins in this cycle counts if it
            starts.
        take: one-hot, the queue whose head is taken in this cycle (g+1 = x_0, g the cycle of its grant). It is among
            `heads` in the cycle after, for the last time.
        stays: mask of the queues whose head stays, though it is taken.
    """

    def __init__(self, count: int, packet: data.StructLayout) -> None:
        self.count = count
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
                "link": Out(SuccessorsSignature(packet)),
                "shows": Out(count),
                "ended": In(1),
                "arriving": Out(count),
                "take": In(count),
                "stays": In(count),
                **dict.fromkeys(("heads", "following"), Out(data.ArrayLayout(packet, count))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join, take, then two cycles more to fetch the successor."""
        m = Module()
        count = self.count
        held = Signal(count)  # there is a head, visible now or from the next cycle on
        fetches = Signal(count)  # the head was taken in the cycle before, and its successor is being fetched
        more = Signal(count)  # there are packets behind the head

        first_block, depth = self.packet["first"].shape, max(2, count)
        m.submodules.tails = tails = Memory(shape=first_block, depth=depth, init=[])

        # Join: at the head of an empty queue, or behind its tail. Which of both is known early, that it joins late.
        named, empty, join_mask = Signal(count), Signal(count), Signal(count)
        unended = Signal(count)
        m.d.comb += [
            named.eq(1 << self.join_queue),
            empty.eq(named & ~(held | fetches | self.loads)),
            join_mask.eq(Mux(self.join, named, 0)),
        ]
        m.d.comb += [
            self.starts.eq(Mux(self.join, empty, 0)),
            self.shows.eq(held | self.starts),
            self.arriving.eq(Mux(self.ended, 0, unended | self.starts)),
        ]
        m.d.sync += unended.eq(Mux(self.ended, 0, unended | join_mask))
        tail_behind = tails.read_port(domain="comb")
        tail_write = tails.write_port()
        m.d.comb += [
            tail_behind.addr.eq(self.join_queue),
            tail_write.addr.eq(self.join_queue),
            tail_write.data.eq(self.join_packet.first),
            tail_write.en.eq(self.join),
            self.link.behind.eq(tail_behind.data),
            self.link.packet.eq(self.join_packet),
            self.link.joins.eq(self.join & ~empty.any()),
        ]

        # Fetch: the successor is there at x_0+2, and the head behind that.
        load_queue = Signal(range(depth))
        tail_loaded = tails.read_port(domain="comb")
        more_behind = Signal()
        m.d.sync += [
            self.loads.eq(fetches),
            load_queue.eq(number_of(fetches)),
        ]
        m.d.comb += [
            tail_loaded.addr.eq(load_queue),
            more_behind.eq(tail_loaded.data != self.link.successor.first),
        ]

        # Heads. A queue without one has whatever packet joins in its place. What was fetched is from a memory, which
        # answers late: it is looked at in the cycle in which it is in its register.
        leaves = self.take & ~self.stays
        visible_follows = (held & ~leaves) | self.starts
        m.d.sync += [
            held.eq(visible_follows | self.loads),
            self.visible.eq(visible_follows),
            fetches.eq(leaves & (more | join_mask)),
            more.eq((more & ~self.loads) | (self.loads & more_behind.replicate(count)) | (join_mask & ~empty)),
        ]
        for queue in range(count):
            following = self.following[queue]
            m.d.comb += following.eq(Mux(held[queue], self.heads[queue], self.join_packet))
            m.d.sync += self.heads[queue].eq(Mux(self.loads[queue], self.link.successor, following))
        return m
