"""When the agent is free, when it works, when it offers a packet (docs/management.md, section 2)."""

from typing import Final

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.step import ANSWER_STEPS, PASS_STEPS, SLOT_STEPS, STEP_BITS

__all__ = ["Work"]

_LAST_SLOTS: Final = (PASS_STEPS // SLOT_STEPS - 1, ANSWER_STEPS // SLOT_STEPS - 1)


class Work(wiring.Component):
    """Counts the steps.

    Members:
        due: a trap is due. `available`: a packet can be taken in this cycle; `begins`: a trap takes the agent instead.
        taken: a packet was granted in a cycle before, and some of its rows are yet to be read.
        ended: it is over (cycle z); `good`: it is whole and not flagged bad. `right`: it is for the agent and its
            ICRC is right, from z+2 on.
        hold: this cycle has no step.
        go, step: the step in this cycle. `first`: it is step 0.
        trap: the work is a trap's. `short`: it has few steps; from step 1 on.
        last_slot: the step is one of the last 8.
        leaves, waits: there will be a packet to offer, and it is waited for; in the last step.
        offering: it is offered; `accepted`: it is taken, in this cycle; `sent`: so is its last word.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "due": In(1),
                "available": Out(1),
                "begins": Out(1),
                "taken": In(1),
                "ended": In(1),
                "good": In(1),
                "right": In(1),
                "hold": In(1),
                "go": Out(1),
                "first": Out(1),
                "step": Out(STEP_BITS),
                "trap": Out(1),
                "short": In(1),
                "last_slot": Out(1),
                "leaves": In(1),
                "waits": In(1),
                "accepted": In(1),
                "offering": Out(1),
                "sent": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Free, then a packet comes or a trap begins, then steps, then perhaps an offer, then free."""
        m = Module()
        step = self.step
        free = Signal(init=1)
        idle = free & ~self.taken
        m.d.comb += [self.available.eq(idle & ~self.due), self.begins.eq(idle & self.due)]
        with m.If(self.taken | self.begins):
            m.d.sync += free.eq(0)

        # A packet's step 0 is in cycle z+4, a trap's in the second after it took the agent.
        trap_follows = Signal()
        over = [Signal(name=f"over_{cycles}") for cycles in (1, 2, 3)]
        good = Signal()
        m.d.sync += [
            trap_follows.eq(self.begins),
            over[0].eq(self.ended),
            over[1].eq(over[0]),
            over[2].eq(over[1]),
        ]
        with m.If(self.ended):
            m.d.sync += good.eq(self.good)
        working = Signal()
        with m.If(over[2] | trap_follows):
            m.d.sync += [step.eq(0), self.trap.eq(trap_follows), working.eq(trap_follows | (good & self.right))]
        with m.If(over[2] & ~(good & self.right)):
            m.d.sync += free.eq(1)

        m.d.comb += [
            self.go.eq(working & ~self.hold),
            self.first.eq(self.go & (step == 0)),
            self.last_slot.eq(step[3:] == Mux(self.short, _LAST_SLOTS[0], _LAST_SLOTS[1])),
        ]
        stays = Signal()  # what is offered is not dropped any more
        with m.If(self.go):
            m.d.sync += step.eq(step + 1)
            with m.If(self.last_slot & (step[:3] == SLOT_STEPS - 1)):
                m.d.sync += [
                    working.eq(0),
                    self.offering.eq(self.leaves),
                    free.eq(~self.leaves),
                    stays.eq(self.waits),
                ]
        with m.If(self.offering & ~stays):
            m.d.sync += [stays.eq(1), self.offering.eq(self.accepted), free.eq(~self.accepted)]
        with m.If(self.sent):
            m.d.sync += [self.offering.eq(0), free.eq(1)]
        return m
