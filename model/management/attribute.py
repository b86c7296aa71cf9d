"""What an attribute of the agent is, how a Get or Set of it is answered (docs/management.md, sections 4, 6 and 7)."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from typing import Final, NamedTuple

from wire.layout import Layout, Record
from wire.mad import CLASS_VERSION, MadMethod, MadStatus, mad_data
from wire.smp import smp_response

from .agent_node import AgentNode
from .steps import ANSWER, COMMIT, LAP, answer_slot, set_slot

__all__ = [
    "NO_WORDS",
    "READ_STEPS",
    "Attribute",
    "Constant",
    "Request",
    "SettableAttribute",
    "StoredBlock",
    "answer_step",
    "respond",
    "set_step",
    "word_of",
]

READ_STEPS: Final = 4
"""Steps of a long slot after which the answer to a bus read is there."""
NO_WORDS: Final[frozenset[int]] = frozenset()
_FIRST_SET_ACCESS: Final = 2


def set_step(word: int, access: int, lap: int = 0) -> int:
    """Step of a bus access in the slot of a data word, in a Set; laps count from 0."""
    return set_slot(word) + _FIRST_SET_ACCESS + access + LAP * lap


def answer_step(word: int, access: int = 0, lap: int = 0) -> int:
    """Step of a bus access in the slot of a data word, for the answer; laps count from 0."""
    return answer_slot(word) + access + LAP * lap


def word_of(layout: Layout, name: str) -> int:
    """The data word that holds a field."""
    return layout[name].offset_bits // 32


class Request(NamedTuple):
    """A Get or Set of an attribute.

    Attributes:
        which: what is selected, as the attribute's `select` says it.
        is_set: it is a Set.
        data: its bytes, as many as the class has.
        arrival: the port that it came in by.
        hides_key: the key that the attribute holds reads 0.
    """

    which: int
    is_set: bool
    data: bytes
    arrival: int
    hides_key: bool


class Attribute(ABC):
    """An attribute. What it does takes steps: a generator yields the step at which it goes on.

    Attributes:
        set_words, answer_words: the words in whose slots there may be bus accesses, in a Set and for the answer.
    """

    set_words: frozenset[int] = NO_WORDS
    answer_words: frozenset[int] = NO_WORDS

    def select(self, modifier: int, data: bytes) -> int | None:
        """What an AttributeModifier selects, or the bytes; None if it is not allowed. Here, there is no choice."""
        return 0 if modifier == 0 else None

    def laps(self, data: bytes) -> int:
        """How often the slots of words with accesses are gone through."""
        return 1

    @abstractmethod
    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """The attribute's bytes, from step `ANSWER` on."""


class Constant(Attribute):
    """An attribute that is the same whenever it is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """What it always is."""
        yield ANSWER
        return self._data


class SettableAttribute(Attribute):
    """An attribute that takes Sets."""

    @abstractmethod
    def change(self, request: Request) -> Generator[int, None, bool]:
        """Carry out a Set, from step `SET` to step `COMMIT`; False if a field of it is refused."""


class StoredBlock(SettableAttribute):
    """A block of bytes for each thing that the modifier selects. Any value is accepted."""

    def __init__(self, node: AgentNode, reset: bytes) -> None:
        """`reset` is what every block holds at reset."""
        self._node = node
        self._reset = reset
        self._blocks: dict[int, bytes] = {}

    def kept(self, data: bytes) -> bytes:
        """What is stored of the bytes of a Set."""
        return data

    def writes(self, which: int, data: bytes) -> list[tuple[int, int, int]]:
        """Step, address and value of the register writes of a Set, in the order of their steps."""
        return []

    def block(self, which: int) -> bytes:
        """What a block holds."""
        return self._blocks.get(which, self._reset)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """Some blocks are also written to registers."""
        data = request.data[: len(self._reset)]
        for step, address, value in self.writes(request.which, data):
            yield step
            self._node.bus_write(address, value)
        yield COMMIT
        self._blocks[request.which] = self.kept(data)
        return True

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """As stored."""
        yield ANSWER
        return self.block(request.which)


def respond(
    attributes: Mapping[int, Attribute],
    mad: Record,
    arrival: int,
    hides_key: bool = False,
    class_version: int = CLASS_VERSION,
) -> Generator[int, None, Record]:
    """Work on a Get or Set, in steps (section 4.3), and return the answer, an SMP's as before the SMI."""
    is_set = mad.method == MadMethod.SET
    data = mad_data(mad)
    if mad.class_version != class_version:
        return smp_response(mad, data, MadStatus.BAD_VERSION)
    attribute = attributes.get(mad.attribute_id)
    if attribute is None or (is_set and not isinstance(attribute, SettableAttribute)):
        return smp_response(mad, data, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
    which = attribute.select(mad.attribute_modifier, data)
    if which is None:
        return smp_response(mad, data, MadStatus.INVALID_ATTRIBUTE_VALUE)
    request = Request(which, is_set, data, arrival, hides_key)
    status = MadStatus.OK
    if is_set:
        assert isinstance(attribute, SettableAttribute)
        accepted = yield from attribute.change(request)
        if not accepted:
            status = MadStatus.INVALID_ATTRIBUTE_VALUE
    answer = yield from attribute.answer(request)
    return smp_response(mad, answer, status)
