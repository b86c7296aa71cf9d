"""The headers of a trap's packet (docs/management.md, section 5)."""

from typing import Final

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.mad_head import TRANSACTION_WORD
from rtl.management.mad_packet import MAD_WORDS
from rtl.management.packet_memory import WHOLE, PacketWrite
from rtl.management.settings import SettingsSignature
from rtl.management.step import SET_SLOT, STEP_BITS, StepsSignature, first_step
from rtl.management.task import TaskSignature
from rtl.management.trap_packet import head_words
from rtl.management.traps import SentSignature
from wire.parameters import NodeParameters, SwitchParameters

__all__ = ["TrapHead"]

_FIRST_STEP: Final = first_step(SET_SLOT)


class TrapHead(wiring.Component):
    """Writes a trap's packet but for its data and LIDs, a word in each step.

    Members:
        steps, task, settings: see `Work`, `Decision`, `Settings`.
        sent: the trap.
        write: to the packet.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        super().__init__(
            {
                "steps": In(StepsSignature()),
                "task": In(TaskSignature()),
                "settings": In(SettingsSignature(parameters)),
                "sent": In(SentSignature()),
                "write": Out(PacketWrite),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Its count is that of step 0."""
        m = Module()
        steps, write = self.steps, self.write
        index = Signal(STEP_BITS)
        m.d.comb += index.eq(steps.number - _FIRST_STEP)
        with m.If(steps.first & self.task.trap):
            m.d.comb += [write.bytes.eq(WHOLE), write.index.eq(TRANSACTION_WORD + 1), write.word.eq(self.sent.count)]
        with m.If(steps.go & self.task.trap & (index < MAD_WORDS) & (index != TRANSACTION_WORD + 1)):
            m.d.comb += [write.bytes.eq(WHOLE), write.index.eq(index)]
            with m.Switch(index):
                for number, word in head_words(self._is_switch, self.sent.trap, self.settings.master_sm_sl).items():
                    with m.Case(number):
                        m.d.comb += write.word.eq(word)
        return m
