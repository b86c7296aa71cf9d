"""Virtual output queues: one queue for each (output, slot), so no packet waits for another output."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import connect, flipped

from rtl.crossing.copies import CopyQueues
from rtl.crossing.eligibility import data_eligible
from rtl.crossing.first_blocks import FirstBlocks
from rtl.crossing.input_queues import InputQueues
from rtl.crossing.queues import PacketQueues
from rtl.rotation import any_of, number_of, select

__all__ = ["VirtualOutputQueues"]


class VirtualOutputQueues(InputQueues):
    """One queue for each (output, slot), number output * slots + slot; no keys where a slot has one packet.

    Multicast packets have queues of their own. Where both kinds have a head for an (output, slot) they take turns.
    """

    def elaborate(self, platform: object) -> Module:
        """Join, requests, what is taken."""
        m = Module()
        port, heads = self.queueing, self.queueing.heads
        slots = self.vls + 1
        key = None if self.one_each else data.StructLayout({"need": self.need_bits, "oversize": 1})
        queues = self._packet_queues(m, self.outputs * slots, key, self._joined())

        # What could go is known when its cycle begins, except for a head taken in the cycle before: its
        # request lasts a cycle longer, and its output is not available in that cycle.
        requests, starving = self._following(m, queues)
        visible = Cat(queues.visible[o * slots + slot] for slot in range(slots) for o in range(self.outputs))
        oversize = self._oversize(queues)
        if self.multicast:
            self._add_multicast(m, queues, requests, starving, visible, oversize)
        else:
            self._link(m, queues)
            takes = (port.accepted[o].replicate(slots) & heads.slots_offered[o] for o in range(self.outputs))
            m.d.comb += [
                queues.join.eq(port.join),
                queues.take.eq(Cat(takes)),
                heads.visible.eq(visible),
                port.oversize.eq(self._of_slots_offered(oversize)),
            ]
            self._find_firsts(m, queues, None, [[Const(1 << slot, slots) for slot in range(slots)]] * self.outputs)
            m.d.sync += [heads.requests.eq(requests), heads.starving.eq(starving)]
        return m

    def _joined(self) -> Value:
        """The number of the queue that a packet joins. Where slots are no power of two it is in a table, or synthesis
        would take a multiplier for it, which is far away, and slow."""
        packet, slots = self.queueing.packet, self.vls + 1
        slot = packet.slot[: (slots - 1).bit_length()]
        place, places = Cat(slot, packet.output), range(1 << len(slot))
        if slots == len(places):
            return place
        # Of a slot that there is not the table has anything.
        numbers = [output * slots + number % slots for output in range(self.outputs) for number in places]
        return Array(Const(number, range(max(numbers) + 1)) for number in numbers)[place]

    def _find_firsts(
        self, m: Module, queues: PacketQueues, copies: CopyQueues | None, offered: list[list[Value]]
    ) -> None:
        """Of each output, the first block of the head of the queue that it offers to, one-hot, by the slot it offers:
        of the output's slots, then of multicast packets.

        The slot comes from far, so all there is to do with it is to choose among numbers; VL15's is 0.
        """
        outputs, slots = range(self.outputs), self.vls + 1
        m.submodules.first_blocks = blocks = FirstBlocks(self.outputs, len(offered[0][0]), self.block_bits)

        def number(queue: Value) -> Value:
            return number_of(Cat(queue[self.vls], queue[: self.vls], queue[slots:]))

        for place, name, first in (
            (blocks.starting, "starts", queues.join_packet.first),
            (blocks.loading, "loads", m.submodules.successors.first),
        ):
            by_output = [getattr(queues, name)[o * slots :][:slots] for o in outputs]
            of_copies = Signal(self.vls, name=f"copies_{name}")  # one that is for all outputs
            if copies is not None:
                m.d.comb += of_copies.eq(getattr(copies, name))
            m.d.comb += [
                place.to.eq(Cat(mask.any() | of_copies.any() for mask in by_output)),
                place.queue.eq(number(Cat(any_of(by_output), of_copies))),
                place.first.eq(first),
            ]
        for queue, slot, by_slot in zip(blocks.queues, self.queueing.heads.slots_offered, offered, strict=True):
            m.d.comb += queue.eq(select(slot, map(number, by_slot)))
        m.d.comb += self.queueing.firsts.eq(blocks.firsts)

    def _oversize(self, queues: PacketQueues) -> list[Value]:
        """Of each output that needs credits, the mask of data VLs on which the head of its queue is oversize."""
        if self.one_each:
            return [Const(0, self.vls)] * self.credited
        data_slots, slots = range(self.vls), self.vls + 1
        return [Cat(queues.heads[o * slots + vl].key.oversize for vl in data_slots) for o in range(self.credited)]

    def _of_slots_offered(self, masks: list[Value]) -> Value:
        """Of each output that needs credits, whether the data VL that it offers is in its mask."""
        offered = self.queueing.heads.slots_offered
        return Cat((offered[o][: self.vls] & mask).any() for o, mask in enumerate(masks))

    def _following(self, m: Module, queues: PacketQueues) -> tuple[Signal, Signal]:
        """What these queues ask for in the next cycle, and what they want credits for: see `HeadsSignature`."""
        heads, slots = self.queueing.heads, self.vls + 1
        requests = Signal(data.ArrayLayout(self.outputs, slots))
        starving = Signal(data.ArrayLayout(self.credited, self.vls))
        needs = self._one_each_needs(m) if self.one_each else []
        for output in range(self.outputs):
            for slot in range(slots):
                queue = output * slots + slot
                goes = queues.shows[queue]
                if output < self.credited:
                    facts = heads.facts[output]
                    swallowed = facts.swallows[slot]
                    if slot < self.vls:
                        if self.one_each:
                            need, oversize = needs[slot], Const(0)
                        else:
                            key = queues.following[queue].key
                            need, oversize = key.need, key.oversize
                        swallowed |= oversize
                        waits, fits = goes & ~facts.blocked, Signal(name=f"fits_{queue}")
                        m.d.comb += [
                            fits.eq(data_eligible(facts.room[slot], need, swallowed)),
                            starving[slot][output].eq(waits & ~fits),
                        ]
                        goes = waits & fits
                    goes &= ~(swallowed & queues.arriving[queue])
                m.d.comb += requests[slot][output].eq(goes)
        return requests, starving

    def _add_multicast(
        self, m: Module, queues: PacketQueues, requests: Value, starving: Value, visible: Value, oversize: list[Value]
    ) -> None:
        """Multicast packets have no part in QUEUES."""
        port, heads = self.queueing, self.queueing.heads
        outputs, slots = range(self.outputs), self.vls + 1
        copies = self._copy_queues(m, self.vls)
        self._link(m, queues, copies)
        others = Signal(data.ArrayLayout(self.outputs, slots))  # what QUEUES ask for
        m.d.comb += [
            queues.join.eq(port.join & ~port.has_copies),
            copies.join.eq(port.join & port.has_copies),
            copies.copies.eq(port.copies),
            heads.visible.eq(visible | copies.visible.as_value()),
        ]
        m.d.sync += [
            others.eq(requests),
            heads.requests.eq(Value.cast(requests) | copies.following.as_value()),
            heads.starving.eq(Value.cast(starving) | copies.starving.as_value()),
        ]

        # Of each output and slot: whether a copy goes, by what could go in the cycle of the offer. Until that is
        # accepted no turn passes there, for its output has taken nothing for some cycles.
        copy_goes = Signal(data.ArrayLayout(slots, self.outputs))
        turn = Signal(data.ArrayLayout(slots, self.outputs))
        for o in outputs:
            for slot in range(self.vls):
                m.d.sync += copy_goes[o][slot].eq(copies.requests[slot][o] & (turn[o][slot] | ~others[slot][o]))
        of_either = [
            (copy_goes[o] & of_copies) | (~copy_goes[o] & of_others)
            for o, (of_copies, of_others) in enumerate(zip(copies.oversize, oversize, strict=True))
        ]
        connect(m, copies.inspection, flipped(port.inspection))
        m.d.comb += [
            copies.going.eq(copy_goes),
            copies.accepted.eq(port.accepted),
            port.oversize.eq(self._of_slots_offered(of_either)),
            port.copy.eq(copies.copy),
        ]
        offered = [
            [
                Cat(Mux(goes, 0, Const(1 << slot, slots)), Mux(goes, choice, 0))
                for slot, (goes, choice) in enumerate(zip(copy_goes[o], copies.choices[o], strict=True))
            ]
            for o in outputs
        ]
        self._find_firsts(m, queues, copies, offered)
        takes = [port.accepted[o].replicate(slots) & heads.slots_offered[o] for o in outputs]
        m.d.comb += queues.take.eq(Cat(take & ~copy_goes[o] for o, take in enumerate(takes)))
        m.d.sync += [turn[o].eq((turn[o] & ~take) | (take & ~copy_goes[o])) for o, take in enumerate(takes)]

    def _one_each_needs(self, m: Module) -> list[Signal]:
        """Blocks of the only packet of each data VL, from the cycle on in which it joins."""
        needs = []
        for vl in range(self.vls):
            need, before = (Signal(self.need_bits, name=f"need_{vl}{when}") for when in ("", "_before"))
            joins = self.queueing.join & (self.queueing.packet.slot == vl)
            m.d.comb += need.eq(Mux(joins, self.queueing.packet.need, before))
            m.d.sync += before.eq(need)
            needs.append(need)
        return needs
