"""The agent's steps, one a cycle, and its standing still (docs/management.md, sections 2, 4.3 and 7)."""

from collections.abc import Callable, Generator, Mapping
from functools import cache
from typing import Final

from ..kernel import DECIDE, Kernel

__all__ = [
    "ANSWER",
    "COMMIT",
    "LAP",
    "LAST",
    "SET",
    "SLOT",
    "WINDOW_ANSWER",
    "WINDOW_SET",
    "WORDS",
    "Steps",
    "Work",
    "answer_slot",
    "answer_steps",
    "set_slot",
    "trap_steps",
    "window_steps",
]

Work = Generator[int, None, None]
"""Work on one packet: yields the step at which it goes on, never an earlier one."""

SET: Final = 16
"""Step at which the slot of word 0 begins in a Set."""
COMMIT: Final = 143
"""Step at which what a Set stored changes."""
ANSWER: Final = 144
"""Step at which the slot of word 0 begins for the answer."""
LAST: Final = 279
"""The last step of an answer or a trap."""
SLOT: Final = 8
"""Numbers of a slot."""
LAP: Final = 4096
"""Added to the numbers of a slot's steps in each of its laps but the first."""
WORDS: Final = 16
"""Slots of a Set, and for an answer, of most attributes."""
WINDOW_SET: Final = 512
"""Step at which the slot of word 0 begins in a Set of congestion control, if the attribute has that word."""
WINDOW_ANSWER: Final = 1024
"""Likewise for the answer."""
_DATA_WORD: Final = 8
"""The word of a window at which word 0 of the data of other classes would be."""
_BEHIND_ANSWER: Final = 272
_SHORT: Final = (0, 1, 7)
"""The steps of a slot without bus accesses."""
_DONE: Final = -1


def set_slot(word: int) -> int:
    """Step at which the slot of a data word begins in a Set."""
    return SET + SLOT * word if word < WORDS else WINDOW_SET + SLOT * (word + _DATA_WORD)


def answer_slot(word: int) -> int:
    """Likewise for the answer."""
    return ANSWER + SLOT * word if word < WORDS else WINDOW_ANSWER + SLOT * (word + _DATA_WORD)


def _slots(slot: Callable[[int], int], accessed: frozenset[int], laps: int = 1) -> list[int]:
    """The numbers of all slots, also of words behind the sixteenth, where there are accesses in some of those."""
    numbers: list[int] = []
    for word in range(max(WORDS, max(accessed, default=0) + 1)):
        begins = slot(word)
        if word in accessed:
            numbers += [begins + LAP * lap + number for lap in range(laps) for number in range(SLOT)]
        else:
            numbers += [begins + number for number in _SHORT]
    return numbers


def _places(numbers: list[int]) -> dict[int, int]:
    return {number: place for place, number in enumerate(numbers)}


@cache
def answer_steps(
    is_set: bool, set_words: frozenset[int], answer_words: frozenset[int], laps: int = 1
) -> Mapping[int, int]:
    """The numbers of a request's steps, each with its place; those of words with bus accesses are given."""
    before = _slots(set_slot, set_words, laps) if is_set else [COMMIT]
    return _places([*range(SET), *before, *_slots(answer_slot, answer_words, laps), *range(_BEHIND_ANSWER, LAST + 1)])


@cache
def trap_steps() -> Mapping[int, int]:
    """The numbers of a trap's steps, each with its place."""
    return _places([*range(ANSWER), *_slots(answer_slot, frozenset()), *range(_BEHIND_ANSWER, LAST + 1)])


@cache
def window_steps(is_set: bool, words: frozenset[int]) -> Mapping[int, int]:
    """The numbers of the steps of a CC request, of an attribute of these words, each with its place."""
    places = [SLOT * word + number for word in sorted(words) for number in range(SLOT)]
    in_set = [WINDOW_SET + place for place in places] if is_set else []
    for_answer = [WINDOW_ANSWER + place for place in places]
    return _places([*range(SET), *in_set, COMMIT, *for_answer, *range(_BEHIND_ANSWER, LAST + 1)])


class Steps:
    """The steps of the current work. A cycle in which the test bus has an access has none."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._work: Work | None = None
        self._places: Mapping[int, int] = {}
        self._place = 0
        self._stood_still = 0  # cycles, since the last step that was looked at

    def held(self) -> None:
        """The test bus has an access in the current cycle. Called before phase `DECIDE`."""
        self._stood_still += 1

    def start(self, started: tuple[Work, Mapping[int, int]]) -> None:
        """Work with the places of its steps' numbers. Step 0 is in the next cycle without an access."""
        self._work, self._places = started
        self._place = -1
        self._go_on()

    def _go_on(self) -> None:
        """Work until it waits for a later step."""
        assert self._work is not None
        step = next(self._work, _DONE)
        if step != _DONE:
            self._stood_still = 0
            place = self._places[step]
            self._kernel.at(self._kernel.now + place - self._place, DECIDE, self._reach, place)

    def _reach(self, place: int) -> None:
        """The current cycle is that of a step, unless there were accesses in between."""
        late, self._stood_still = self._stood_still, 0
        if late:
            self._kernel.at(self._kernel.now + late, DECIDE, self._reach, place)
        else:
            self._place = place
            self._go_on()
