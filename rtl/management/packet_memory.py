"""The packet that the agent works on, in words."""

from typing import Final

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.management.mad_packet import MAD_WORDS
from rtl.management.place import WORD_BITS, Place
from wire.packet import WORD_BYTES

__all__ = ["WHOLE", "PacketMemory", "PacketReadSignature", "PacketWrite", "bytes_of"]

PacketWrite = data.StructLayout(
    {
        "bytes": WORD_BYTES,
        "index": range(MAD_WORDS),
        "word": WORD_BITS,
    }
)
"""Bytes to write in one word; bit 0 of `bytes` is its last byte."""

WHOLE: Final = (1 << WORD_BYTES) - 1


def bytes_of(*fields: Place) -> int:
    """The bytes of their word in which these fields stand, as `PacketWrite` has them."""
    return sum(1 << byte for byte in range(WORD_BYTES) if any(field.mask >> 8 * byte & 0xFF for field in fields))


class PacketReadSignature(wiring.Signature):
    """A word to read, seen from who wants it."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "index": Out(range(MAD_WORDS))})


class PacketMemory(wiring.Component):
    """One packet.

    Members:
        write: given in cycle c, it is seen by a read given in c+2; a read given in c+1 does not take place.
        read: a word to read; in the next cycle it is `word`, which stays until the next read.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "write": In(PacketWrite),
                "read": In(PacketReadSignature()),
                "word": Out(WORD_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One block RAM, and a register before it. It never has to read what it is just writing."""
        m = Module()
        m.submodules.memory = memory = Memory(shape=WORD_BITS, depth=1 << len(self.read.index), init=[])
        writer = memory.write_port(granularity=8)
        reader = memory.read_port()
        write = Signal(PacketWrite)
        m.d.sync += write.eq(self.write)
        m.d.comb += [
            writer.en.eq(write.bytes),
            writer.addr.eq(write.index),
            writer.data.eq(write.word),
            reader.en.eq(self.read.valid & ~write.bytes.any()),
            reader.addr.eq(self.read.index),
            self.word.eq(reader.data),
        ]
        return m
