"""From the receive buffer to the host (docs/pipeline.md, section 9)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.crc import fingerprint_step, lanes_of
from rtl.link.transmit import SendRow
from rtl.trace import TraceSignature
from rtl.widths import SLOT_BITS
from wire.crc import FINGERPRINT_INIT, FINGERPRINT_WIDTH
from wire.trace import Kind

__all__ = ["RECEIVE_KINDS", "HostReceive", "HostWordSignature"]

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
        begun = Signal(24)
        second = Signal()  # the row after a packet's row 0
        n = Signal.like(row.n)
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
        start = Signal(32)
        fingerprint = Signal(FINGERPRINT_WIDTH)
        first_cycle = Mux(words.first, cycle, start)
        before = Mux(words.first, Const(FINGERPRINT_INIT, FINGERPRINT_WIDTH), fingerprint)
        after = fingerprint_step(before, lanes_of(words.data))
        m.d.sync += cycle.eq(cycle + 1)
        with m.If(words.valid):
            m.d.sync += [start.eq(first_cycle), fingerprint.eq(after)]
        record = self.trace.payload[0]
        m.d.comb += [
            self.trace.valid.eq(words.valid & words.last),
            record[0].eq(words.slot),
            record[1].eq(n),
            record[2].eq(first_cycle),
            record[3].eq(~after),
        ]
        return m
