"""Attributes of congestion control as the register bus has them, word by word (docs/management.md, section 7)."""

from collections.abc import Mapping
from typing import Final

from wire.congestion_control import CC_DATA_BYTES
from wire.layout import Layout, Record
from wire.registers import DATA_BITS

__all__ = ["CongestionWords", "word_of_data"]

_WORD_BYTES: Final = DATA_BITS // 8
_WORD_MASK: Final = (1 << DATA_BITS) - 1


def word_of_data(data: bytes, word: int) -> int:
    """A word of an attribute's bytes; beyond them it is 0."""
    return int.from_bytes(data[_WORD_BYTES * word : _WORD_BYTES * (word + 1)].ljust(_WORD_BYTES, b"\0"), "big")


class CongestionWords:
    """An attribute whose words may be written: what is in a word and no field takes no write.

    Attributes:
        record: its fields, as visible; at reset as the layout has them by default.
    """

    def __init__(self, layout: Layout, writable: Mapping[str, int]) -> None:
        """`writable` are the bits of fields that take writes."""
        self.record: Record = layout.record()
        self._layout = layout
        self._writable = layout.to_int({field.name: writable.get(field.name, 0) for field in layout.fields})
        self._rest = 8 * (CC_DATA_BYTES - layout.size_bytes)  # bits of the words' end, behind the attribute

    def read(self, word: int) -> int:
        """A word, as visible."""
        return word_of_data(self.record.pack(), word)

    def write(self, word: int, value: int) -> None:
        """A word is written, visible in the current cycle."""
        shift = DATA_BITS * (CC_DATA_BYTES // _WORD_BYTES - 1 - word)
        mask = _WORD_MASK << shift >> self._rest & self._writable
        kept = self._layout.to_int(self.record) & ~mask
        self.record = self._layout.from_int(kept | (value << shift >> self._rest & mask))
