"""What the agent has to do, the steps of that, and the stages that do it (docs/management.md, sections 2 and 4.3)."""

from typing import Any, Final

from amaranth.hdl import Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute import WORDS
from rtl.management.attribute_memory import BLOCK_WORDS
from rtl.management.mad_head import MadHead
from rtl.management.smi import Way
from rtl.widths import PORT_BITS, SL_BITS
from wire.parameters import NodeParameters, SwitchParameters

__all__ = [
    "ANSWER_SLOT",
    "ANSWER_STEPS",
    "BASE_STEP",
    "FAR",
    "IN_SLOT_BITS",
    "LAP_STEP",
    "MORE_ANSWER_SLOT",
    "MORE_SET_SLOT",
    "NEXT_WORD",
    "PASS_STEPS",
    "SET_SLOT",
    "SHORT_STEPS",
    "SLOT_STEPS",
    "STEP_BITS",
    "WORD_TAKEN",
    "OfSlot",
    "Stage",
    "StepsSignature",
    "Task",
]

PASS_STEPS: Final = 16
"""Steps of an SMP that is passed on or dropped."""

ANSWER_STEPS: Final = 280
"""Behind the number of the last step of an answer or a trap, which do not have all numbers. Words behind a block have
slots behind that."""

SLOT_STEPS: Final = 8
"""Steps of a slot. The slots of all steps are numbered from 0."""

SHORT_STEPS: Final = 3
"""Steps of a slot without bus accesses: all but the last are its first."""

SET_SLOT: Final = 2
"""The slot of word 0 of the data in a Set."""

ANSWER_SLOT: Final = 18
"""The slot of word 0 for the answer."""

FAR: Final = 18
"""How far behind its place in line the slot of a word behind a block is."""

MORE_SET_SLOT: Final = SET_SLOT + BLOCK_WORDS + FAR
MORE_ANSWER_SLOT: Final = ANSWER_SLOT + BLOCK_WORDS + FAR
"""The slots of word 16, in a Set and for the answer. They follow those of word 15."""

STEP_BITS: Final = (SLOT_STEPS * (ANSWER_SLOT + WORDS + FAR) - 1).bit_length()

NEXT_WORD: Final = 0
"""The step of a slot with which the next slot's word is looked up."""

LAP_STEP: Final = 4
"""The step of a slot that decides about another lap: behind the accesses of this one, before the next one's."""

BASE_STEP: Final = SLOT_STEPS + 3
"""The step with which the first one is: an attribute's address is known by then."""

WORD_TAKEN: Final = 7
"""The step of a slot in which the next slot's word is there."""

IN_SLOT_BITS: Final = (SLOT_STEPS - 1).bit_length()
"""The lowest bits of a step's number."""

OfSlot: Final = data.StructLayout({"word": range(WORDS), "in_set": 1, "in_answer": 1})
"""The word that a slot is of; it is one of a Set's, for an answer."""


class _Steps(wiring.PureInterface):
    @property
    def slot(self) -> Value:
        """The slot that the step is of."""
        return self.number[IN_SLOT_BITS:]

    @property
    def in_slot(self) -> Value:
        """The step's place in its slot."""
        return self.number[:IN_SLOT_BITS]

    def at(self, number: int) -> Value:
        """This step is in this cycle."""
        return self.go & (self.number == number)

    def at_in_slot(self, place: int) -> Value:
        """The step of this place in a slot is in this cycle."""
        return self.go & (self.in_slot == place)


class StepsSignature(wiring.Signature):
    """The steps of the work, seen from where they are counted.

    Members:
        go: this cycle has a step, of this `number`.
        first: it is step 0.
        lap: number of the slot's lap, from 1 on; behind `LAP_STEP` the next one's. `again`: there is one, from then on.
        of_slot: what the step's slot is. `next_slot`: what the one behind it is, from its second step on.
        skips: of the slot behind this one there is but the last step, and then follows that of word 0 for the answer.
        last_slot: the number is one of the last 8.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "go": Out(1),
                "number": Out(STEP_BITS),
                "first": Out(1),
                "of_slot": Out(OfSlot),
                "next_slot": Out(OfSlot),
                "skips": Out(1),
                "last_slot": Out(1),
                "lap": Out(PORT_BITS, init=1),
                "again": Out(1),
            }
        )

    def create(self, *, path: tuple[str | int, ...] | None = None, src_loc_at: int = 0) -> _Steps:
        """The signals, with what is asked of them."""
        return _Steps(self, path=path, src_loc_at=1 + src_loc_at)


Task: Final = wiring.Signature(
    {
        "head": Out(MadHead),
        "trap": Out(1),
        "gmp_trap": Out(1),
        "gmp": Out(1),
        "congestion": Out(1),
        "sl": Out(SL_BITS),
        "is_set": Out(1),
        "from_host": Out(1),
        "record": Out(1),
        "answers": Out(1),
        "violated": Out(1),
        "way": Out(Way),
    }
)
"""What there is to do.

`head`: of the packet that came; `trap`: it is no packet but a trap, `gmp_trap`: one of congestion control; `gmp`: it is
a general management packet, a PMA's or, if `congestion`, a CC request, else an SMP; `sl`: that of a GMP that leaves,
from step 1 on; `from_host`: that of an adapter; `record`: the port that it came in by is written into it. From step 1
on `answers`: it is answered; `violated`: it violated the M_Key or the CC_Key; `way`: where it, its answer or the trap
goes."""


class Stage(wiring.Component):
    """A part of the agent that does its share at certain steps.

    Members:
        steps, task: of the work.
    """

    def __init__(self, parameters: NodeParameters, **members: Any) -> None:
        self._parameters = parameters
        self._is_switch = isinstance(parameters, SwitchParameters)
        self._ports = parameters.ports if isinstance(parameters, SwitchParameters) else 1
        self._lft_size = parameters.lft_size if isinstance(parameters, SwitchParameters) else 0
        super().__init__({"steps": In(StepsSignature()), "task": In(Task), **members})
