"""When the agent is free, when it works, when it offers a packet (docs/management.md, section 2)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.management.attribute import WORDS
from rtl.management.attribute_memory import BLOCK_WORDS
from rtl.management.task import (
    ANSWER_SLOT,
    ANSWER_STEPS,
    FAR,
    LAP_STEP,
    MORE_ANSWER_SLOT,
    MORE_SET_SLOT,
    PASS_STEPS,
    SET_SLOT,
    SHORT_STEPS,
    SLOT_STEPS,
    StepsSignature,
    Task,
)
from rtl.management.windows import Window
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import ALL_PORTS

__all__ = ["Taking", "Work"]

_LAST_SLOT: Final = ANSWER_STEPS // SLOT_STEPS - 1

Taking: Final = wiring.Signature({"available": Out(1), "taken": In(1), "ended": In(1), "good": In(1)})
"""How packets come from the crossing, seen from the agent.

`available`: it takes one in this cycle (g); `taken`: one was granted, two cycles before or more, and some of its rows
are yet to be read; `ended`: it is over (cycle z); `good`: it is whole and not flagged bad."""


class Work(wiring.Component):
    """Counts the steps.

    Members:
        taking: a packet is taken. `right`: it is for the agent and its ICRC is right, from z+1 on; `not_right`: it is
            not so, though it came whole and good, in cycle T-1.
        due: a trap is due. `begins`: it took the agent in the cycle before.
        hold: this cycle has no step.
        steps: of the work; `trap`: it is a trap's. `short`: the slot of this step has few, from the slot's second on.
        task: the work. What is only passed on has few steps; VL15 alone is waited for.
        long: the attribute has more words than a block.
        window, more (switch): of a CC request, see `Windows`.
        leaves: there will be a packet to offer; in the last step.
        offering: it is offered; `accepted`: it is taken, in this cycle; `sent`: so is its last word.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        self._ports = parameters.ports if isinstance(parameters, SwitchParameters) else 1
        super().__init__(
            {
                "taking": Out(Taking),
                "right": In(1),
                "not_right": Out(1),
                "due": In(1),
                "begins": Out(1),
                "hold": In(1),
                "steps": Out(StepsSignature()),
                "short": In(1),
                "trap": Out(1),
                "task": In(Task),
                "long": In(1),
                "leaves": In(1),
                "offering": Out(1),
                "accepted": In(1),
                "sent": In(1),
                **({"window": In(Window), "more": In(1)} if self._is_switch else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Free, then a packet comes or a trap begins, then steps, then perhaps an offer, then free."""
        m = Module()
        steps, taking = self.steps, self.taking
        free = Signal(init=1)
        trap_waits = Signal()  # the cycle before was a trap's, unless a packet was granted before that
        trap_follows = Signal()
        idle = free & ~taking.taken & ~trap_waits
        m.d.comb += [
            taking.available.eq(idle & ~self.due),
            trap_follows.eq(trap_waits & ~taking.taken),
            self.begins.eq(trap_follows),
        ]
        with m.If(taking.taken | self.begins):
            m.d.sync += free.eq(0)

        # A packet's step 0 is in cycle z+4, a trap's in the second after it took the agent.
        over = Signal(3)  # it was so many cycles ago, less 1
        good = Signal()
        right = Signal()
        m.d.sync += [trap_waits.eq(idle & self.due), over.eq(Cat(taking.ended, over)), right.eq(self.right)]
        with m.If(taking.ended):
            m.d.sync += good.eq(taking.good)
        working, at_first = Signal(), Signal()
        with m.If(over[-1] | trap_follows):
            m.d.sync += [steps.number.eq(0), steps.of_slot.eq(0), steps.last_slot.eq(0)]
            m.d.sync += at_first.eq(trap_follows | (good & right))
            m.d.sync += [self.trap.eq(trap_follows), working.eq(trap_follows | (good & right))]
        m.d.comb += self.not_right.eq(over[-1] & good & ~right)
        with m.If(over[-1] & ~(good & right)):
            m.d.sync += free.eq(1)

        m.d.comb += [steps.go.eq(working & ~self.hold), steps.first.eq(at_first & ~self.hold)]
        self._count_laps(m)
        following = self._follow(m)
        stays = Signal()  # what is offered is no longer dropped
        with m.If(steps.go):
            m.d.sync += [at_first.eq(0), steps.in_slot.eq(steps.in_slot + 1)]
            with m.If(self.short & (steps.in_slot == SHORT_STEPS - 2)):
                m.d.sync += steps.in_slot.eq(SLOT_STEPS - 1)
            with m.If((steps.in_slot == SLOT_STEPS - 1) & ~steps.again):
                last_slot = Mux(self.task.answers | self.trap, _LAST_SLOT, PASS_STEPS // SLOT_STEPS - 1)
                m.d.sync += [
                    steps.slot.eq(following),
                    steps.of_slot.eq(steps.next_slot),
                    steps.last_slot.eq(following == last_slot),
                ]
                with m.If(steps.skips):
                    m.d.sync += steps.in_slot.eq(SLOT_STEPS - 1)
                with m.If(steps.last_slot):
                    m.d.sync += [working.eq(0), stays.eq(~self.task.gmp & ~self.task.gmp_trap)]
                    m.d.sync += [self.offering.eq(self.leaves), free.eq(~self.leaves)]
        with m.If(self.offering & ~stays):
            m.d.sync += [stays.eq(1), self.offering.eq(self.accepted), free.eq(~self.accepted)]
        with m.If(self.sent):
            m.d.sync += [self.offering.eq(0), free.eq(1)]
        return m

    def _follow(self, m: Module) -> Signal:
        """The slot behind this one, from the second step on. A CC request has one for all words of a Set, and one for
        those of the answer, or neither; words behind a block have theirs behind all others."""
        steps, task, extra = self.steps, self.task, WORDS - BLOCK_WORDS
        following = Signal(range(MORE_ANSWER_SLOT + extra + 1))
        congestion, sets, known = Const(0), task.is_set | self.trap, Const(1)
        if self._is_switch:
            congestion, known = task.congestion, ~task.congestion | self.window.known
            sets &= known
        skips = ((steps.slot == PASS_STEPS // SLOT_STEPS - 1) & ~sets) | (congestion & (steps.slot == SET_SLOT))
        m.d.sync += [steps.skips.eq(skips), following.eq(steps.slot + 1)]
        with m.If(skips):
            m.d.sync += following.eq(ANSWER_SLOT - 1)
        for before, after, goes in (
            (SET_SLOT + BLOCK_WORDS - 1, MORE_SET_SLOT, self.long & task.is_set),
            (MORE_SET_SLOT + extra - 1, ANSWER_SLOT, 1),
            (ANSWER_SLOT - 1, _LAST_SLOT, ~known),
            (ANSWER_SLOT, _LAST_SLOT, congestion),
            (ANSWER_SLOT + BLOCK_WORDS - 1, MORE_ANSWER_SLOT, self.long),
            (MORE_ANSWER_SLOT + extra - 1, _LAST_SLOT, 1),
        ):
            with m.If((steps.slot == before) & goes):
                m.d.sync += following.eq(after)
        # A slot of which there is but the last step has no time to find out.
        with m.If(steps.skips & steps.at_in_slot(SLOT_STEPS - 1) & ~steps.again):
            m.d.sync += [following.eq(Mux(known, ANSWER_SLOT, _LAST_SLOT)), steps.skips.eq(0)]

        def within(first: int) -> Value:
            return (~below(following, first) & below(following, first + BLOCK_WORDS)) | beyond(first)

        def beyond(first: int) -> Value:
            return ~below(following, first + BLOCK_WORDS + FAR) & below(following, first + WORDS + FAR)

        in_block = (following - SET_SLOT)[: (BLOCK_WORDS - 1).bit_length()]
        m.d.comb += [
            steps.next_slot.in_set.eq(within(SET_SLOT)),
            steps.next_slot.in_answer.eq(within(ANSWER_SLOT)),
            steps.next_slot.word.eq(Mux(below(following, MORE_SET_SLOT), in_block, BLOCK_WORDS + following[0])),
        ]
        return following

    def _count_laps(self, m: Module) -> None:
        """A PMA's long slots have as many as there are ports, if it is asked about all; a CC request's as it has words.

        The latter's words have numbers of their own in the contract; here they are laps.
        """
        steps, all_ports = self.steps, Signal()
        m.d.sync += all_ports.eq(self.task.gmp & (self.task.head.port_select == ALL_PORTS))
        more = all_ports & (steps.lap != self._ports)
        if self._is_switch:
            more = Mux(self.task.congestion, self.more, more)
        again = more & (steps.of_slot.in_set | steps.of_slot.in_answer)
        with m.If(steps.at_in_slot(0)):
            m.d.sync += steps.again.eq(0)
        with m.If(steps.at_in_slot(LAP_STEP)):
            m.d.sync += [steps.again.eq(again), steps.lap.eq(Mux(again, steps.lap + 1, 1))]
