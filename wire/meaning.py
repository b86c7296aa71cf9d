"""What the number in a field means to a person: a name, a set of names, an amount with its unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from ipaddress import IPv6Address
from typing import Final, TypeAlias

__all__ = ["GID", "HEX", "TEXT", "Amount", "Bits", "Code", "Derived", "Meaning", "label"]

# fmt: off
_CAPITALS: Final = frozenset({
    "2X", "BM", "CA", "CM", "DDR", "DR", "EEC", "FDB", "GID", "GUID", "HDR", "ID", "IPD", "LID", "M", "MTU", "NDR",
    "NVRAM", "OK", "P", "QDR", "QP", "QPN", "RC", "RD", "RDC", "RNR", "SDR", "SL", "SM", "SNMP", "UC",
})
# fmt: on
"""Words that stay in capitals when a code's name is written as the standard writes it."""


Meaning: TypeAlias = Callable[[int, int], str]
"""Writes the value of a field of so many bits for a person. A function of a module, or an instance of a class here, so
that layouts can be pickled and compared."""


def label(code: IntEnum | IntFlag) -> str:
    """A code's name in the standard's spelling: ``LINK_UP`` is LinkUp, ``X4`` is 4X."""
    name = code.name or str(int(code))
    if name[0] == "X" and name[1:].isdigit():
        return f"{name[1:]}X"
    return "".join(word if word in _CAPITALS else word.capitalize() for word in name.split("_"))


def _hexadecimal(value: int, width: int) -> str:
    return f"{value:#0{(width + 3) // 4 + 2}x}"


def _gid(value: int, width: int) -> str:
    return str(IPv6Address(value))


def _text(value: int, width: int) -> str:
    return repr(value.to_bytes(width // 8, "big").split(b"\0")[0].decode(errors="replace"))


HEX: Final[Meaning] = _hexadecimal
"""A key, identifier or mask: ``0x`` and as many hexadecimal digits as the field has."""

GID: Final[Meaning] = _gid
"""A 128-bit global identifier, written as an IPv6 address."""

TEXT: Final[Meaning] = _text
"""A UTF-8 string, filled with zero bytes; in quotes."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A count of ``unit``."""

    unit: str

    def __call__(self, value: int, width: int) -> str:
        """The number and its unit."""
        return f"{value} {self.unit}"


@dataclass(frozen=True, slots=True)
class Code:
    """One value of an enumeration."""

    codes: type[IntEnum]

    def __call__(self, value: int, width: int) -> str:
        """The number and the name it stands for."""
        named = value in self.codes.__members__.values()
        return f"{value} ({label(self.codes(value)) if named else 'reserved'})"


@dataclass(frozen=True, slots=True)
class Bits:
    """A mask of flags.

    Attributes:
        codes: a name for each flag.
        words: values that are no masks, and what they say.
    """

    codes: type[IntFlag]
    words: tuple[tuple[int, str], ...] = ()

    def __call__(self, value: int, width: int) -> str:
        """The mask and the flags set in it; bits without a name are shown by their number."""
        number = HEX(value, width)
        for word, says in self.words:
            if value == word:
                return f"{number} ({says})"
        known = {int(code): label(code) for code in self.codes}
        names = [known.get(1 << bit, f"bit {bit}") for bit in range(width) if value >> bit & 1]
        return f"{number} ({', '.join(names) or 'none'})"


@dataclass(frozen=True, slots=True)
class Derived:
    """A number that stands for another amount.

    Attributes:
        words: what a value says; ValueError for a value that says nothing. A function of a module too.
    """

    words: Callable[[int], str]

    def __call__(self, value: int, width: int) -> str:
        """The number and what it says."""
        try:
            return f"{value} ({self.words(value)})"
        except ValueError:
            return f"{value} (reserved)"
