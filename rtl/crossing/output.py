"""The output side of a port as inputs and matcher see it (docs/pipeline.md, sections 7 and 8)."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.eligibility import room_of, send_facts_layout
from rtl.widths import CREDIT_BITS
from wire.codes import PortState

__all__ = ["Output"]

_X1_GRANT_PHASE = 0
"""Cycle modulo 4 in which a 1X output takes a grant."""

# Cycles from a flow control packet's grant on in which the output is taken, after that of the grant.
_FLOW_CONTROL_X4 = 1
_FLOW_CONTROL_X1 = 4


class Output(wiring.Component):
    """What one port's transmit side lets inputs send.

    Members:
        phase: the cycle modulo 4.
        state, operational, wide, wide_follows, cl, tbs: of the port, see `rtl.link.port.LinkPort`.
        facts: of the cycle before, what heads must know for the next, see `send_facts_layout`.
        held: a reader holds this output. `busy`: a reader is serving it.
        head: some input has a visible head for it.
        available: it takes a grant in this cycle.
        flow_control: it sends a flow control packet, granted in this cycle.
        waiting: section 8.3, but for the state.
    """

    def __init__(self, vls: int) -> None:
        self.vls = vls
        per_vl = data.ArrayLayout(unsigned(CREDIT_BITS), vls)
        super().__init__(
            {
                "phase": In(2),
                "state": In(PortState),
                "operational": In(vls),
                "wide": In(1),
                "wide_follows": In(1),
                "cl": In(per_vl),
                "tbs": In(per_vl),
                "facts": Out(send_facts_layout(vls)),
                "held": In(1),
                "busy": In(1),
                "head": In(1),
                "available": Out(1),
                "flow_control": In(1),
                "waiting": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Facts, availability, waiting."""
        m = Module()
        active = self.state == PortState.ACTIVE
        m.d.sync += self.facts.blocked.eq(self.state == PortState.ACTIVE_DEFER)
        for vl in range(self.vls):
            credit = (self.cl[vl] - self.tbs[vl])[:CREDIT_BITS]
            m.d.sync += self.facts.room[vl].eq(room_of(credit, ~active | ~self.operational[vl]))

        # Availability is where the longest paths begin: the pace, and what is taken, are registers next to it.
        in_pace = Signal(init=1)
        m.d.sync += in_pace.eq(self.wide_follows | (self.phase == (_X1_GRANT_PHASE - 1) % 4))
        taken = Signal(_FLOW_CONTROL_X1)  # bit i: a flow control packet has the output i cycles from now
        m.d.sync += taken.eq(taken >> 1)
        with m.If(self.flow_control):
            m.d.sync += taken.eq(Mux(self.wide, (1 << _FLOW_CONTROL_X4) - 1, (1 << _FLOW_CONTROL_X1) - 1))
        m.d.comb += [
            self.available.eq(~self.held & ~taken[0] & in_pace),
            self.waiting.eq(self.head & ~self.busy),
        ]
        return m
