"""Structures of C as the kernel's public headers lay them out for programs of this machine."""

from __future__ import annotations

import struct
from collections import namedtuple
from typing import Any

__all__ = ["CStruct"]


class CStruct:
    """A structure: its fields, in order, with nothing between them but what is named as padding.

    Attributes:
        name: what the header calls it.
        size: bytes.
    """

    def __init__(self, name: str, fields: str) -> None:
        """FIELDS are written "FORMAT NAME, ...", with `struct`'s letters; "4x" alone is padding."""
        self.name = name
        words = [field.split() for field in fields.split(",")]
        self._struct = struct.Struct("=" + "".join(word[0] for word in words))
        self.size = self._struct.size
        self.fields = [word[1] for word in words if len(word) == 2]
        self._empty: dict[str, int | bytes] = {
            word[1]: b"" if word[0].endswith("s") else 0 for word in words if word[1:]
        }
        self._record: Any = namedtuple("Fields", self.fields)  # type: ignore[misc]

    def unpack(self, data: bytes | memoryview, at: int = 0) -> Any:
        """The fields, by name.

        Raises:
            struct.error: there are too few bytes.
        """
        return self._record._make(self._struct.unpack_from(data, at))

    def pack(self, **values: int | bytes) -> bytes:
        """The bytes; fields that are not given are 0."""
        odd = values.keys() - set(self.fields)
        if odd:
            raise ValueError(f"{self.name}: no field {', '.join(sorted(odd))}")
        return self._struct.pack(*(self._empty | values).values())
