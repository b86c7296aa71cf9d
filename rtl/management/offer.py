"""The packet that the agent offers, with an ICRC of its own (docs/management.md, section 2)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.crossing.words import HostStreamSignature
from rtl.management.attribute import Attribute
from rtl.management.attribute_memory import BLOCK_WORDS
from rtl.management.icrc import Icrc
from rtl.management.mad_head import DATA_WORD
from rtl.management.mad_packet import MAD_WORDS
from rtl.management.packet import AHEAD
from rtl.management.place import WORD_BITS, PacketWrite
from rtl.management.task import Stage
from wire.parameters import NodeParameters

__all__ = ["Offer"]


class Offer(Stage):
    """Makes a stream of the packet's words, and says of a packet that comes whether its ICRC is right.

    Members:
        came: a word of a packet that comes. `right`: its words so far end with their right ICRC.
        packet_word: of the packet, as it is read for the stream (see `Packet`).
        attribute: of an answer.
        offering: the packet is offered.
        stream: the packet. `sent`: its last word is taken.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        super().__init__(
            parameters,
            came=In(PacketWrite),
            right=Out(1),
            packet_word=In(WORD_BITS),
            attribute=In(Attribute),
            offering=In(1),
            stream=In(HostStreamSignature),
            sent=Out(1),
        )

    def elaborate(self, platform: object) -> Module:
        """A word waits before the stream. There is one ICRC for both directions."""
        m = Module()
        m.submodules.icrc = icrc = Icrc()
        steps, stream, came = self.steps, self.stream, self.came
        taken = stream.ready
        next_word, count = Signal(WORD_BITS), Signal(range(MAD_WORDS))
        # Behind a PMA's attribute nothing stays.
        beyond = self.task.pma & self.attribute.answering & (count >= DATA_WORD + BLOCK_WORDS - 1)
        with m.If(taken | (steps.at_in_slot(AHEAD + 1) & steps.last_slot)):
            m.d.sync += next_word.eq(Mux(beyond, 0, self.packet_word))
        with m.If(taken):
            m.d.sync += count.eq(count + 1)
        with m.Elif(~self.offering):
            m.d.sync += count.eq(0)
        ends = count == MAD_WORDS - 1
        m.d.comb += [
            icrc.take.eq(Mux(self.offering, taken, came.bytes.any())),
            icrc.word.eq(Mux(self.offering, next_word, came.word)),
            icrc.index.eq(Mux(self.offering, count, came.index)),
            self.right.eq(icrc.good),
            stream.valid.eq(self.offering),
            stream.length.eq(MAD_WORDS),
            stream.data.eq(Mux(ends, icrc.ends, next_word)),
            self.sent.eq(taken & ends),
        ]
        return m
