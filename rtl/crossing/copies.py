"""Queues of packets that have a copy for each of several outputs (docs/pipeline.md, sections 3.7, 4, 7 and 8.1)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.eligibility import data_eligible, room_layout, send_facts_layout
from rtl.crossing.queueing import InspectionSignature, copies_layout, copy_layout
from rtl.crossing.queues import PacketQueues
from rtl.crossing.successors import SuccessorsSignature, packet_layout
from rtl.rotation import any_of, behind, first_from, select

__all__ = ["CopyQueues", "CopyReturns"]


def _open_copies(copies: data.View) -> Value:
    """The outputs for which a packet is a head as soon as it is the first in its queue."""
    return Mux(copies.guarded, 0, copies.to)


class CopyQueues(wiring.Component):
    """One queue for each data VL that packets come in on, and perhaps one for VL15, in which a packet has one copy.

    The packet that is first in its queue is a head for each of its copies, until that is taken; if it is guarded, from
    when it has been inspected.

    Args:
        count: of the queues.
        block_bits: of a block's number in the input's buffer.
        outputs, credited, vls, need_bits: see `HeadsSignature`.

    Members:
        join, queue, first, need, copies: a packet joins its queue (cycle e). `ended`: see `PacketQueues`.
        facts: see `HeadsSignature`.
        visible: for each slot, the mask of outputs for which a head is visible.
        requests: for each slot, the mask of outputs for which there is a head that could go, see `HeadsSignature`.
        following: what `requests` will be in the next cycle. `starving`: what `HeadsSignature` has there of that name.
        slots: of each output that made an offer to this input in the cycle before (g), the slot, one-hot.
        going: of each output, the mask of the slots on which its offer is for one of these heads. `accepted`: one-hot,
            that whose offer the input accepts in this cycle (x_0), of these or others; none if 0. It comes late.
        starts, loads, link, heads: see `PacketQueues`.
        choices: of each output and slot, the queue whose head goes, if one of these goes there on that in this cycle
            (x_0), one-hot. `oversize`: of each output that needs credits, the mask of slots on which that is oversize.
        inspection: see `InspectionSignature`.
        copy: see `QueueingSignature`.
    """

    def __init__(self, count: int, block_bits: int, outputs: int, credited: int, vls: int, need_bits: int) -> None:
        self.count = count
        self.outputs = outputs
        self.credited = credited
        self.vls = vls
        self.need_bits = need_bits
        heads = data.ArrayLayout(outputs, vls + 1)
        key = data.StructLayout({"need": need_bits, "copies": copies_layout(outputs, credited, vls)})
        self.packet = packet_layout(block_bits, key)
        super().__init__(
            {
                "join": In(1),
                "queue": In(range(vls + 1)),
                "first": In(block_bits),
                "need": In(need_bits),
                "copies": In(copies_layout(outputs, credited, vls)),
                "ended": In(1),
                "facts": In(data.ArrayLayout(send_facts_layout(vls, need_bits), credited)),
                "visible": Out(heads),
                "requests": Out(heads),
                "following": Out(heads),
                "starving": Out(data.ArrayLayout(credited, vls)),
                "slots": In(data.ArrayLayout(vls + 1, outputs)),
                "going": In(data.ArrayLayout(vls + 1, outputs)),
                "accepted": In(outputs),
                "starts": Out(count),
                "loads": Out(count),
                "link": Out(SuccessorsSignature(self.packet)),
                "heads": Out(data.ArrayLayout(self.packet, count)),
                "choices": Out(data.ArrayLayout(data.ArrayLayout(count, vls + 1), outputs)),
                "oversize": Out(data.ArrayLayout(vls, credited)),
                "inspection": Out(InspectionSignature(block_bits, credited, vls)),
                "copy": Out(copy_layout(vls)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join; what is inspected; heads and requests, queue by queue; which of them goes; what was taken."""
        m = Module()
        outputs, numbers = range(self.outputs), range(self.count)
        m.submodules.queues = queues = PacketQueues(self.count, self.packet)
        connect(m, queues.link, flipped(self.link))
        m.d.comb += [
            queues.join.eq(self.join),
            queues.join_queue.eq(self.queue),
            queues.join_packet.first.eq(self.first),
            queues.join_packet.key.need.eq(self.need),
            queues.join_packet.key.copies.eq(self.copies),
            queues.ended.eq(self.ended),
            self.starts.eq(queues.starts),
            self.loads.eq(queues.loads),
            self.heads.eq(queues.heads),
        ]

        # What could go is known when its cycle begins, except for a copy taken in the cycle before: its request
        # lasts a cycle longer, and its output is not available in that cycle.
        left = [Signal(self.outputs, name=f"left_{queue}") for queue in numbers]  # none, if there is no head
        visible = [mask & queues.visible[queue].replicate(self.outputs) for queue, mask in enumerate(left)]
        going = [Signal(self.outputs, name=f"going_{queue}") for queue in numbers]
        slots = [self._slots(m, f"slots_{queue}", queue, queues.heads[queue].key.copies) for queue in numbers]
        slots_of_next = [
            self._slots(m, f"slots_of_next_{queue}", queue, queues.following[queue].key.copies) for queue in numbers
        ]
        rejected, opens = self._inspect(m, queues)
        comes = opens | Mux(self.copies.guarded, 0, queues.starts)  # heads for all copies, from the next cycle on
        goes, lacks = zip(
            *(
                self._going(m, queues, queue, left[queue], comes[queue], rejected[queue], slots_of_next[queue])
                for queue in numbers
            ),
            strict=True,
        )
        m.d.sync += [now.eq(following) for now, following in zip(going, goes, strict=True)]
        for place, masks, of in (
            (self.visible, visible, slots),
            (self.requests, going, slots),
            (self.following, goes, slots_of_next),
            (self.starving, lacks, slots_of_next),
        ):
            for slot, mask_of_slot in enumerate(place):
                by_queue = [mask & Cat(of[queue][o][slot] for o in outputs) for queue, mask in enumerate(masks)]
                m.d.comb += mask_of_slot.eq(any_of(by_queue))

        served = self._serve(m, going, slots, queues.heads)
        m.d.comb += [
            queues.take.eq(served),
            queues.stays.eq(Cat((mask & (mask - 1)).any() for mask in left)),
        ]
        for queue in numbers:
            with m.If(queues.starts[queue]):
                m.d.sync += left[queue].eq(_open_copies(self.copies))
            with m.Elif(queues.loads[queue]):
                m.d.sync += left[queue].eq(_open_copies(queues.link.successor.key.copies))
            with m.Elif(opens[queue]):
                m.d.sync += left[queue].eq(queues.heads[queue].key.copies.to)
            with m.Elif(served[queue]):
                m.d.sync += left[queue].eq(left[queue] & ~self.accepted)
        # Of each queue, if it was served.
        rejects, guarded = Signal(self.vls), Cat(head.key.copies.guarded for head in queues.heads)
        m.d.sync += [
            self.copy.shared.eq(served),
            self.copy.more.eq((served & queues.stays).any()),
            rejects.eq(guarded & Cat((found & self.accepted).any() for found in rejected[: self.vls])),
        ]
        m.d.comb += self.copy.rejected.eq((self.copy.shared & rejects).any())
        return m

    def _inspect(self, m: Module, queues: PacketQueues) -> tuple[list[Value], Value]:
        """Which packets wait for it. Of each queue's, if it is guarded, the mask of outputs where it may not leave; and
        the mask of queues whose was inspected in the cycle before."""
        inspection, keys = self.inspection, [queues.heads[queue].key.copies for queue in range(self.vls)]
        held_back = Signal(self.vls)
        rejected = [Signal(self.credited, name=f"rejected_{queue}") for queue in range(self.vls)]
        for queue, found in enumerate(rejected):
            with m.If(queues.starts[queue]):
                m.d.sync += held_back[queue].eq(self.copies.guarded)
            with m.Elif(queues.loads[queue]):
                m.d.sync += held_back[queue].eq(queues.link.successor.key.copies.guarded)
            with m.Elif(inspection.inspected[queue]):
                m.d.sync += [held_back[queue].eq(0), found.eq(inspection.rejected)]
        m.d.comb += [
            inspection.waiting.eq(queues.visible[: self.vls] & held_back),
            inspection.first.eq(select(inspection.queue, [queues.heads[queue].first for queue in range(self.vls)])),
            inspection.to.eq(select(inspection.queue, [copies.to[: self.credited] for copies in keys])),
        ]
        opens = Signal(self.count)
        m.d.sync += opens.eq(inspection.inspected)
        return [*rejected, *[Const(0, self.credited)] * (self.count - self.vls)], opens

    def _serve(self, m: Module, going: list[Signal], slots: list[list[Value]], heads: data.View) -> Signal:
        """The queue that is served, one-hot: of those that had a head for the output, each data VL's in turn.

        Which output that is comes late, and the slot of an output's offer from far, so each slot of each output has its
        choice by then, of what could go in the cycle of the offer.
        """
        outputs, data_queues = range(self.outputs), range(self.vls)
        went = [Signal(self.outputs, name=f"went_{queue}") for queue in range(self.count)]
        m.d.sync += [before.eq(now) for before, now in zip(went, going, strict=True)]
        last, served = Signal(self.vls), Signal(self.count)
        place = behind(m, last)
        goes_to: list[Value] = []
        for o in outputs:
            for slot, choice in enumerate(self.choices[o]):
                fits = Cat(went[queue][o] & of[o][slot] for queue, of in enumerate(slots))
                m.d.comb += choice.eq(Cat(first_from(m, fits[: self.vls], place), fits[self.vls :]))
            going = [Mux(goes, choice, 0) for goes, choice in zip(self.going[o], self.choices[o], strict=True)]
            goes_to.append(select(self.slots[o], going))
        m.d.comb += served.eq(select(self.accepted, goes_to))
        for o, oversize in enumerate(self.oversize):
            of_queues = Cat(heads[queue].key.copies.oversize[o] for queue in data_queues)
            m.d.comb += oversize.eq(Cat((self.choices[o][vl] & of_queues).any() for vl in data_queues))
        with m.If(served[: self.vls].any()):
            m.d.sync += last.eq(served)
        return served

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
        self,
        m: Module,
        queues: PacketQueues,
        queue: int,
        left: Value,
        comes: Value,
        rejected: Value,
        slots: list[Value],
    ) -> tuple[Signal, Signal]:
        """Masks of the outputs for which the head of this queue, with these slots, could go in the next cycle, and for
        which it has not the credits."""
        key, arriving = queues.following[queue].key, queues.arriving[queue]
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
                room = Signal(room_layout(self.need_bits), name=f"room_{queue}_{output}")
                m.d.comb += room.eq(select(slot[: self.vls], rooms) if self.vls > 1 else facts.room[0])
                swallowed |= oversize | (rejected[output] & key.copies.guarded)
                covered = Signal(name=f"covered_{queue}_{output}")
                m.d.comb += covered.eq(data_eligible(room, key.need, swallowed))
                fit, starves = ~facts.blocked & covered, ~facts.blocked & ~covered
            unable.append(starves)
            able.append(fit & ~(swallowed & arriving))
        able += [Const(1, 1)] * (self.outputs - self.credited)
        to = left | Mux(comes, key.copies.to, 0)
        m.d.comb += [goes.eq(to & Cat(able)), lacks.eq(to[: self.credited] & Cat(unable))]
        return goes, lacks


class CopyReturns(wiring.Component):
    """Says which reader asks that a packet's blocks return: the last that is done with a copy of it.

    A packet of which copies are left is the first in its queue, so that its queue tells which packet it is.

    Args:
        readers: of the input, one or two.

    Members:
        grant: mask of the reader that took a packet in the cycle before (this is x_0+1).
        copy: what is known of that, see `copy_layout`.
        done: mask of the readers that were done with theirs in the cycle before (this is y).
        returns: mask of those that ask, if they are done.
    """

    def __init__(self, readers: int, vls: int) -> None:
        self.readers = readers
        self.vls = vls
        super().__init__(
            {
                "grant": In(readers),
                "copy": In(copy_layout(vls)),
                "done": In(readers),
                "returns": Out(readers),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What each reader reads, and whether both read the same."""
        m = Module()
        numbers = range(self.readers)
        fresh, shared, more = Signal(self.readers), Signal(self.vls), Signal()  # this is x_0+2
        left, left_before = Signal(self.readers), Signal(self.readers)  # copies of its packet are not taken yet
        queues = [Signal(self.vls, name=f"queue_{number}") for number in numbers]  # none if idle
        same = Signal(self.readers)  # the grant is of that queue
        again = Signal(self.readers)  # the grant is of the packet that it reads
        m.d.sync += [fresh.eq(self.grant), shared.eq(self.copy.shared), more.eq(self.copy.more), left_before.eq(left)]
        for number, queue in enumerate(queues):
            following = Signal(self.vls, name=f"following_{number}")
            m.d.comb += following.eq(Mux(self.done[number], 0, Mux(fresh[number], shared, queue)))
            m.d.sync += [queue.eq(following), same[number].eq((self.copy.shared & following).any())]
            m.d.comb += [
                again[number].eq(left_before[number] & same[number]),
                left[number].eq(Mux(fresh[number], more, left_before[number] & (more | ~again[number]))),
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
