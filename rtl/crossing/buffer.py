"""The packet buffer of one input: pools of 64-byte blocks, one for each slot.

A pool's free blocks form a list, linked through the memory `next` and in one chain from reset on. A
packet takes a prefix of that list, so its blocks are linked in order before its first row arrives:
it is written along the list, and only when it has ended does the list's head move behind its last
block. A packet that is not accepted, or cancelled, therefore needs no undoing. Each pool has one
block more than it counts, so that the first rows can be stored before acceptance is known and the
list is never empty.

`free` is the count of the contract, which takes a packet's full `need` at acceptance and returns it
with the release; a packet that ends early occupies fewer blocks for a while than it is charged for.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.time_limits import LifeClock, Stamp, outlived
from rtl.link.packet_check import StoreRow
from rtl.restoration import restored_write_port
from rtl.rotation import select
from rtl.widths import FREE_BITS, NEED_BITS, ROW_BITS, SLOT_BITS

__all__ = [
    "ASIDE_BITS",
    "LUT_RAM",
    "NO_COLLISION",
    "ROWS_OF_BLOCK",
    "Buffer",
    "BufferReadSignature",
    "FillSignature",
    "StoredRow",
    "block_bits",
    "memory_by_block",
    "release_layout",
    "rows_with_next",
    "verdict_layout",
]

ROWS_OF_BLOCK = 16

ASIDE_BITS = 2
"""Bits that a row leaves of the width of four block RAMs, nine bits each."""

NO_COLLISION = {"no_rw_check": 1}
"""Attribute of a memory in which a word read while it is written does not matter: synthesis need not keep
the old one."""

LUT_RAM = {"ram_style": "distributed"}
"""Attribute of a memory whose answer is needed sooner than a block RAM yields it, or that is too small for one."""

_BLOCK_RAM = {"ram_style": "block"}
_LEAST_FOR_BLOCK_RAM = 33
"""Words. Fewer take two rows of LUT RAM."""


def memory_by_block(blocks: int) -> dict[str, Any]:
    """Attributes of a memory of a word for each of so many blocks, as `NO_COLLISION`."""
    return NO_COLLISION | (LUT_RAM if blocks < _LEAST_FOR_BLOCK_RAM else _BLOCK_RAM)


StoredRow = data.StructLayout({"data": 32, "last": 1, "bad": 1})
"""A row as stored: `last` marks the packet's end row (also an early one), `bad` goes with it."""


def block_bits(pools: Sequence[int]) -> int:
    """Bits of a block's number in a buffer of pools of these numbers of blocks."""
    return (sum(pools) + len(pools) - 1).bit_length()


def rows_with_next(bits: int) -> range:
    """The rows of a block beside which the number of the block behind it is stored, its lowest bits first.

    They are the last of which a reader has the answers in registers by the time it asks for the block's last row: that
    is the cycle in which the last but one is answered, or later.
    """
    end = ROWS_OF_BLOCK - 2
    return range(end - -(-bits // ASIDE_BITS), end)


def release_layout(bits: int, pools: int) -> data.StructLayout:
    """A packet's blocks that return, charged as `need`: the chain `first`..`last` of this pool, one-hot, or none if not
    `valid`."""
    return data.StructLayout({"valid": 1, "pool": pools, "need": NEED_BITS, "first": bits, "last": bits})


def verdict_layout(bits: int) -> data.StructLayout:
    """What is known of a packet that has ended: it is `bad`; it has `outlived` its life time; its last block, `end`. Of
    one that has not, the first two are 0."""
    return data.StructLayout({"bad": 1, "outlived": 1, "end": bits})


class FillSignature(wiring.Signature):
    """Packets that enter a buffer, seen from their source.

    Members:
        write: rows received, two cycles after the wires. A row stored in a cycle is seen by reads
            of the next cycle on, the verdict likewise.
        accept, accept_slot, accept_need: a packet is accepted; charged to `free` in the next cycle.
        cancel: with `write.last` of an accepted packet: it returns its blocks at once.
        free: free blocks of each slot.
    """

    def __init__(self, slots: int) -> None:
        super().__init__(
            {
                "write": Out(StoreRow),
                "accept": Out(1),
                "accept_slot": Out(SLOT_BITS),
                "accept_need": Out(NEED_BITS),
                "cancel": Out(1),
                "free": In(data.ArrayLayout(unsigned(FREE_BITS), slots)),
            }
        )


class BufferReadSignature(wiring.Signature):
    """One reader's access, seen from the buffer. All answers come in the cycle after.

    Members:
        block, row: the row to read.
        stored: that row. `aside`: what is stored beside it, see `rows_with_next`.
    """

    def __init__(self, bits: int) -> None:
        super().__init__(
            {
                "block": In(bits),
                "row": In(ROW_BITS),
                "stored": Out(StoredRow),
                "aside": Out(ASIDE_BITS),
            }
        )


class Buffer(wiring.Component):
    """Rows of one input's packets (docs/pipeline.md, section 3.4).

    Args:
        pools: blocks of each slot.
        readers: how many there are.
        stamped: packets get a stamp when they end (section 7.2).

    Members:
        fill: packets to be stored.
        first: the first block of the packet being written, from the cycle after its row 0 on.
        reads: one interface for each reader.
        taken: the first block of a packet; `verdict` in the cycle after, see `verdict_layout`.
        release: a packet's blocks return; seen in `free` in the next cycle.
        clock: what the stamps are of.
    """

    def __init__(self, pools: Sequence[int], readers: int, *, stamped: bool) -> None:
        self.pools = tuple(pools)
        self.stamped = stamped
        self.blocks = sum(pools) + len(pools)
        self.bits = block_bits(pools)
        super().__init__(
            {
                "fill": In(FillSignature(len(self.pools))),
                "first": Out(self.bits),
                "reads": Out(BufferReadSignature(self.bits)).array(readers),
                "taken": In(self.bits),
                "verdict": Out(verdict_layout(self.bits)),
                "release": In(release_layout(self.bits, len(self.pools))),
                **({"clock": In(LifeClock)} if stamped else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Writer, memories, readers, pools."""
        m = Module()
        bits = self.bits
        blocks = self.blocks
        starts = accumulate((pool + 1 for pool in self.pools[:-1]), initial=0)

        m.submodules.next = following = Memory(
            shape=unsigned(bits),
            depth=blocks,
            init=[(block + 1) % blocks for block in range(blocks)],
            attrs=memory_by_block(blocks),
        )
        link = restored_write_port(m, following, lambda block: Mux(block == blocks - 1, 0, block + 1))
        walk = following.read_port()

        # Writer: row 0 goes to the head of its slot's free list, then along the list.
        fill, write = self.fill, self.fill.write
        heads = Array(Signal(bits, init=start, name=f"head_{slot}") for slot, start in enumerate(starts))
        ended = Signal()  # a packet ended in the last cycle: the list's new head is on the walk port
        ended_slot = Signal(SLOT_BITS, reset_less=True)
        current = Signal(bits, reset_less=True)
        block = Signal(bits)
        slot = Signal(SLOT_BITS)  # a VL that has no slot writes to the last one's spare block
        m.d.comb += slot.eq(Mux(write.slot < len(self.pools), write.slot, len(self.pools) - 1))
        with m.If(write.valid & write.first):
            m.d.comb += block.eq(Mux(ended & (ended_slot == slot), walk.data, heads[slot]))
        with m.Elif(write.valid & (write.index[:ROW_BITS] == 0)):
            m.d.comb += block.eq(walk.data)
        with m.Else():
            m.d.comb += block.eq(current)
        # The walk port reads again in every cycle: a release may yet link the block behind.
        m.d.comb += walk.addr.eq(block)
        m.d.sync += current.eq(block)
        with m.If(write.valid & write.first):
            m.d.sync += self.first.eq(block)

        ending = Signal()
        m.d.comb += ending.eq(write.valid & write.last & write.accepted)
        m.d.sync += [ended.eq(ending & ~fill.cancel), ended_slot.eq(slot)]
        with m.If(ended):
            m.d.sync += heads[ended_slot].eq(walk.data)

        # Before acceptance is known, rows 0 and 1 go to the spare block.
        store = Signal()
        m.d.comb += store.eq(write.valid & (write.accepted | (write.index[1:] == 0)))

        # The list is linked as far as the packet goes before it is accepted, and so are rows from the third on.
        aside = Signal(ASIDE_BITS)
        for place, row in enumerate(rows_with_next(bits)):
            with m.If(write.index[:ROW_BITS] == row):
                m.d.comb += aside.eq(walk.data[place * ASIDE_BITS :])

        self._connect_readers(m, store, block, aside)
        self._keep_verdicts(m, ending, block)
        self._keep_pools(m, link)
        return m

    def _connect_readers(self, m: Module, store: Value, block: Value, aside: Value) -> None:
        """Each has a copy of the rows, in which the row written is stored in this block, and this beside it."""
        write = self.fill.write
        word = data.StructLayout({"row": StoredRow, "aside": ASIDE_BITS})
        for number, reader in enumerate(self.reads):
            rows = Memory(shape=word, depth=self.blocks * ROWS_OF_BLOCK, init=[], attrs=NO_COLLISION)
            m.submodules[f"rows_{number}"] = rows
            store_port = rows.write_port()
            row_port = rows.read_port()
            m.d.comb += [
                store_port.en.eq(store),
                store_port.addr.eq(Cat(write.index[:ROW_BITS], block)),
                store_port.data.row.data.eq(write.data),
                store_port.data.row.last.eq(write.last),
                store_port.data.row.bad.eq(write.bad),
                store_port.data.aside.eq(aside),
                row_port.addr.eq(Cat(reader.row, reader.block)),
                reader.stored.eq(row_port.data.row),
                reader.aside.eq(row_port.data.aside),
            ]

    def _keep_verdicts(self, m: Module, ending: Value, block: Value) -> None:
        """By a packet's first block: cleared with row 0, given with the end row, which is stored in this block."""
        write = self.fill.write
        stamp = {"ended": 1, "stamp": Stamp} if self.stamped else {}
        shape = data.StructLayout({"bad": 1, "end": self.bits, **stamp})
        m.submodules.verdicts = verdicts = Memory(
            shape=shape, depth=self.blocks, init=[], attrs=memory_by_block(self.blocks)
        )
        judge, asked = verdicts.write_port(), verdicts.read_port()
        m.d.comb += [
            judge.en.eq((write.valid & write.first) | ending),
            judge.addr.eq(Mux(write.first, block, self.first)),
            judge.data.bad.eq(~write.first & write.bad),
            judge.data.end.eq(block),
            asked.addr.eq(self.taken),
        ]

        # A verdict is not seen by a read in the cycle in which it is given, which the memory answers with anything. The
        # block that is taken comes late in its cycle.
        judge_en_before, judge_addr_before = Signal(), Signal(self.bits, reset_less=True)
        taken_before = Signal(self.bits, reset_less=True)
        judged = Signal()
        m.d.sync += [judge_en_before.eq(judge.en), judge_addr_before.eq(judge.addr), taken_before.eq(self.taken)]
        m.d.comb += [
            judged.eq(judge_en_before & (judge_addr_before == taken_before)),
            self.verdict.bad.eq(asked.data.bad & ~judged),
            self.verdict.end.eq(asked.data.end),
        ]
        if self.stamped:
            m.d.comb += [
                judge.data.ended.eq(~write.first),
                judge.data.stamp.eq(self.clock.now),
                self.verdict.outlived.eq(asked.data.ended & ~judged & outlived(self.clock, asked.data.stamp)),
            ]

    def _keep_pools(self, m: Module, link: Any) -> None:
        """A release appends its chain to its pool's free list."""
        fill, write, release = self.fill, self.fill.write, self.release
        ends = accumulate(blocks + 1 for blocks in self.pools)
        tails = [Signal(self.bits, init=end - 1, name=f"tail_{slot}") for slot, end in enumerate(ends)]
        m.d.comb += [
            link.en.eq(release.valid),
            link.addr.eq(select(release.pool, tails)),
            link.data.eq(release.first),
        ]
        for slot, capacity in enumerate(self.pools):
            free = Signal(range(capacity + 1), init=capacity, name=f"free_{slot}")
            cancelled = Mux(fill.cancel & (write.slot == slot), write.need, 0)
            released = Mux(release.pool[slot], release.need, 0)
            with m.If(release.pool[slot]):
                m.d.sync += tails[slot].eq(release.last)
            charged = Mux(fill.accept & (fill.accept_slot == slot), fill.accept_need, 0)
            # What is released is the last to be known. Unsigned, the sum is right by its lower bits.
            m.d.sync += free.eq((free + cancelled - charged)[: len(free)] + released)
            m.d.comb += fill.free[slot].eq(free)
