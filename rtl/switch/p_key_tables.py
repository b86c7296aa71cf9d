"""The P_Key tables of all ports, as an input looks into them: all of a table's entries at once.

Of a P_Key there are three chunks, and of each chunk a block RAM, whose word {table, chunk's value} says which of the
table's entries have that value there. An entry that is in all three words read for a P_Key is that P_Key.
"""

from typing import Final

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import NO_COLLISION
from rtl.rotation import any_of
from wire.port_tables import P_KEY_TABLE

__all__ = ["CHUNKS", "CHUNK_BITS", "P_KEY_BITS", "PKeyTables", "entries_at_reset", "p_key_change_layout"]

P_KEY_BITS: Final = P_KEY_TABLE.entry.width
"""The highest says full member."""

CHUNKS: Final = ("first", "second", "third")
"""Of the bits below that, each of CHUNK_BITS, the lowest first. With the third goes the full member's."""

CHUNK_BITS: Final = (P_KEY_BITS - 1) // len(CHUNKS)


def p_key_change_layout(tables: int) -> data.StructLayout:
    """The word that takes the place of another in every input's tables: of so many, and in one chunk's memory, or none.

    `full` goes with `value` in the third.
    """
    memories = dict.fromkeys(CHUNKS, 1)
    word = {"value": CHUNK_BITS, "full": 1, "table_number": range(tables), "entries": P_KEY_TABLE.count}
    return data.StructLayout(memories | word)


def entries_at_reset(value: int | Value) -> int | Value:
    """A table's entries that have this value of a chunk, whichever chunk it is: the first one is 0xFFFF.

    What is 0 in its lower 15 bits is in no word, so no table has such a P_Key.
    """
    all_ones = (1 << CHUNK_BITS) - 1
    return int(value == all_ones) if isinstance(value, int) else value == all_ones


class PKeyTables(wiring.Component):
    """One input's copy of so many tables, with one reader.

    A full member's entry is in the words of the third chunk for both kinds of P_Key, a limited one's in that for full
    members' P_Keys alone. So a P_Key finds what may hear it, and that of a full member finds all of its partition.

    Members:
        change: a word is written; lookups of the same cycle see it.
        table_number, key: in which table is looked, and what for.
        has: it is there, in the cycle after.
    """

    def __init__(self, tables: int) -> None:
        self.tables = tables
        super().__init__(
            {
                "change": In(p_key_change_layout(tables)),
                "table_number": In(range(tables)),
                "key": In(P_KEY_BITS),
                "has": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Three words. In place of one that is written meanwhile, which a block RAM answers with anything, the new."""
        m = Module()
        change, key = self.change, self.key
        same_table = Signal()
        m.d.comb += same_table.eq(change.table_number == self.table_number)
        words, written = [], []
        for place, name in enumerate(CHUNKS):
            value = key[CHUNK_BITS * place :][:CHUNK_BITS]
            is_last = name == CHUNKS[-1]
            new, read_for = (Cat(change.value, change.full), Cat(value, key[-1])) if is_last else (change.value, value)
            bits = len(read_for)
            m.submodules[name] = memory = Memory(
                shape=P_KEY_TABLE.count,
                depth=self.tables << bits,
                init=[entries_at_reset(word % (1 << CHUNK_BITS)) for word in range(self.tables << bits)],
                attrs=NO_COLLISION,
            )
            write, read = memory.write_port(), memory.read_port()
            is_written, was_written = Signal(name=f"{name}_is_written"), Signal(name=f"{name}_was_written")
            m.d.comb += [
                write.addr.eq(Cat(new, change.table_number)),
                write.data.eq(change.entries),
                write.en.eq(change[name]),
                read.addr.eq(Cat(read_for, self.table_number)),
                is_written.eq(change[name] & same_table & (new == read_for)),
            ]
            m.d.sync += was_written.eq(is_written)
            written.append(is_written)
            words.append(read.data | was_written.replicate(P_KEY_TABLE.count))
        new_entries = Signal(P_KEY_TABLE.count)
        m.d.sync += new_entries.eq(~0)
        with m.If(any_of(written)):
            m.d.sync += new_entries.eq(change.entries)
        m.d.comb += self.has.eq((words[0] & words[1] & words[2] & new_entries).any())
        return m
