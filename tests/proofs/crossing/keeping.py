"""A buffer keeps what was stored in it (docs/pipeline.md, section 3.4), until its blocks are released."""

from typing import Final

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from rtl.crossing.buffer import Buffer
from rtl.widths import INDEX_BITS, NEED_BITS, ROW_BITS, SLOT_BITS
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof

__all__ = ["KEEPING_PROOFS"]

_PACKETS: Final = 3
"""As many are kept at the same time, one more being written."""


class Keeping(wiring.Component):
    """No row is stored in a block of a packet that is kept; blocks stay in their pools, each in the list of what is
    free or of one packet; and `free` is what is left.

    Of a block's rows behind the first not all need come: the buffer does nothing between them.

    Members:
        comes: a row is stored: of this `index`, the `last`, of a packet on this `slot`.
        accepts: with row 1: the packet is accepted, of so many blocks. `cancels`: with the last row, it never was.
        returns: one of the packets kept is done, by its place.
    """

    def __init__(self, pools: tuple[int, ...]) -> None:
        self._pools = pools
        super().__init__(
            {
                "comes": In(1),
                "index": In(INDEX_BITS),
                "last": In(1),
                "slot": In(SLOT_BITS),
                "accepts": In(1),
                "need": In(NEED_BITS),
                "cancels": In(1),
                "returns": In(_PACKETS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The rows of one packet after the other, and what is kept of them."""
        m = Module()
        buffer = Buffer(self._pools, 1, stamped=False)
        opened = Opened(buffer)
        m.submodules.buffer = opened.fragment
        fill, write, release = buffer.fill, buffer.fill.write, buffer.release
        current = opened.inside("current")  # block of the row of the cycle before

        # The packet that is written.
        inside, index, slot = Signal(), Signal(INDEX_BITS), Signal(SLOT_BITS)
        accepted, need = Signal(), Signal(NEED_BITS)
        first = self.comes & ~inside
        accept = self.comes & inside & (self.index == 1) & self.accepts
        ends = self.comes & self.last
        m.d.comb += [
            write.valid.eq(self.comes),
            write.first.eq(first),
            write.index.eq(self.index),
            write.last.eq(ends),
            write.accepted.eq(accepted & inside),
            write.slot.eq(Mux(first, self.slot, slot)),
            write.need.eq(need),
            fill.accept.eq(accept),
            fill.accept_slot.eq(slot),
            fill.accept_need.eq(self.need),
            fill.cancel.eq(ends & accepted & inside & self.cancels),
            Assume(~first | ((self.index == 0) & ~self.last)),
            Assume(~(self.comes & (self.index == 1) & self.last & self.accepts)),
            Assume(~accept | (self.need != 0)),
        ]
        follows = (self.index > index) & (self.index[ROW_BITS:] == index[ROW_BITS:]) & (index[1:] != 0)
        next_block = (self.index == ((index[ROW_BITS:] + 1) << ROW_BITS)) & (index[1:] != 0)
        m.d.comb += Assume(~(self.comes & inside) | (self.index == index + 1) | follows | next_block)
        m.d.comb += Assume(~(self.comes & inside & accepted) | (self.index[ROW_BITS:] < need))
        with m.If(self.comes):
            m.d.sync += [inside.eq(~self.last), index.eq(self.index)]
        with m.If(first):
            m.d.sync += [slot.eq(self.slot), accepted.eq(0)]
        with m.If(accept):
            m.d.sync += [accepted.eq(1), need.eq(self.need)]
        for pool, free in enumerate(fill.free):
            m.d.comb += Assume(~(accept & (slot == pool)) | (self.need <= free))
        m.d.comb += Assume(~accept | (slot < len(self._pools)))

        # What is kept; a row is seen a cycle later, when its block is known.
        kept = [
            Signal(
                data.StructLayout(
                    {
                        "used": 1,
                        "slot": SLOT_BITS,
                        "need": NEED_BITS,
                        "first": buffer.bits,
                        "last": buffer.bits,
                        "blocks": buffer.blocks,
                    }
                ),
                name=f"kept_{place}",
            )
            for place in range(_PACKETS)
        ]
        was_stored, was_accepted, was_last = Signal(), Signal(), Signal()
        m.d.sync += [
            was_stored.eq(self.comes & ((accepted & inside) | (self.index[1:] == 0))),
            was_accepted.eq(self.comes & accepted & inside),
            was_last.eq(ends & accepted & inside & ~self.cancels),
        ]
        blocks = Signal(buffer.blocks)  # of the packet being written
        all_blocks = blocks | (1 << current)
        with m.If(was_last | first):
            m.d.sync += blocks.eq(0)
        with m.Elif(was_accepted):
            m.d.sync += blocks.eq(all_blocks)
        was_slot, was_need = Signal(SLOT_BITS), Signal(NEED_BITS)
        m.d.sync += [was_slot.eq(slot), was_need.eq(need)]
        room: Value = Value.cast(was_last)
        for place in kept:
            with m.If(room & ~place.used):
                m.d.sync += [
                    place.used.eq(1),
                    place.slot.eq(was_slot),
                    place.need.eq(was_need),
                    place.first.eq(buffer.first),
                    place.last.eq(current),
                    place.blocks.eq(all_blocks),
                ]
            room = room & place.used
        m.d.comb += Assume(~room)

        # One is released.
        returned = Signal(buffer.blocks)
        m.d.comb += Assume((self.returns & (self.returns - 1)) == 0)
        for place, returns in zip(kept, self.returns, strict=True):
            m.d.comb += Assume(~returns | place.used)
            with m.If(returns):
                m.d.comb += [
                    release.valid.eq(1),
                    release.pool.eq(1 << place.slot),
                    release.need.eq(place.need),
                    release.first.eq(place.first),
                    release.last.eq(place.last),
                ]
                m.d.sync += [place.used.eq(0), returned.eq(returned | place.blocks)]

        behind = Array(opened.words("next"))  # a block, in its list
        taken = [Mux(place.used, place.blocks, 0) for place in kept]
        in_row = 1 << current
        m.d.comb += [Assert(~was_stored | ((in_row & blocks_of) == 0)) for blocks_of in taken]
        start = 0
        for pool, capacity in enumerate(self._pools):
            charged = sum(
                (Mux(place.used & (place.slot == pool), place.need, 0) for place in kept),
                Mux((slot == pool) & (accepted & inside), need, 0) + Mux(was_last & (was_slot == pool), was_need, 0),
            )
            of_pool = ((1 << capacity + 1) - 1) << start
            m.d.comb += [
                Assert(fill.free[pool] + charged == capacity),
                *(Assert(~(place.used & (place.slot == pool)) | ((place.blocks & ~of_pool) == 0)) for place in kept),
            ]
            start += capacity + 1

            # Each block is in the list of what is free, or of one packet.
            head, tail = opened.inside(f"head_{pool}"), opened.inside(f"tail_{pool}")
            block = Mux(was_last & (was_slot == pool), behind[current], head)
            listed, is_over = 1 << block, block == tail
            for _ in range(capacity):
                block = Mux(is_over, block, behind[block])
                listed, is_over = listed | 1 << block, is_over | (block == tail)
            in_packets = Mux(was_last & (was_slot == pool), all_blocks, 0)
            for place in kept:
                in_packets |= Mux(place.used & (place.slot == pool), place.blocks, 0)
            m.d.comb += [
                Assert(is_over),
                Assert((listed & in_packets) == 0),
                Assert((listed | in_packets) == of_pool),
                Assert(sum(listed[block] for block in range(buffer.blocks)) > fill.free[pool]),
            ]
        m.d.comb += [
            Cover(Cat(place.used for place in kept[:2]).all() & was_stored),
            Cover(was_accepted & ((returned & in_row) != 0)),
        ]
        return m


KEEPING_PROOFS: Final = (
    Proof(
        "from reset on, each block is in one list, none that is kept is written, and what is not charged is free",
        Keeping,
        parameters={"pools": (2,)},
        cycles=13,
        induction=0,
        mutants=(
            Change(
                "a pool's list ends a block early",
                "crossing/buffer.py",
                "init=end - 1, name",
                "init=end - 2, name",
            ),
            Change(
                "a packet that is cancelled is charged twice",
                "crossing/buffer.py",
                "free.eq((free + cancelled - charged)",
                "free.eq((free - cancelled - charged)",
            ),
        ),
    ),
    Proof(
        "from reset on, the same in two pools of a block each, whose blocks stay where they are",
        Keeping,
        parameters={"pools": (1, 1)},
        cycles=11,
        induction=0,
        reaches=13,
        mutants=(
            Change(
                "what is released is behind the list of another pool",
                "crossing/buffer.py",
                "link.addr.eq(select(release.pool, tails))",
                "link.addr.eq(tails[0])",
            ),
        ),
    ),
)
