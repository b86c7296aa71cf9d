"""Link packets: checks of those received, rows of those sent (docs/pipeline.md, sections 6.1, 7 and 8)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.link.receive import ReceivedRow
from rtl.link.row import HEAD_BITS
from wire.codes import PortState
from wire.flow_control import FLOW_CONTROL, FlowControlOp
from wire.trace import LinkResult

__all__ = ["FlowControlFields", "FlowControlSender", "LinkPacketCheck", "LinkPacketResult"]

FlowControlFields = data.StructLayout(
    {
        "fccl": FLOW_CONTROL["fccl"].width,
        "vl": FLOW_CONTROL["vl"].width,
        "fctbs": FLOW_CONTROL["fctbs"].width,
        "op": FLOW_CONTROL["op"].width,
    }
)
"""The four bytes of a flow control packet before its LPCRC, last field in the lowest bits."""


LinkPacketResult = data.StructLayout({"valid": 1, "result": LinkResult, "fields": FlowControlFields})
"""What became of a link packet whose row 1 was at c, in cycle c+2; `fields` are 0 if malformed."""


class LinkPacketCheck(wiring.Component):
    """Judges link packets.

    Args:
        vls: data VLs.

    Members:
        received, head: see `rtl.link.receive.Receiver`.
        lpcrc_good: see `rtl.link.crc.VcrcCheck`, in the cycle of `received`.
        state, operational: the port's state, and the mask of its operational data VLs.
        good: a good link packet with these `fields`; cycle c+1.
        result: the packet's record; cycle c+2.
    """

    def __init__(self, vls: int) -> None:
        super().__init__(
            {
                "received": In(ReceivedRow),
                "head": In(HEAD_BITS),
                "lpcrc_good": In(1),
                "state": In(PortState),
                "operational": In(vls),
                "good": Out(1),
                "fields": Out(FlowControlFields),
                "result": Out(LinkPacketResult),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the checks."""
        m = Module()
        fields = self.fields
        m.d.comb += fields.as_value().eq(Cat(self.received.data[24:32], self.head))
        is_operational = self.operational.bit_select(fields.vl, 1)
        is_known = fields.op <= FlowControlOp.INIT
        is_set_up = (self.state == PortState.ARMED) | (self.state == PortState.ACTIVE)

        result = Signal(LinkResult)
        with m.If(self.received.malformed):
            m.d.comb += result.eq(LinkResult.MALFORMED)
        with m.Elif(~self.lpcrc_good):
            m.d.comb += result.eq(LinkResult.LPCRC)
        with m.Elif(~is_known):
            m.d.comb += result.eq(LinkResult.OP)
        with m.Elif(~is_operational & is_set_up):
            m.d.comb += result.eq(LinkResult.VL)
        with m.Elif(~is_operational):
            m.d.comb += result.eq(LinkResult.IGNORED)
        with m.Else():
            m.d.comb += result.eq(LinkResult.GOOD)
        # Without what only says which of two results a bad one has: much follows from this.
        m.d.comb += self.good.eq(self.received.link_end & self.lpcrc_good & is_known & is_operational)

        m.d.sync += [
            self.result.valid.eq(self.received.link_end | self.received.malformed),
            self.result.result.eq(result),
            self.result.fields.eq(fields),
        ]
        with m.If(self.received.malformed):
            m.d.sync += self.result.fields.eq(0)
        return m


_NARROW_STEP = 4
"""Cycles between two rows of a 1X port."""


class FlowControlSender(wiring.Component):
    """Presents the two rows of a flow control packet to the transmit stage.

    A packet granted at g has row 0 there at g+3 and row 1 at g+4 (4X) or g+7 (1X).

    Members:
        granted: a packet was granted in the cycle before, at g; `packet`: its fields, at g+1 and g+2.
        wide: the port is 4X, at g.
        first, last: this is row 0, row 1.
        fields: the fields of the packet whose row it is.
    """

    granted: In(1)
    packet: In(FlowControlFields)
    wide: In(1)
    first: Out(1)
    last: Out(1)
    fields: Out(FlowControlFields)

    def elaborate(self, platform: object) -> Module:
        """Build what says when."""
        m = Module()

        # Until g+2 the packet before may be at the transmit stage.
        granted_before = Signal()
        wide = [Signal(name=f"wide_{ago}") for ago in (1, 2)]
        m.d.sync += [granted_before.eq(self.granted), wide[0].eq(self.wide), wide[1].eq(wide[0])]

        # g+3 until row 1 is through.
        to_go = Signal(_NARROW_STEP)  # bit i: row 1 comes i cycles after the next
        m.d.sync += [self.first.eq(granted_before), self.last.eq(to_go[0]), to_go.eq(to_go >> 1)]
        with m.If(granted_before):
            m.d.sync += [self.fields.eq(self.packet), to_go.eq(Mux(wide[1], 1, 1 << _NARROW_STEP - 1))]
        return m
