"""Records of what a port sent: TX_DATA, TX_FCP, TX_DISCARD (`wire.trace`)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.crc import fingerprint_step, lanes_of
from rtl.link.transmit import SentRow
from rtl.trace import RECORD_LAYOUT
from wire.crc import FINGERPRINT_INIT, FINGERPRINT_WIDTH

__all__ = ["TransmitTrace"]


class TransmitTrace(wiring.Component):
    """Makes the records, in the cycle in which a packet's end row is on the wires.

    Members:
        on_wires: see `rtl.link.transmit.Transmitter`; `data` are the wires' 32 data bits.
        data_valid, link_valid, discard_valid: there is a record of TX_DATA, TX_FCP, TX_DISCARD.
        data_record, link_record, discard_record: its words.
    """

    on_wires: In(SentRow)
    data: In(32)
    data_valid: Out(1)
    data_record: Out(RECORD_LAYOUT)
    link_valid: Out(1)
    link_record: Out(RECORD_LAYOUT)
    discard_valid: Out(1)
    discard_record: Out(RECORD_LAYOUT)

    def elaborate(self, platform: object) -> Module:
        """Build the records."""
        m = Module()
        row = self.on_wires

        cycle = Signal(32)
        m.d.sync += cycle.eq(cycle + 1)

        fingerprint = Signal(FINGERPRINT_WIDTH)
        fingerprint_after = Signal(FINGERPRINT_WIDTH)
        start = Signal.like(cycle)
        lrh = Signal(32)
        state = Mux(row.first, Const(FINGERPRINT_INIT, FINGERPRINT_WIDTH), fingerprint)
        m.d.comb += fingerprint_after.eq(fingerprint_step(state, lanes_of(self.data)))
        with m.If(row.valid):
            m.d.sync += fingerprint.eq(fingerprint_after)
            with m.If(row.first):
                m.d.sync += [start.eq(cycle), lrh[8:].eq(self.data[:24])]
            with m.Elif(row.index == 1):
                m.d.sync += lrh[:8].eq(self.data[24:])

        words = Cat(row.n, Const(0, 16 - len(row.n)), row.index)
        sent, discarded, link = self.data_record, self.discard_record, self.link_record
        m.d.comb += [
            self.data_valid.eq(row.valid & row.last & ~row.refused),
            sent[0].eq(Cat(row.slot, Const(0, 4), row.bad, Const(0, 7), row.input)),
            sent[1].eq(words),
            sent[2].eq(start),
            sent[3].eq(~fingerprint_after),
            sent[4].eq(lrh),
            self.discard_valid.eq(row.valid & row.last & row.refused),
            discarded[0].eq(Cat(row.slot, Const(0, 12), row.input)),
            discarded[1].eq(words),
            self.link_valid.eq(row.link),
            link[0].eq(Cat(row.fields.op, Const(0, 4), row.fields.vl)),
            link[1].eq(Cat(row.fields.fccl, Const(0, 4), row.fields.fctbs)),
        ]
        return m
