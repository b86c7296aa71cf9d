"""What an attribute of the agent is, and the steps at which it acts (docs/management.md, section 4.3)."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Final, NamedTuple

from wire.layout import Layout

__all__ = [
    "ANSWER",
    "COMMIT",
    "READ_STEPS",
    "SET",
    "Attribute",
    "Request",
    "SettableAttribute",
    "answer_step",
    "set_step",
    "word_of",
]

SET: Final = 16
"""Step at which the slot of word 0 begins in a Set."""
COMMIT: Final = 143
"""Step at which what a Set stored changes."""
ANSWER: Final = 144
"""Step at which the slot of word 0 begins for the answer."""
READ_STEPS: Final = 4
"""Steps after which the answer to a bus read is there."""
_SLOT: Final = 8
_FIRST_SET_ACCESS: Final = 2


def set_step(word: int, access: int) -> int:
    """Step of a bus access in the slot of a data word, in a Set."""
    return SET + _SLOT * word + _FIRST_SET_ACCESS + access


def answer_step(word: int, access: int = 0) -> int:
    """Step of a bus access in the slot of a data word, for the answer."""
    return ANSWER + _SLOT * word + access


def word_of(layout: Layout, name: str) -> int:
    """The data word that holds a field."""
    return layout[name].offset_bits // 32


class Request(NamedTuple):
    """A Get or Set of an attribute.

    Attributes:
        which: what is selected, as the attribute's `select` says it.
        is_set: it is a Set.
        data: its 64 bytes.
        arrival: the port that it came in by.
        hides_m_key: PortInfo's m_key reads 0.
    """

    which: int
    is_set: bool
    data: bytes
    arrival: int
    hides_m_key: bool


class Attribute(ABC):
    """An attribute. What it does takes steps: a generator yields the step at which it goes on."""

    def select(self, modifier: int, data: bytes) -> int | None:
        """What an AttributeModifier selects, or the 64 bytes; None if it is not allowed. Here, there is no choice."""
        return 0 if modifier == 0 else None

    @abstractmethod
    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """The attribute's bytes, from step `ANSWER` on."""


class SettableAttribute(Attribute):
    """An attribute that takes Sets."""

    @abstractmethod
    def change(self, request: Request) -> Generator[int, None, bool]:
        """Carry out a Set, from step `SET` to step `COMMIT`; False if a field of it is refused."""
