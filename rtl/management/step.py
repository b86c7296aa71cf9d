"""The steps of the agent's work (docs/management.md, sections 2 and 4.3)."""

from typing import Final

__all__ = [
    "ANSWER_SLOT",
    "ANSWER_STEPS",
    "NEXT_WORD",
    "PASS_STEPS",
    "SET_SLOT",
    "SLOT_STEPS",
    "STEP_BITS",
    "WORD_TAKEN",
    "first_step",
]

PASS_STEPS: Final = 16
"""Steps of an SMP that is passed on or dropped."""

ANSWER_STEPS: Final = 288
"""Steps of an answer or a trap."""

STEP_BITS: Final = (ANSWER_STEPS - 1).bit_length()

SLOT_STEPS: Final = 8
"""Steps of a slot. The slots of all steps are numbered from 0."""

SET_SLOT: Final = 2
"""The slot of word 0 of the data in a Set."""

ANSWER_SLOT: Final = 18
"""The slot of word 0 for the answer."""

NEXT_WORD: Final = 3
"""The step of a slot with which the next slot's word is looked up."""

WORD_TAKEN: Final = 7
"""The step of a slot in which the next slot's word is there."""


def first_step(slot: int) -> int:
    """The first step of a slot."""
    return SLOT_STEPS * slot
