"""Records of what a port sent: TX_DATA, TX_FCP, TX_DISCARD (`wire.trace`)."""

from typing import Final

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.crc import fingerprint_step, lanes_of
from rtl.link.transmit import SentRow
from rtl.trace import TraceSignature, report
from wire.crc import FINGERPRINT_INIT, FINGERPRINT_WIDTH
from wire.trace import Kind
from wire.trace_layout import TxData, TxDiscard, TxFcp

__all__ = ["SENT_KINDS", "TransmitTrace"]

SENT_KINDS: Final = (Kind.TX_DATA, Kind.TX_FCP, Kind.TX_DISCARD)
"""What slot i of the trace holds."""


class TransmitTrace(wiring.Component):
    """Makes the records, in the cycle in which a packet's end row is on the wires.

    Members:
        on_wires: see `rtl.link.transmit.Transmitter`; `data` are the wires' 32 data bits.
        trace: slots in the order of `SENT_KINDS`.
    """

    on_wires: In(SentRow)
    data: In(32)
    trace: Out(TraceSignature(len(SENT_KINDS)))

    def elaborate(self, platform: object) -> Module:
        """Build the records."""
        m = Module()
        row = self.on_wires

        cycle = Signal(32)
        m.d.sync += cycle.eq(cycle + 1)

        fingerprint = Signal(FINGERPRINT_WIDTH, reset_less=True)
        fingerprint_after = Signal(FINGERPRINT_WIDTH)
        start = Signal.like(cycle, reset_less=True)
        lrh = Signal(32, reset_less=True)
        state = Mux(row.first, Const(FINGERPRINT_INIT, FINGERPRINT_WIDTH), fingerprint)
        m.d.comb += fingerprint_after.eq(fingerprint_step(m, state, lanes_of(self.data)))
        with m.If(row.valid):
            m.d.sync += fingerprint.eq(fingerprint_after)
            with m.If(row.first):
                m.d.sync += [start.eq(cycle), lrh[8:].eq(self.data[:24])]
            with m.Elif(row.index == 1):
                m.d.sync += lrh[:8].eq(self.data[24:])

        ends, link = row.valid & row.last, row.fields
        of_both = {"slot": row.slot, "input": row.input, "pkt_len": row.n, "end_row": row.index}
        as_sent = {
            "marked_bad": row.bad,
            "fecn": row.fecn,
            "first_cycle": start,
            "fingerprint": ~fingerprint_after,
            "lrh": lrh,
        }
        report(m, self.trace, 0, ends & ~row.refused, TxData, **of_both, **as_sent)
        report(m, self.trace, 1, row.link, TxFcp, op=link.op, vl=link.vl, fctbs=link.fctbs, fccl=link.fccl)
        report(m, self.trace, 2, ends & row.refused, TxDiscard, **of_both, reason=row.reason)
        return m
