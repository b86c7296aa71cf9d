"""The output side of a port as inputs and matcher see it (docs/pipeline.md, sections 7 and 8)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.eligibility import room_of, send_facts_layout
from rtl.link.port import SendingSignature
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
        port: what the port lets be sent, and whether it waits: section 8.3, except for the state.
        facts: of the cycle before, what heads must know for the next, see `send_facts_layout`.
        held: a reader holds this output. `busy`: a reader is serving it.
        head: some input has a visible head for it.
        available: it takes a grant in this cycle.
        flow_control: it sends a flow control packet, granted in this cycle.
    """

    def __init__(self, vls: int) -> None:
        self.vls = vls
        super().__init__(
            {
                "phase": In(2),
                "port": In(SendingSignature(vls)),
                "facts": Out(send_facts_layout(vls)),
                "held": In(1),
                "busy": In(1),
                "head": In(1),
                "available": Out(1),
                "flow_control": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Facts, availability, waiting."""
        m = Module()
        port, credits = self.port, self.port.credits
        active = port.state == PortState.ACTIVE
        deferred = port.state == PortState.ACTIVE_DEFER
        swallows = Cat(~active.replicate(self.vls) | ~port.operational, deferred | (port.state == PortState.DOWN))
        m.d.sync += [self.facts.blocked.eq(deferred), self.facts.swallows.eq(swallows)]
        for vl in range(self.vls):
            credit = (credits.cl[vl] - credits.tbs[vl])[:CREDIT_BITS]
            m.d.sync += self.facts.room[vl].eq(room_of(credit, swallows[vl]))

        # Availability is where the longest paths begin: the pace, and what is taken, are registers next to it.
        in_pace = Signal(init=1)
        m.d.sync += in_pace.eq(port.wide_follows | (self.phase == (_X1_GRANT_PHASE - 1) % 4))
        taken = Signal(_FLOW_CONTROL_X1)  # bit i: a flow control packet has the output i cycles from now
        m.d.sync += taken.eq(taken >> 1)
        with m.If(self.flow_control):
            m.d.sync += taken.eq(Mux(port.wide, (1 << _FLOW_CONTROL_X4) - 1, (1 << _FLOW_CONTROL_X1) - 1))
        m.d.comb += [
            self.available.eq(~self.held & ~taken[0] & in_pace),
            port.waiting.eq(self.head & ~self.busy),
            credits.grant.eq(self.flow_control),
        ]
        return m
