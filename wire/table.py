"""Tables of entries of one width: the blocks in which LFTs, P_Keys, GUIDs and paths travel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from dataclasses import field as member

from .layout import Field, Layout

__all__ = ["Table"]


@dataclass(frozen=True, slots=True)
class Table:
    """A block of ``count`` entries of the same width, entry 0 first.

    Attributes:
        name: the standard's name of the table, as errors print it.
        count: entries in a block.
        entry: entry 0; the others follow it without gaps.
        parts: the fields inside an entry, where it has several.

    Raises:
        ValueError: entries that do not fill whole bytes, an entry 0 that is not at bit 0, or parts of
            another width than the entry.
    """

    name: str
    count: int
    entry: Field
    parts: Layout | None = None
    _fields: tuple[Field, ...] = member(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check that the entries fill bytes and the parts an entry."""
        if self.count * self.entry.width % 8:
            raise ValueError(f"table {self.name}: {self.count} entries of {self.entry.width} bits are not whole bytes")
        if self.entry.offset_bits:
            raise ValueError(f"table {self.name}: entry 0 at bit {self.entry.offset_bits}, allowed 0")
        if self.parts is not None and self.parts.size_bytes * 8 != self.entry.width:
            raise ValueError(f"table {self.name}: {self.parts!r} in an entry of {self.entry.width} bits")
        fields = (
            replace(self.entry, name=f"{self.entry.name}_{index}", offset_bits=index * self.entry.width)
            for index in range(self.count)
        )
        object.__setattr__(self, "_fields", tuple(fields))

    @property
    def size_bytes(self) -> int:
        """Bytes on the wire."""
        return self.count * self.entry.width // 8

    def field(self, index: int) -> Field:
        """Where entry ``index`` is.

        Raises:
            ValueError: an index beyond the table.
        """
        if not 0 <= index < self.count:
            raise ValueError(f"{self.name}: entry {index}, allowed 0..{self.count - 1}")
        return self._fields[index]

    def pack(self, values: Iterable[int] = ()) -> bytes:
        """The block's ``size_bytes`` bytes; entries not given take the entry's default.

        Raises:
            ValueError: more values than entries, or a value that does not fit.
        """
        given = list(values)
        if len(given) > self.count:
            raise ValueError(f"{self.name}: {len(given)} entries given, allowed up to {self.count}")
        number = 0
        for value in given + [self.entry.default] * (self.count - len(given)):
            self.entry.check(value, self.name)
            number = number << self.entry.width | value
        return number.to_bytes(self.size_bytes, "big")

    def unpack(self, data: bytes, start: int = 0) -> tuple[int, ...]:
        """The ``count`` entries in the block that begins at byte ``start``; later bytes are ignored.

        Raises:
            ValueError: fewer bytes than the block has.
        """
        chunk = data[start : start + self.size_bytes]
        if len(chunk) != self.size_bytes:
            raise ValueError(f"{self.name}: needs {self.size_bytes} bytes, got {len(chunk)}")
        width, mask = self.entry.width, self.entry.max
        number = int.from_bytes(chunk, "big")
        return tuple([number >> shift & mask for shift in range((self.count - 1) * width, -1, -width)])
