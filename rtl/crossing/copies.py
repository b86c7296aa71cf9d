"""Queues of packets that have a copy for each of several outputs (docs/pipeline.md, sections 3.7, 4, 7 and 8.1)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.eligibility import data_eligible, send_facts_layout
from rtl.crossing.queueing import copies_layout, granted_layout
from rtl.crossing.queues import PacketQueues, packet_layout
from rtl.rotation import RotatingChoice, any_of, select
from rtl.widths import NEED_BITS

__all__ = ["CopyQueues", "CopyReturns"]


class CopyQueues(wiring.Component):
    """One queue for each data VL that packets come in on, and perhaps one for VL15, in which a packet has one copy.

    The packet that is first in its queue is a head for each of its copies, until that is granted.

    Args:
        count: of the queues.
        block_bits, blocks: of the input's buffer: bits of a block's number, and how many there are.
        outputs, credited, vls: see `HeadsSignature`.

    Members:
        join, queue, first, need, copies: a packet joins its queue (cycle e). `ended`: see `PacketQueues`.
        facts: see `HeadsSignature`.
        visible: for each slot, the mask of outputs for which a head is visible.
        requests: for each slot, the mask of outputs for which there is a head that could go, see `HeadsSignature`.
        following: what `requests` will be in the next cycle. `starving`: what `HeadsSignature` has there of that name.
        to: one-hot, the output for which one of these heads is granted in this cycle (g); none if 0.
        slots: of each output, the slot granted if it is that output, one-hot.
        granted: that head, in the cycle after (g+1).
    """

    def __init__(self, count: int, block_bits: int, blocks: int, outputs: int, credited: int, vls: int) -> None:
        self.count = count
        self.block_bits = block_bits
        self.blocks = blocks
        self.outputs = outputs
        self.credited = credited
        self.vls = vls
        heads = data.ArrayLayout(outputs, vls + 1)
        super().__init__(
            {
                "join": In(1),
                "queue": In(range(vls + 1)),
                "first": In(block_bits),
                "need": In(NEED_BITS),
                "copies": In(copies_layout(outputs, credited, vls)),
                "ended": In(1),
                "facts": In(data.ArrayLayout(send_facts_layout(vls), credited)),
                "visible": Out(heads),
                "requests": Out(heads),
                "following": Out(heads),
                "starving": Out(data.ArrayLayout(credited, vls)),
                "to": In(outputs),
                "slots": In(data.ArrayLayout(vls + 1, outputs)),
                "granted": Out(granted_layout(block_bits, vls)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join; heads and requests, queue by queue; grant; what was granted."""
        m = Module()
        outputs, numbers = range(self.outputs), range(self.count)
        key = data.StructLayout({"need": NEED_BITS, "copies": copies_layout(self.outputs, self.credited, self.vls)})
        m.submodules.queues = queues = PacketQueues(self.count, self.blocks, packet_layout(self.block_bits, key))
        m.d.comb += [
            queues.join.eq(self.join),
            queues.join_queue.eq(self.queue),
            queues.join_packet.first.eq(self.first),
            queues.join_packet.key.need.eq(self.need),
            queues.join_packet.key.copies.eq(self.copies),
            queues.ended.eq(self.ended),
        ]

        # What could go is known when its cycle begins, except for a copy granted in the cycle before: its request
        # lasts a cycle longer, and its output is not available in that cycle.
        left = [Signal(self.outputs, name=f"left_{queue}") for queue in numbers]
        going = [Signal(self.outputs, name=f"going_{queue}") for queue in numbers]
        slots = [self._slots(m, f"slots_{queue}", queue, queues.keys[queue].copies) for queue in numbers]
        slots_of_next = [
            self._slots(m, f"slots_of_next_{queue}", queue, queues.following[queue].copies) for queue in numbers
        ]
        goes, lacks = zip(
            *(self._going(m, queues, queue, left[queue], slots_of_next[queue]) for queue in numbers), strict=True
        )
        m.d.sync += [now.eq(following) for now, following in zip(going, goes, strict=True)]
        shown = [Mux(queues.visible[queue], left[queue], 0) for queue in numbers]
        for place, masks, of in (
            (self.visible, shown, slots),
            (self.requests, going, slots),
            (self.following, goes, slots_of_next),
            (self.starving, lacks, slots_of_next),
        ):
            for slot, mask_of_slot in enumerate(place):
                by_queue = [mask & Cat(of[queue][o][slot] for o in outputs) for queue, mask in enumerate(masks)]
                m.d.comb += mask_of_slot.eq(any_of(by_queue))

        # Grant: of the queues with a head for it, each data VL's in turn.
        fitting = Signal(self.count)
        for queue in numbers:
            fits = Signal(self.outputs, name=f"fits_{queue}")
            m.d.comb += [
                fits.eq(going[queue] & Cat((self.slots[o] & slots[queue][o]).any() for o in outputs)),
                fitting[queue].eq((self.to & fits).any()),
            ]
        m.submodules.turn = turn = RotatingChoice(self.vls)
        served = Cat(turn.chosen, fitting[self.vls :])
        m.d.comb += [
            turn.requests.eq(fitting),
            turn.serve.eq(turn.requests.any()),
            turn.served.eq(turn.chosen),
            queues.take.eq(served),
            queues.stays.eq(Cat((mask & (mask - 1)).any() for mask in left)),
        ]
        for queue in numbers:
            with m.If(queues.appears[queue]):
                m.d.sync += left[queue].eq(queues.following[queue].copies.to)
            with m.Elif(served[queue]):
                m.d.sync += left[queue].eq(left[queue] & ~self.to)
        self._show_granted(m, queues, left, slots)
        return m

    def _slots(self, m: Module, name: str, queue: int, copies: data.View) -> list[Value]:
        """Of a packet in this queue, the slot of its copy for each output, one-hot. Those without credits keep it."""
        own: Value = Const(1 << queue, self.vls + 1)
        if queue == self.vls or self.vls == 1:
            return [own] * self.outputs
        slots: list[Value] = []
        for output in range(self.credited):
            slot = Signal(self.vls + 1, name=f"{name}_{output}")
            m.d.comb += slot.eq(Cat(copies.slots[output] == vl for vl in range(self.vls)))
            slots.append(slot)
        return slots + [own] * (self.outputs - self.credited)

    def _going(
        self, m: Module, queues: PacketQueues, queue: int, left: Value, slots: list[Value]
    ) -> tuple[Signal, Signal]:
        """Masks of the outputs for which the head of this queue, with these slots, could go in the next cycle, and for
        which it has not the credits."""
        key, arriving = queues.following[queue], queues.arriving[queue]
        goes = Signal(self.outputs, name=f"goes_{queue}")
        lacks = Signal(self.credited, name=f"lacks_{queue}")
        able: list[Value] = []
        unable: list[Value] = []
        for output in range(self.credited):
            facts, slot, oversize = self.facts[output], slots[output], key.copies.oversize[output]
            swallowed = (facts.swallows & slot).any()
            fit: Value = Const(1, 1)
            starves: Value = Const(0, 1)
            if queue < self.vls:
                rooms = [facts.room[vl] for vl in range(self.vls)]
                room = Signal.like(facts.room[0], name=f"room_{queue}_{output}")
                m.d.comb += room.eq(select(slot[: self.vls], rooms) if self.vls > 1 else facts.room[0])
                covered = Signal(name=f"covered_{queue}_{output}")
                m.d.comb += covered.eq(data_eligible(room, key.need, oversize))
                fit, starves = ~facts.blocked & covered, ~facts.blocked & ~covered
                swallowed |= oversize
            unable.append(starves)
            able.append(fit & ~(swallowed & arriving))
        able += [Const(1, 1)] * (self.outputs - self.credited)
        shown = queues.visible[queue] | queues.appears[queue]
        to = Mux(queues.appears[queue], key.copies.to, left)
        m.d.comb += [goes.eq(Mux(shown, to & Cat(able), 0)), lacks.eq(Mux(shown, to[: self.credited] & Cat(unable), 0))]
        return goes, lacks

    def _show_granted(self, m: Module, queues: PacketQueues, left: list[Signal], slots: list[list[Value]]) -> None:
        """In cycle g+1: the queue is known, its packet's key is still there, and the copies that are left are."""
        to = Signal(self.outputs)
        m.d.sync += to.eq(self.to)
        of_queues = [(queues.keys[queue].copies.oversize & to).any() for queue in range(self.count)]
        m.d.comb += [
            self.granted.first.eq(queues.taken),
            self.granted.slot.eq(select(queues.taken_from, [select(to, of_queue) for of_queue in slots])),
            self.granted.oversize.eq(select(queues.taken_from, of_queues)),
            self.granted.shared.eq(queues.taken_from),
            self.granted.more.eq(select(queues.taken_from, [mask.any() for mask in left])),
        ]


class CopyReturns(wiring.Component):
    """Says which reader asks that a packet's blocks return: the last that is done with a copy of it.

    A packet of which copies are left is the first in its queue, so that its queue tells which packet it is.

    Args:
        readers: of the input, one or two.

    Members:
        grant: mask of the reader that takes a packet in this cycle (g).
        shared, more: what is known of that in the cycle after, see `granted_layout`.
        done: mask of the readers that are done with theirs in this cycle (d).
        returns: mask of those that ask, if they are done.
    """

    def __init__(self, readers: int, vls: int) -> None:
        self.readers = readers
        self.vls = vls
        super().__init__(
            {
                "grant": In(readers),
                "shared": In(vls),
                "more": In(1),
                "done": In(readers),
                "returns": Out(readers),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What each reader reads, and whether both read the same."""
        m = Module()
        numbers = range(self.readers)
        fresh = Signal(self.readers)  # this is g+1
        left, left_before = Signal(self.readers), Signal(self.readers)  # copies of its packet are not granted yet
        queues = [Signal(self.vls, name=f"queue_{number}") for number in numbers]  # none if idle
        again = Signal(self.readers)  # the grant is of the packet that it reads
        m.d.sync += [fresh.eq(self.grant), left_before.eq(left)]
        for number, queue in enumerate(queues):
            m.d.sync += queue.eq(Mux(self.done[number], 0, Mux(fresh[number], self.shared, queue)))
            m.d.comb += [
                again[number].eq(left_before[number] & (self.shared & queue).any()),
                left[number].eq(Mux(fresh[number], self.more, left_before[number] & (self.more | ~again[number]))),
            ]
        if self.readers == 1:
            m.d.comb += self.returns.eq(~left)
            return m
        together, together_before = Signal(), Signal()
        m.d.comb += [
            together.eq(together_before | (fresh[0] & again[1]) | (fresh[1] & again[0])),
            self.returns[0].eq(~left[0] & (~together | self.done[1])),
            self.returns[1].eq(~left[1] & ~together),
        ]
        m.d.sync += together_before.eq(together & ~self.done.any())
        return m
