"""Flow control packets from grant to wires (docs/pipeline.md, sections 7 and 8)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.crc import lanes_of, vcrc_step
from rtl.link.link_packet import FlowControlFields
from wire.crc import VCRC_INIT, VCRC_WIDTH
from wire.symbols import Control

__all__ = ["FlowControlSender"]

_NARROW_STEP = 4
"""Cycles between two rows of a 1X port."""


class FlowControlSender(wiring.Component):
    """Frames a flow control packet and presents its two rows to the transmit stage.

    A packet granted at g has row 0 there at g+3 and row 1 at g+4 (4X) or g+7 (1X).

    Members:
        grant, packet: the packet's fields, at g.
        wide: the port is 4X, at g.
        first, last: this is row 0, row 1.
        data: the row's data, with SLP or EGP.
        fields: the fields of the packet whose row it is.
    """

    grant: In(1)
    packet: In(FlowControlFields)
    wide: In(1)
    first: Out(1)
    last: Out(1)
    data: Out(32)
    fields: Out(FlowControlFields)

    def elaborate(self, platform: object) -> Module:
        """Build the framing."""
        m = Module()

        # g+1 and g+2: the packet as granted; the one before may still be at the transmit stage.
        granted = Signal(2)  # bit i: i + 1 cycles ago
        packet = Signal(FlowControlFields)
        wide = Signal()
        m.d.sync += granted.eq(Cat(self.grant, granted[0]))
        with m.If(self.grant):
            m.d.sync += [packet.eq(self.packet), wide.eq(self.wide)]

        # g+3 until row 1 is through.
        to_go = Signal(_NARROW_STEP)  # bit i: row 1 comes i cycles after the next
        m.d.sync += [self.first.eq(granted[1]), self.last.eq(to_go[0]), to_go.eq(to_go >> 1)]
        with m.If(granted[1]):
            m.d.sync += [
                self.fields.eq(packet),
                to_go.eq(Mux(wide, 1, 1 << _NARROW_STEP - 1)),
            ]

        word = self.fields.as_value()
        lpcrc = ~vcrc_step(Const(VCRC_INIT, VCRC_WIDTH), lanes_of(word))
        with m.If(self.first):
            m.d.comb += self.data.eq(Cat(word[8:], Const(Control.SLP, 8)))
        with m.Else():
            m.d.comb += self.data.eq(Cat(Const(Control.EGP, 8), lpcrc[8:16], lpcrc[0:8], word[0:8]))
        return m
