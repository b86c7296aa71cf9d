"""Framing: from rows to packets (docs/pipeline.md, section 3.1)."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.link.row import HEAD_BITS, ROUTE_BITS, RowSignature, lrh_field
from rtl.widths import INDEX_BITS
from wire.symbols import LANES, Control

__all__ = ["ReceivedRow", "Receiver"]


ReceivedRow = data.StructLayout(
    {
        "data": 32,
        "index": INDEX_BITS,
        "first": 1,
        "body": 1,
        "header": 1,
        "end": 1,
        "marked_bad": 1,
        "cut": 1,
        "link_end": 1,
        "malformed": 1,
        "symbol_error": 1,
        "bad_packet": 1,
    }
)
"""What the row at c was found to be, in cycle c+1.

For a data packet: its row 0 (`first`), a row within (`body`; `header` with it if that is row 1
and the header is to be processed), its end row (`end`, with `marked_bad` for EBP), or the row
at which it is `cut`. For a link packet: its end row (`link_end`), or `malformed`.
`index` is that of the row (0 for row 0), `data` the row's.
"""


class Receiver(wiring.Component):
    """Follows the rows of one port.

    Members:
        row: the wires, in cycle c.
        enabled: the port receives in cycle c; else a packet being received is cut.
        index: the index of the row on the wires, if it belongs to a packet that has begun; cycle c.
        route: bytes 0..6 of the LRH when its row 1 is on the wires; cycle c.
        concerned: the row on the wires may be of a packet, or begin one; cycle c. Others are idle data.
        received: what the row was; cycle c+1.
        head: bytes 0..2 of the packet, from cycle c+1 of its row 0 to that of the next packet's.
    """

    row: In(RowSignature)
    enabled: In(1)
    index: Out(INDEX_BITS)
    route: Out(ROUTE_BITS)
    concerned: Out(1)
    received: Out(ReceivedRow)
    head: Out(HEAD_BITS)

    def elaborate(self, platform: object) -> Module:
        """Build the framing."""
        m = Module()
        row, found = self.row, self.received

        start_data, start_link, clean, end, marked_bad, violation, opens = self._class_of_row(m)

        # The length of the packet, to stop one that has no end.
        m.d.comb += self.route.eq(Cat(row.data, self.head))
        row_1_length = lrh_field(self.route, "pkt_len")
        before_full = Signal.like(row_1_length)  # the index of the row before
        full = Signal()  # the row on the wires is at index PktLen, or in a packet shorter than that
        in_row_1 = Signal()

        m.d.sync += [
            found.eq(0),
            found.data.eq(Mux(self.concerned, row.data, found.data)),
            found.index.eq(self.index),
        ]

        with m.FSM() as framing:
            # Between packets; a packet's row 0, or one that claims to be, takes us out.
            with m.State("IDLE"), m.If(self.enabled & row.valid):
                self._begin(m, start_data, start_link, in_row_1)
                with m.If(end | violation):
                    m.d.sync += found.symbol_error.eq(1)
                    with m.If(opens):
                        m.d.sync += found.bad_packet.eq(1)
                        m.next = "DISCARD"

            # Inside a data packet; its end row takes us out, or what cuts it.
            with m.State("DATA"):
                with m.If(~self.enabled):
                    m.d.sync += found.cut.eq(1)
                    m.next = "IDLE"
                with m.Elif(row.valid):
                    m.d.sync += [self.index.eq(self.index + 1), in_row_1.eq(0)]
                    with m.If(in_row_1):
                        m.d.sync += [before_full.eq(row_1_length - 1), full.eq(below(row_1_length, 3))]
                    with m.Else():
                        m.d.sync += full.eq(self.index == before_full)
                    with m.If(end):
                        m.d.sync += [found.end.eq(1), found.marked_bad.eq(marked_bad)]
                        m.next = "IDLE"
                    with m.Elif(clean & in_row_1 & ~below(row_1_length, 2)):
                        m.d.sync += [found.body.eq(1), found.header.eq(1)]
                    with m.Elif(clean & ~in_row_1 & ~full):
                        m.d.sync += found.body.eq(1)
                    with m.Else():
                        m.d.sync += [found.cut.eq(1), found.symbol_error.eq(violation)]
                        m.next = "DISCARD"

            # At row 1 of a link packet, which should be its end; whatever it is takes us out.
            with m.State("LINK"):
                with m.If(~self.enabled):
                    m.next = "IDLE"
                with m.Elif(row.valid):
                    m.d.sync += [
                        found.link_end.eq(end & ~marked_bad),
                        found.malformed.eq(~end | marked_bad),
                        found.symbol_error.eq(violation),
                    ]
                    m.next = "DISCARD"
                    with m.If(end):
                        m.next = "IDLE"

            # In what is left of a packet that was cut; an end or the next packet takes us out.
            with m.State("DISCARD"):
                with m.If(~self.enabled):
                    m.next = "IDLE"
                with m.Elif(row.valid):
                    self._begin(m, start_data, start_link, in_row_1)
                    with m.If(end):
                        m.next = "IDLE"

        # Idle data moves nothing behind here.
        m.d.comb += self.concerned.eq(~framing.ongoing("IDLE") | row.k[LANES - 1])
        return m

    def _begin(self, m: Module, start_data: Value, start_link: Value, in_row_1: Signal) -> None:
        """Take the row as row 0 of a packet, if it is one."""
        found = self.received
        with m.If(start_data | start_link):
            m.d.sync += [
                self.head.eq(self.row.data),
                self.index.eq(1),
                in_row_1.eq(1),
                found.first.eq(start_data),
                found.index.eq(0),
            ]
        with m.If(start_data):
            m.next = "DATA"
        with m.If(start_link):
            m.next = "LINK"

    def _class_of_row(self, m: Module) -> tuple[Signal, ...]:
        """What the row is by itself; one of `start_data`, `start_link`, `clean`, `end`, else a violation."""
        row = self.row
        first_lane, last_lane = row.data[24:32], row.data[0:8]
        start_data = Signal()
        start_link = Signal()
        clean = Signal()
        end = Signal()
        marked_bad = Signal()
        violation = Signal()
        opens = Signal()
        m.d.comb += [
            start_data.eq((row.k == 0b1000) & (first_lane == Control.SDP)),
            start_link.eq((row.k == 0b1000) & (first_lane == Control.SLP)),
            clean.eq(row.k == 0),
            marked_bad.eq(last_lane == Control.EBP),
            end.eq((row.k == 0b0001) & ((last_lane == Control.EGP) | marked_bad)),
            violation.eq(~(start_data | start_link | clean | end)),
            opens.eq(row.k[3] & ((first_lane == Control.SDP) | (first_lane == Control.SLP))),
        ]
        return start_data, start_link, clean, end, marked_bad, violation, opens
