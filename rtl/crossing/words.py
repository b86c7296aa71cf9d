"""Between rows and words: packets of a host or an agent (docs/pipeline.md, section 9)."""

from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import FillSignature
from rtl.link.crc import fingerprint_step, lanes_of
from rtl.link.packet_check import StoreRow
from rtl.link.transmit import SendRow
from rtl.rotation import RotatingChoice, number_of, select
from rtl.trace import TraceSignature, report
from rtl.widths import LENGTH_BITS, SLOT_BITS
from wire.crc import FINGERPRINT_INIT, FINGERPRINT_WIDTH
from wire.symbols import Control
from wire.trace import Kind
from wire.trace_layout import Deliver, Send

__all__ = ["RECEIVE_KINDS", "SEND_KINDS", "HostReceive", "HostSend", "HostStreamSignature", "HostWordSignature"]

SEND_KINDS: Final = (Kind.SEND,)
"""What slot i of the trace holds."""


HostStreamSignature = wiring.Signature({"valid": In(1), "length": In(LENGTH_BITS), "data": In(32), "ready": Out(1)})
"""Packets that the host has for one slot, seen from the adapter.

Members:
    valid: there is a packet; it stays until its last word has been taken.
    length: its PktLen in words.
    data: its next word, first byte highest.
    ready: that word is taken in this cycle.
"""


class HostSend(wiring.Component):
    """Takes a packet at a time and gives it the form of one that was received.

    Members:
        streams: of each slot.
        taken: one is taken, in this cycle (a).
        fill: packets into the send buffer. `accept` of one taken is in the cycle after, its row r follows at a+3+r, as
            if it had been on the wires at a+1+r. Until it is whole no other is taken: nobody sees that it is charged
            so late.
        trace: slots in the order of `SEND_KINDS`.
    """

    def __init__(self, vls: int) -> None:
        self.slots = vls + 1
        super().__init__(
            {
                "streams": Out(HostStreamSignature).array(self.slots),
                "taken": Out(1),
                "fill": Out(FillSignature(self.slots)),
                "trace": Out(TraceSignature(len(SEND_KINDS))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Choose a stream, take its words, make rows."""
        m = Module()
        slots, fill = range(self.slots), self.fill

        # Cycle a: the first stream in turn whose packet fits.
        taking = Signal()  # words are being taken
        m.submodules.turn = turn = RotatingChoice(self.slots)
        whole_blocks = [stream.length[4:] for stream in self.streams]  # its need is one more
        fitting = Cat(self.streams[slot].valid & (whole_blocks[slot] < fill.free[slot]) for slot in slots)
        chosen = Signal(self.slots)
        length = Signal(LENGTH_BITS)
        m.d.comb += [
            turn.requests.eq(fitting),
            turn.serve.eq(self.taken),
            turn.served.eq(chosen),
            chosen.eq(Mux(taking, 0, turn.chosen)),
            length.eq(select(chosen, [stream.length for stream in self.streams])),
            self.taken.eq(chosen.any()),
        ]

        # Cycles a+1 to a+n: a word is taken. Row r is made of word r and the last byte of word r-1; the
        # last row has that byte only, and comes when the next packet may already be chosen.
        row = Signal(StoreRow)
        last_byte = Signal(8, reset_less=True)
        word = Array(stream.data for stream in self.streams)[row.slot]
        with m.If(self.taken):
            m.d.sync += [
                taking.eq(1),
                row.valid.eq(1),
                row.index.eq(0),
                row.first.eq(1),
                row.last.eq(0),
                row.accepted.eq(1),
                row.slot.eq(number_of(chosen)),
                row.n.eq(length),
                row.need.eq(select(chosen, [blocks + 1 for blocks in whole_blocks])),
            ]
        with m.Else():
            m.d.sync += [
                taking.eq(taking & (row.index + 1 != row.n)),
                row.valid.eq(taking),
                row.index.eq(row.index + taking),  # holds still between packets
                row.first.eq(0),
                row.last.eq(taking & (row.index + 1 == row.n)),
            ]
        for slot in slots:
            m.d.comb += self.streams[slot].ready.eq(taking & (row.slot == slot))
        m.d.sync += last_byte.eq(word)
        m.d.comb += row.data.eq(Cat(word[8:], Mux(row.first, Const(Control.SDP, 8), last_byte)))

        # The packet is charged with row 0, and as rows from the wires, they reach the buffer two cycles later.
        registered = Signal(StoreRow)
        m.d.comb += [
            fill.accept.eq(row.valid & row.first),
            fill.accept_slot.eq(row.slot),
            fill.accept_need.eq(row.need),
        ]
        m.d.sync += [registered.eq(row), fill.write.eq(registered)]

        report(m, self.trace, 0, row.valid & row.first, Send, slot=row.slot, pkt_len=row.n)
        return m


RECEIVE_KINDS: Final = (Kind.DELIVER,)
"""What slot i of the trace holds."""


HostWordSignature = wiring.Signature(
    {"valid": Out(1), "data": Out(32), "first": Out(1), "last": Out(1), "slot": Out(SLOT_BITS)}
)
"""Words of received packets that go to the host.

Members:
    valid: there is a word in this cycle.
    data: bytes 4w..4w+3 of the packet from LRH to ICRC, first byte highest.
    first, last: the packet's first and last word.
    slot: the slot it came in on.
"""


class HostReceive(wiring.Component):
    """Makes words of rows.

    Members:
        row: a row of the packet read, in cycle x_r + 2.
        words: to the host; word w in cycle x_(w+1) + 3.
        trace: slots in the order of `RECEIVE_KINDS`.
    """

    row: In(SendRow)
    words: Out(HostWordSignature)
    trace: Out(TraceSignature(len(RECEIVE_KINDS)))

    def elaborate(self, platform: object) -> Module:
        """Word w is the last three bytes of row w and the first of row w + 1."""
        m = Module()
        row, words = self.row, self.words
        begun = Signal(24, reset_less=True)
        second = Signal(reset_less=True)  # the row after a packet's row 0
        n = Signal.like(row.n, reset_less=True)
        with m.If(row.valid):
            m.d.sync += [begun.eq(row.data), second.eq(row.first)]
        m.d.sync += [
            words.valid.eq(row.valid & ~row.first),
            words.data.eq(Cat(row.data[24:], begun)),
            words.first.eq(second),
            words.last.eq(row.last),
            words.slot.eq(row.slot),
            n.eq(row.n),
        ]

        # DELIVER, with the last word.
        cycle = Signal(32)
        start = Signal(32, reset_less=True)
        fingerprint = Signal(FINGERPRINT_WIDTH, reset_less=True)
        first_cycle = Mux(words.first, cycle, start)
        before = Mux(words.first, Const(FINGERPRINT_INIT, FINGERPRINT_WIDTH), fingerprint)
        after = fingerprint_step(m, before, lanes_of(words.data))
        m.d.sync += cycle.eq(cycle + 1)
        with m.If(words.valid):
            m.d.sync += [start.eq(first_cycle), fingerprint.eq(after)]
        fields = {"slot": words.slot, "pkt_len": n, "first_cycle": first_cycle, "fingerprint": ~after}
        report(m, self.trace, 0, words.valid & words.last, Deliver, **fields)
        return m
