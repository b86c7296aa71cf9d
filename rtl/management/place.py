"""Where a field is in the 32-bit words in which packets and attributes are kept."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from amaranth.hdl import Array, Const, Value
from amaranth.lib import data

from rtl.management.mad_packet import KEPT_WORDS
from rtl.rotation import any_of
from wire.layout import Field
from wire.packet import WORD_BYTES

__all__ = [
    "WHOLE",
    "WORD_BITS",
    "PacketWrite",
    "Place",
    "bytes_of",
    "constant_words",
    "fields_in_words",
    "masks",
    "part_of",
    "place",
    "word_of",
]

WORD_BITS: Final = 8 * WORD_BYTES

WHOLE: Final = (1 << WORD_BYTES) - 1
"""All bytes of a word."""

PacketWrite = data.StructLayout({"bytes": WORD_BYTES, "index": range(KEPT_WORDS), "word": WORD_BITS})
"""Bytes to write in one word of the agent's packet; bit 0 of `bytes` is its last byte."""


class Place(NamedTuple):
    """A field inside one word; a word's first byte is its highest."""

    word: int
    lsb: int
    width: int

    def of(self, word: Value) -> Value:
        """The field of the word given."""
        return word[self.lsb : self.lsb + self.width]

    def put(self, value: int) -> int:
        """The word with this value in the field and zeros around it."""
        return value << self.lsb

    @property
    def mask(self) -> int:
        """The word with ones in the field."""
        return self.put((1 << self.width) - 1)


def bytes_of(*fields: Place) -> int:
    """The bytes of their word in which these fields are, as `PacketWrite` has them."""
    return sum(1 << byte for byte in range(WORD_BYTES) if any(field.mask >> 8 * byte & 0xFF for field in fields))


def word_of(field: Field, start: int = 0) -> int:
    """The word in which a field of a header begins that itself begins at byte `start`."""
    return (8 * start + field.offset_bits) // WORD_BITS


def place(field: Field, start: int = 0) -> Place:
    """The place of a field of a header that begins at byte `start`.

    Raises:
        ValueError: the field crosses the end of a word.
    """
    lsb = -(8 * start + field.end_bits) % WORD_BITS
    if lsb + field.width > WORD_BITS:
        raise ValueError(f"field {field.name} of {field.width} bits does not lie in one word")
    return Place(word_of(field, start), lsb, field.width)


def part_of(word: Value, number: Value) -> Value:
    """Of the equal parts of a word, the highest first, as many as there are numbers of so many bits."""
    parts = 1 << len(number)
    bits = len(word) // parts
    return Array(word[bits * part :][:bits] for part in reversed(range(parts)))[number]


def masks(field: Field, start: int = 0) -> dict[int, int]:
    """Ones in place of a field of a header that begins at byte `start`, by word; it may take several."""
    after = -(-(8 * start + field.end_bits) // WORD_BITS)
    bits = field.max << (WORD_BITS * after - 8 * start - field.end_bits)
    words = range(word_of(field, start), after)
    return {word: bits >> WORD_BITS * (after - 1 - word) & ((1 << WORD_BITS) - 1) for word in words}


def fields_in_words(values: Mapping[Field, Value], start: int = 0) -> dict[int, Value]:
    """The words that hold these fields of a header that begins at byte `start`, with zeros around them."""
    parts: dict[int, list[Value]] = defaultdict(list)
    for field, value in values.items():
        where = masks(field, start)
        shifted = Value.cast(value) << -(8 * start + field.end_bits) % WORD_BITS
        for place_from_end, word in enumerate(reversed(where)):
            parts[word].append(shifted[WORD_BITS * place_from_end :][:WORD_BITS])
    return {word: any_of(of_word) for word, of_word in parts.items()}


def constant_words(data: bytes) -> dict[int, Value]:
    """The words of these bytes that are not 0."""
    words = [int.from_bytes(data[at : at + WORD_BYTES], "big") for at in range(0, len(data), WORD_BYTES)]
    return {index: Const(word, WORD_BITS) for index, word in enumerate(words) if word}
