"""What an attribute of a management class is: its code, format, modifier and methods (IBTA vol 1, 13.4.8)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from .layout import Layout
from .mad import MadMethod
from .table import Table

__all__ = ["GET", "GET_SET", "NO_MODIFIER", "Attribute", "Format"]

Format: TypeAlias = Layout | Table
"""How an attribute's bytes are read: as fields with names, or as a block of entries of one width."""

NO_MODIFIER: Final = Layout("AttributeModifier", 4, [])
"""The AttributeModifier of an attribute that makes no use of it."""

GET: Final = frozenset({MadMethod.GET})
GET_SET: Final = frozenset({MadMethod.GET, MadMethod.SET})


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute.

    Attributes:
        code: the AttributeID.
        format: its bytes, from the first data byte of the MAD.
        methods: the requests that may name it.
        modifier: the fields of the AttributeModifier, a layout of 4 bytes.
    """

    code: IntEnum
    format: Format
    methods: frozenset[MadMethod]
    modifier: Layout = NO_MODIFIER

    @property
    def name(self) -> str:
        """The standard's name."""
        return self.format.name
