"""The output side of a port as inputs and matcher see it (docs/pipeline.md, sections 7 and 8)."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.causes import CAUSE_BITS, NOT_SWALLOWED, cause_of
from rtl.crossing.eligibility import room_of, send_facts_layout
from rtl.crossing.head_of_queue import HeadOfQueue
from rtl.crossing.time_limits import LifeLimit
from rtl.link.port import SendingSignature
from rtl.registers.port_registers import TimeLimitsSignature
from rtl.rotation import select
from rtl.widths import CREDIT_BITS
from wire.codes import PortState
from wire.trace import Discard

__all__ = ["Output"]

_X1_GRANT_PHASE = 0
"""Cycle modulo 4 in which a 1X output makes offers."""

_FLOW_CONTROL_X1 = 4
"""Cycles in which a flow control packet has a 1X output, after that of its grant; a 4X output in one."""


class Output(wiring.Component):
    """What one port's transmit side lets inputs send.

    Args:
        vls: data VLs.
        need_bits: see `send_facts_layout`.
        limited: of a switch, how many inputs there are: its ports have time limits. Else 0.

    Members:
        phase: the cycle modulo 4.
        port: what the port lets be sent, and whether it waits: section 8.3, except for the state.
        facts: what heads must know of it, see `send_facts_layout`. Inputs have it in registers of their own.
        held: a reader holds this output. `busy`: a reader is serving it.
        heads: mask of the slots for which some input has a visible head for it.
        available: it makes an offer in this cycle, if it has one to make.
        offered, slot: it made an offer in the cycle before, on this slot, one-hot. `cause`: why what it offered is
            swallowed.
        flow_control: it sends a flow control packet, granted in the cycle before.
        accepted: this input accepts the offer of the cycle before, one-hot, or none does.
        time_limits, life_follows: its own, and the switch's in the next cycle.
    """

    def __init__(self, vls: int, need_bits: int, *, limited: int) -> None:
        self.vls = vls
        self.need_bits = need_bits
        self.limited = limited
        super().__init__(
            {
                "phase": In(2),
                "port": In(SendingSignature(vls)),
                "facts": Out(send_facts_layout(vls, need_bits)),
                "held": In(1),
                "busy": In(1),
                "heads": In(vls + 1),
                "available": Out(1),
                "offered": In(1),
                "slot": In(vls + 1),
                "cause": Out(CAUSE_BITS),
                "flow_control": In(1),
                **(
                    {"accepted": In(limited), "time_limits": In(TimeLimitsSignature), "life_follows": In(LifeLimit)}
                    if limited
                    else {}
                ),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Facts, causes, availability, waiting."""
        m = Module()
        port, credits = self.port, self.port.credits
        # Its own register: the port's is with what comes in.
        operational = Signal(self.vls, init=-1)
        m.d.sync += operational.eq(port.operational_follows)
        active = port.state == PortState.ACTIVE
        deferred = port.state == PortState.ACTIVE_DEFER
        inactive = Cat(~active.replicate(self.vls) | ~operational, deferred | (port.state == PortState.DOWN))
        swallows = inactive | self._find_causes(m, inactive)
        m.d.comb += [self.facts.blocked.eq(deferred), self.facts.swallows.eq(swallows)]
        for vl in range(self.vls):
            credit = (credits.cl[vl] - credits.tbs[vl])[:CREDIT_BITS]
            m.d.comb += self.facts.room[vl].eq(room_of(credit, self.need_bits))

        # What it is busy with is on the slot of its last offer.
        sending = Signal.like(self.slot)
        with m.If(self.offered):
            m.d.sync += sending.eq(self.slot)

        # Availability is where the longest paths begin: the pace, and what is taken, are registers next to it.
        in_pace = Signal(init=1)
        m.d.sync += in_pace.eq(port.wide_follows | (self.phase == (_X1_GRANT_PHASE - 1) % 4))
        taken = Signal(_FLOW_CONTROL_X1 - 1)  # bit i: a flow control packet has the output still i cycles from now
        wide = Signal()  # in the cycle before
        m.d.sync += [wide.eq(port.wide), taken.eq(Mux(self.flow_control & ~wide, (1 << len(taken)) - 1, taken >> 1))]
        m.d.comb += [
            self.available.eq(~self.held & ~self.offered & ~self.flow_control & ~taken[0] & in_pace),
            port.waiting.eq(self.heads.any() & ~self.offered & ~self.busy),
            port.slots_waiting.eq(self.heads & ~Mux(self.offered, self.slot, Mux(self.busy, sending, 0))),
            credits.granted.eq(self.flow_control),
        ]
        return m

    def _find_causes(self, m: Module, inactive: Value) -> Value:
        """Why a packet is swallowed, the first reason that applies; returns the mask of slots beyond their limits.

        The slots are as the head of a packet saw them at g-2. Each has its cause ready at g+1, when that which was
        offered comes from far and all inputs want to know its cause.
        """
        reasons: list[tuple[str, Value, Value]] = [("inactive", inactive, Const(cause_of(Discard.INACTIVE)))]
        beyond: Value = Const(0, self.vls)
        if self.limited:
            m.submodules.head_of_queue = head_of_queue = HeadOfQueue(self.vls)
            connect(m, flipped(self.time_limits), head_of_queue.limits)
            # Its own register for what inputs accept: the matcher's is far, and what follows from that takes long.
            accepted, slot_granted = Signal(self.limited), Signal.like(self.slot)
            m.d.sync += [
                head_of_queue.discarded.eq(self.cause == cause_of(Discard.HOQ_LIFE)),
                accepted.eq(self.accepted),
                slot_granted.eq(self.slot),
            ]
            m.d.comb += [
                head_of_queue.life_follows.eq(self.life_follows),
                head_of_queue.heads.eq(self.heads),
                head_of_queue.granted.eq(Mux(accepted.any(), slot_granted, 0)),
            ]
            limit = Mux(head_of_queue.binding, cause_of(Discard.HOQ_LIFE), cause_of(Discard.LIFE_TIME))
            reasons.append(("stalled", head_of_queue.stalled, Const(cause_of(Discard.STALLED))))
            reasons.append(("expired", head_of_queue.expired, limit))
            beyond = head_of_queue.beyond
        following: list[Value] = [Const(NOT_SWALLOWED, CAUSE_BITS)] * len(self.slot)
        for name, slots, applies in reversed(reasons):
            seen = [Signal(len(slots), name=f"{name}_{ago}") for ago in (1, 2)]
            m.d.sync += [after.eq(before) for before, after in pairwise([slots, *seen])]
            for slot, is_one in enumerate(seen[-1]):
                following[slot] = Mux(is_one, applies, following[slot])
        causes = Signal(data.ArrayLayout(CAUSE_BITS, len(self.slot)))
        m.d.sync += [cause.eq(follows) for cause, follows in zip(causes, following, strict=True)]
        m.d.comb += self.cause.eq(select(self.slot, causes))
        return beyond
