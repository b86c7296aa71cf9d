"""Which word of the packet is read at which step. Nothing of it is seen outside."""

from typing import Final

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.mad_head import DATA_WORD, M_KEY_WORD
from rtl.management.mad_packet import MAD_WORDS
from rtl.management.packet_memory import PacketReadSignature
from rtl.management.step import NEXT_WORD, SET_SLOT, StepsSignature
from rtl.management.task import TaskSignature

__all__ = ["AHEAD", "PacketReads"]

_PATH_STEP: Final = 2
_M_KEY_STEP: Final = 9

AHEAD: Final = 5
"""The step of the last slot from which on the packet is read ahead; those before write its new headers."""


class PacketReads(wiring.Component):
    """Reads the path's entry, a violating SMP's M_Key, the data word by word, and at the end what is offered.

    Members:
        steps, task: see `Work`, `Decision`.
        path_word: the word with the path's entry, in step 2.
        taken: the word offered is taken. One waits then in the memory's register, and one before the stream.
        read: from the packet's memory.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "steps": In(StepsSignature()),
                "task": In(TaskSignature()),
                "path_word": In(range(MAD_WORDS)),
                "taken": In(1),
                "read": Out(PacketReadSignature()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The index; in every other step the word is read again."""
        m = Module()
        steps, index = self.steps, self.read.index
        last = steps.last_slot
        m.d.comb += self.read.valid.eq((steps.go & ~(last & (steps.in_slot > AHEAD + 1))) | self.taken)
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
