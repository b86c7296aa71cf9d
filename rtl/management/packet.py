"""The packet that the agent works on, and which word of it is read at which step. Nothing of that is seen outside."""

from typing import Final

from amaranth.hdl import Module, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.management.mad_head import DATA_WORD, M_KEY_WORD
from rtl.management.mad_packet import MAD_WORDS
from rtl.management.place import WORD_BITS, PacketWrite
from rtl.management.step import NEXT_WORD, SET_SLOT
from rtl.management.task import Stage
from wire.parameters import NodeParameters

__all__ = ["AHEAD", "Packet"]

_PATH_STEP: Final = 2
_M_KEY_STEP: Final = 9

AHEAD: Final = 5
"""The step of the last slot from which on the packet is read ahead; those before write its new headers."""


class Packet(Stage):
    """The packet in a memory.

    Members:
        write: given in cycle c, it is seen by a read of c+2.
        path_word: the word with the path's entry, in step 2.
        taken: the word offered is taken. One waits then in the memory's register, and one before the stream.
        word: of the path, in step 4; of a violating SMP's M_Key, in steps 11 and 12; of the data that the next slot is
            of, in the last step of a slot; at the end what is offered.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        path_word = In(range(MAD_WORDS))
        super().__init__(parameters, write=In(PacketWrite), path_word=path_word, taken=In(1), word=Out(WORD_BITS))

    def elaborate(self, platform: object) -> Module:
        """One block RAM, and a register before it. It never has to read what it is just writing."""
        m = Module()
        index = Signal(range(MAD_WORDS))
        m.submodules.memory = memory = Memory(shape=WORD_BITS, depth=1 << len(index), init=[])
        writer = memory.write_port(granularity=8)
        reader = memory.read_port()
        write = Signal(PacketWrite)
        steps, last = self.steps, self.steps.last_slot
        reads = (steps.go & ~(last & (steps.in_slot > AHEAD + 1))) | self.taken
        m.d.sync += write.eq(self.write)
        m.d.comb += [
            writer.en.eq(write.bytes),
            writer.addr.eq(write.index),
            writer.data.eq(write.word),
            reader.en.eq(reads & ~write.bytes.any()),
            reader.addr.eq(index),
            self.word.eq(reader.data),
        ]
        with m.If(steps.at(_PATH_STEP)):
            m.d.sync += index.eq(self.path_word)
        for half in range(2):
            with m.If(steps.at(_M_KEY_STEP + half) & self.task.violated):
                m.d.sync += index.eq(M_KEY_WORD + half)
        with m.If(steps.at_in_slot(NEXT_WORD) & ~last):
            m.d.sync += index.eq(DATA_WORD + 1 - SET_SLOT + steps.slot)
        with m.If(steps.at_in_slot(AHEAD - 1) & last):
            m.d.sync += index.eq(0)
        with m.If(((steps.at_in_slot(AHEAD) | steps.at_in_slot(AHEAD + 1)) & last) | self.taken):
            m.d.sync += index.eq(index + 1)
        return m
