"""What joins a queue leaves it once, in its turn (docs/pipeline.md, section 4), whatever else goes on at its input."""

from typing import Final, Literal

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from rtl.crossing.eligibility import data_eligible
from rtl.crossing.fifo import FifoQueues
from rtl.crossing.first_blocks import new_head_layout
from rtl.crossing.voq import VirtualOutputQueues
from rtl.rotation import at_number, how_many, select
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants
from tests.proofs.rotation import one_of

__all__ = ["QUEUEING_PROOFS"]

_BLOCKS: Final = 4
_OUTPUTS: Final = 2
_VLS: Final = 1
_NEED_BITS: Final = 1
_SLOTS: Final = _VLS + 1
_LOADING: Final = 3
"""Cycles behind that of a taken head in which its queue has no visible one."""
_TAKEN_OF_FOUR: Final = 2
"""As many heads may be taken in four cycles: there are two readers."""

_Packet: Final = data.StructLayout(
    {
        "queued": 1,
        "read": 1,
        "queue": range(_OUTPUTS * _SLOTS),
        "place": range(_BLOCKS),
        "output": range(_OUTPUTS),
        "need": _NEED_BITS,
        "oversize": 1,
        "again": 1,
        "waited": 1,
    }
)
"""What there is to know of a block. `queued`: its packet is in a `queue`, so many `place`s behind the head, and its key
and where it goes are these. `read`: it was taken, and its block has not returned. `again`: the block has returned and
joined once more. `waited`: it joined behind another."""


class Queueing(wiring.Component):
    """What is offered is the head of its queue: it joined and was not taken since, and all that joined before it were.
    Heads are visible in the cycles of section 4, so that none is lost.

    Members:
        joins, block, output, slot, need, oversize: a packet joins (cycle e), of this first block.
        offers: mask of the outputs that make an offer in this cycle (g); slots: of each output, the slot.
        accepted: one-hot, that whose offer of the cycle before is accepted (x_0).
        returns: mask of blocks that return, their packets having been read.
        ended, facts: see `QueueingSignature`, `HeadsSignature`.
    """

    def __init__(self, queueing: Literal["voq", "fifo"]) -> None:
        self._voq = queueing == "voq"
        kind = VirtualOutputQueues if self._voq else FifoQueues
        bits = (_BLOCKS - 1).bit_length()
        self._queues = kind(bits, _BLOCKS, _OUTPUTS, _OUTPUTS, _VLS, _NEED_BITS)
        members = self._queues.queueing.heads.signature.members
        super().__init__(
            {
                "joins": In(1),
                "block": In(range(_BLOCKS)),
                "output": In(range(_OUTPUTS)),
                "slot": In(range(_SLOTS)),
                "need": In(_NEED_BITS),
                "oversize": In(1),
                "offers": In(_OUTPUTS),
                "slots": In(data.ArrayLayout(_SLOTS, _OUTPUTS)),
                "accepted": In(_OUTPUTS),
                "returns": In(_BLOCKS),
                "ended": In(1),
                "facts": In(members["facts"].shape),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Where each packet is, by its first block; what the queues offer; how their registers and memories have it."""
        m = Module()
        opened = Opened(self._queues)
        m.submodules.queues = opened.fragment
        port = self._queues.queueing
        heads = port.heads
        count = _OUTPUTS * _SLOTS if self._voq else _SLOTS
        outputs, slots, queues, blocks = range(_OUTPUTS), range(_SLOTS), range(count), range(_BLOCKS)

        def queue_of(output: int, slot: int) -> int:
            return output * _SLOTS + slot if self._voq else slot

        # Offers, and which of them is accepted.
        offered, slots_offered = Signal(_OUTPUTS), Signal(data.ArrayLayout(_SLOTS, _OUTPUTS))
        accepted_before = [Signal(_OUTPUTS, name=f"accepted_{ago}_ago") for ago in (1, 2, 3, 4, 5)]
        m.d.sync += [
            offered.eq(self.offers),
            slots_offered.eq(self.slots),
            *(later.eq(now) for now, later in zip((self.accepted, *accepted_before), accepted_before, strict=False)),
        ]
        unavailable = offered | accepted_before[0] | accepted_before[1]
        taken = [self.accepted.any(), *(mask.any() for mask in accepted_before)]
        m.d.comb += [
            Assume((self.offers & unavailable) == 0),
            *(Assume(~self.offers[o] | (one_of(self.slots[o]) & self.slots[o].any())) for o in outputs),
            *(Assume(~(self.offers[o] & self.slots[o][s]) | heads.requests[s][o]) for o in outputs for s in slots),
            Assume(one_of(self.accepted) & ((self.accepted & ~offered) == 0)),
            Assume(how_many(taken[:4]) <= _TAKEN_OF_FOUR),
        ]

        # Where each packet is.
        packets = [Signal(_Packet, name=f"packet_{block}") for block in blocks]
        lengths = [Signal(range(_BLOCKS + 1), name=f"length_{queue}") for queue in queues]
        hidden = [Signal(range(_LOADING + 1), name=f"hidden_{queue}") for queue in queues]  # for so many cycles
        # Of the cycle before: masks of the queue that a packet joined that had none, and of that whose head was taken.
        started, left = Signal(count), Signal(count)
        joined_before = Signal()
        number = self.output * _SLOTS + self.slot if self._voq else self.slot
        comes = Cat(self.joins & (number == queue) for queue in queues)
        goes = Signal(count)
        for queue in queues:
            of = [(o, s) for o in outputs for s in slots if queue_of(o, s) == queue]
            m.d.comb += goes[queue].eq(Cat(self.accepted[o] & slots_offered[o][s] for o, s in of).any())
            remain = Signal.like(lengths[queue], name=f"remain_{queue}")
            m.d.comb += remain.eq(lengths[queue] - goes[queue])
            m.d.sync += lengths[queue].eq(remain + comes[queue])
            with m.If(goes[queue] & (comes[queue] | (remain != 0))):
                m.d.sync += hidden[queue].eq(_LOADING)
            with m.Elif(hidden[queue] != 0):
                m.d.sync += hidden[queue].eq(hidden[queue] - 1)
        empty = Cat(length == 0 for length in lengths)
        m.d.sync += [joined_before.eq(self.joins), started.eq(comes & empty), left.eq(goes)]
        m.d.comb += Assume(~(self.joins & joined_before))
        behind = at_number(number, [(length - going)[:2] for length, going in zip(lengths, goes, strict=True)])
        for block, packet in enumerate(packets):
            joins = self.joins & (self.block == block)
            moves = packet.queued & at_number(packet.queue, goes)
            m.d.comb += [
                Assume(~(joins & (packet.queued | packet.read))),
                Assume(~self.returns[block] | packet.read),
            ]
            with m.If(joins):
                m.d.sync += [
                    packet.queued.eq(1),
                    packet.queue.eq(number),
                    packet.place.eq(behind),
                    packet.output.eq(self.output),
                    packet.need.eq(self.need),
                    packet.oversize.eq(self.oversize),
                    packet.waited.eq(behind != 0),
                ]
            with m.Elif(moves & (packet.place == 0)):
                m.d.sync += [packet.queued.eq(0), packet.read.eq(1)]
            with m.Elif(moves):
                m.d.sync += packet.place.eq(packet.place - 1)
            with m.Elif(self.returns[block]):
                m.d.sync += [packet.read.eq(0), packet.again.eq(1)]
            m.d.comb += Cover(moves & (packet.place == 0) & packet.again & packet.waited)

        m.d.comb += [
            port.join.eq(self.joins),
            port.first.eq(self.block),
            port.packet.pool.eq(self.slot),
            port.packet.output.eq(self.output),
            port.packet.slot.eq(self.slot),
            port.packet.need.eq(self.need),
            port.packet.oversize.eq(self.oversize),
            port.ended.eq(self.ended),
            heads.facts.eq(self.facts),
            heads.slots_offered.eq(slots_offered),
            port.accepted.eq(self.accepted),
            port.taken.eq(select(self.accepted, port.firsts)),
        ]

        # What the queues show and offer, by what was known of outputs in the cycle before.
        facts = Signal.like(self.facts)
        m.d.sync += facts.eq(self.facts)
        firsts_of = [
            [packet.queued & (packet.queue == queue) & (packet.place == 0) for packet in packets] for queue in queues
        ]
        for o in outputs:
            for slot in slots:
                queue = queue_of(o, slot)
                head_here = Cat(
                    first & (packet.output == o) for first, packet in zip(firsts_of[queue], packets, strict=True)
                )
                visible = head_here.any() & (hidden[queue] == 0)
                offers = offered[o] & slots_offered[o][slot]
                is_it = Cat(first & (port.firsts[o] == block) for block, first in enumerate(head_here))
                large, need = (select(head_here, [packet[name] for packet in packets]) for name in ("oversize", "need"))
                is_data = slot < _VLS
                swallowed, could_go = facts[o].swallows[slot], Const(1)
                if is_data:
                    swallowed |= large
                    could_go = ~facts[o].blocked & data_eligible(facts[o].room[slot], need, swallowed)
                requested = heads.requests[slot][o]
                m.d.comb += [
                    Assert(heads.visible[slot][o] == visible),
                    Assert(~requested | (visible & could_go) | (left[queue] & accepted_before[0][o])),
                    Assert(requested | ~(visible & could_go) | swallowed),
                    Assert(~offers | is_it.any()),
                    Assert(~offers | (port.oversize[o] == (large if is_data else 0))),
                    *invariants(~offers | (visible & ~started[queue])),
                ]

        self._relate(m, opened, packets, lengths, hidden, firsts_of)
        if self._voq:
            self._relate_first_blocks(m, opened, hidden, started, firsts_of, taken)
        else:
            self._relate_copies(m, opened, packets, hidden, firsts_of)
            m.d.comb += invariants(
                *(
                    ~(offered[o] & slots_offered[o][slot]) | opened.inside(f"copy_queues.went_{slot}")[o]
                    for o in outputs
                    for slot in slots
                ),
                *(opened.inside(f"copy_queues.going_{slot}") == heads.requests[slot] for slot in slots),
            )
        ago = list(enumerate(taken[1:], start=1))
        m.d.comb += invariants(
            (offered & (accepted_before[0] | accepted_before[1])) == 0,
            *(one_of(mask) for mask in accepted_before),
            *(how_many(taken[first:][:4]) <= _TAKEN_OF_FOUR for first in (1, 2)),
            *(~(hidden[q] == _LOADING + 1 - cycles) | was for q in queues for cycles, was in ago[:_LOADING]),
            (started == 0) | joined_before,
            one_of(started),
        )
        return m

    def _relate(
        self,
        m: Module,
        opened: Opened,
        packets: list[data.View],
        lengths: list[Signal],
        hidden: list[Signal],
        firsts_of: list[list[Value]],
    ) -> None:
        """What registers and memories of the queues have, by where the packets are."""
        folder = "queues" if self._voq else "copy_queues.queues"
        names = ("held", "fetches", "loads", "load_queue", "more", "heads")
        held, fetches, loads, load_queue, more, head_words = (opened.inside(f"{folder}.{name}") for name in names)
        address, answer = opened.read("successors.memory")
        tails, successors = opened.words(f"{folder}.tails"), opened.words("successors.memory")
        words = [self._word(block, packet) for block, packet in enumerate(packets)]
        for queue, (length, hides) in enumerate(zip(lengths, hidden, strict=True)):
            has_head = (length != 0) & (hides < 2)
            head_word = head_words.word_select(queue, len(words[0]))
            found = Mux(hides == _LOADING, at_number(address, successors), Mux(has_head, head_word, answer))
            here = [packet.queued & (packet.queue == queue) for packet in packets]
            m.d.comb += invariants(
                length == how_many(here),
                (hides == 0) | (length != 0),
                held[queue] == has_head,
                fetches[queue] == (hides == _LOADING),
                loads[queue] == (hides == _LOADING - 1),
                ~loads[queue] | (load_queue == queue),
                more[queue] == ((length > 1) | (hides > 1)),
                *((hides == 0) | (hides != other) for other in hidden[:queue]),
                *(
                    ~(mine & (packet.place == length - 1)) | (tails[queue] == block)
                    for block, (mine, packet) in enumerate(zip(here, packets, strict=True))
                ),
                *(~first | (found == word) for first, word in zip(firsts_of[queue], words, strict=True)),
                (hides != _LOADING) | ~at_number(address, [packet.queued for packet in packets]),
            )
        for block, packet in enumerate(packets):
            m.d.comb += invariants(
                ~packet.queued | (packet.place < at_number(packet.queue, lengths)),
                ~(packet.queued & packet.read),
                ~packet.queued | (packet.queue < len(lengths)),
            )
            for other, its in enumerate(packets):
                together = packet.queued & its.queued & (packet.queue == its.queue)
                if other != block:
                    m.d.comb += invariants(
                        ~together | (packet.place != its.place),
                        ~(together & (its.place == packet.place + 1)) | (successors[block] == words[other]),
                    )
            if self._voq:
                m.d.comb += invariants(~packet.queued | (packet.output == packet.queue[1:]))

    def _word(self, block: int, packet: data.View) -> Value:
        """What the queues keep of a packet: first block and key."""
        key = [packet.need]
        if self._voq:
            key += [packet.oversize]
        else:
            key += [(1 << packet.output)[:_OUTPUTS], packet.oversize.replicate(_OUTPUTS), Const(0, 1)]
        return Cat(Const(block, range(_BLOCKS)), *key)

    def _relate_first_blocks(
        self,
        m: Module,
        opened: Opened,
        hidden: list[Signal],
        started: Signal,
        firsts_of: list[list[Value]],
        taken: list[Value],
    ) -> None:
        """The same of `FirstBlocks`: a head that waits there appeared in the cycle before, and others did before it, so
        that there is never another to wait.

        Args:
            taken: whether a head was taken, in this cycle, in the one before, ...
        """
        # It has no name of its own, being made together with others.
        waiting = data.View(new_head_layout(_OUTPUTS, _SLOTS, 2), opened.inside("first_blocks.$signal"))
        m.d.comb += invariants(one_of(waiting.to))
        for o in range(_OUTPUTS):
            words = opened.words(f"first_blocks.of_output_{o}")
            for slot in range(_SLOTS):
                queue = o * _SLOTS + slot
                number = 0 if slot == _VLS else slot + 1
                waits = waiting.to[o] & (waiting.queue == number)
                known = Mux(waits, waiting.first, words[number])
                m.d.comb += invariants(
                    ~waits | started[queue] | (hidden[queue] == 1),
                    ~waits | Mux(started[queue], taken[3] | (taken[4] & taken[5]), taken[3] & taken[4]),
                    *(~first | (hidden[queue] > 1) | (known == block) for block, first in enumerate(firsts_of[queue])),
                )

    def _relate_copies(
        self,
        m: Module,
        opened: Opened,
        packets: list[data.View],
        hidden: list[Signal],
        firsts_of: list[list[Value]],
    ) -> None:
        """The same of `CopyQueues`: the one copy of each head is left."""
        for queue, (hides, firsts) in enumerate(zip(hidden, firsts_of, strict=True)):
            left = opened.inside(f"copy_queues.left_{queue}")
            to = [
                Cat(first & (packet.output == o) for first, packet in zip(firsts, packets, strict=True)).any()
                for o in range(_OUTPUTS)
            ]
            m.d.comb += invariants(left == Mux(hides < 2, Cat(*to), 0))


QUEUEING_PROOFS: Final = (
    Proof(
        "what is offered joined its queue, was not taken since, and is the first of it; none is lost",
        Queueing,
        parameters={"queueing": "voq"},
        cycles=8,
        induction=1,
        apart=True,
        reaches=14,
        mutants=(
            Change(
                "a packet that joins while the next head is fetched is taken for the first of its queue",
                "crossing/queues.py",
                "empty.eq(named & ~(held | fetches | self.loads))",
                "empty.eq(named & ~(held | self.loads))",
            ),
            Change(
                "a packet that joins while the only head is taken is lost",
                "crossing/queues.py",
                "fetches.eq(leaves & (more | join_mask))",
                "fetches.eq(leaves & more)",
            ),
            Change(
                "of two heads that appear at once the second is forgotten",
                "crossing/first_blocks.py",
                "with m.If(waits | loads):",
                "with m.If(waits):",
            ),
        ),
    ),
    Proof(
        "the same of queues that are one for each slot of an input",
        Queueing,
        parameters={"queueing": "fifo"},
        cycles=8,
        induction=1,
        apart=True,
        reaches=14,
        mutants=(
            Change(
                "a copy that was taken is left",
                "crossing/copies.py",
                "m.d.sync += left[queue].eq(left[queue] & ~self.accepted)",
                "m.d.sync += left[queue].eq(left[queue])",
            ),
            Change(
                "what was behind a head is read one cycle too early",
                "crossing/successors.py",
                "m.d.sync += read.addr.eq(self.taken)",
                "m.d.comb += read.addr.eq(self.taken)",
            ),
        ),
    ),
)
