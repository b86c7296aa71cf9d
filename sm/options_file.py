"""Files of OpenSM's options (`opensm -c FILE` writes one): their lines, and numbers as C reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from sm.errors import ManagerError

__all__ = ["UNSET", "Option", "OptionsError", "c_number", "cited", "number", "options"]

UNSET: Final = "(null)"
"""What `opensm -c` writes of texts that nobody has set."""

_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")
"""As C reads one; a decimal number, an octal one with 0 in front."""
_BEYOND: Final = 1 << 64
_LONGEST_DECIMAL: Final = len(str(_BEYOND))
_CITED: Final = 40
"""Characters of a number that an error has at most."""
_MOST_IN_DECIMAL: Final = 0xFFFF
"""Ranges that end above are told in hexadecimal."""


class OptionsError(ManagerError):
    """A file of options that is wrong; the text is one line: file, line number, reason."""


class Option(NamedTuple):
    """A line of a file: its number from 1 on, the option's name, and what it says of it, one word or several."""

    line: int
    name: str
    value: str


def options(text: str) -> Iterator[Option]:
    """The lines of a file that say something, without comments; of an option that is there twice the last counts."""
    for line, content in enumerate(text.splitlines(), 1):
        words = content.partition("#")[0].split(None, 1)
        if len(words) == 2:
            yield Option(line, words[0], words[1].strip())


def number(text: str, low: int, high: int) -> int:
    """A number of a range.

    Raises:
        ValueError: it is none, or not of the range.
    """
    value = c_number(text)
    if value is None or not low <= value <= high:
        span = f"{low}..{high}" if high <= _MOST_IN_DECIMAL else f"{low:#x}..{high:#x}"
        raise ValueError(f"{cited(text)}: expected {span}")
    return value


def c_number(text: str) -> int | None:
    """What `strtoull` with base 0 makes of all of a text; of more than 64 bits 2^64, and None if it is no number."""
    if _NUMBER.fullmatch(text) is None:
        return None
    if text[0] != "0":
        return _BEYOND if len(text) > _LONGEST_DECIMAL else min(int(text), _BEYOND)
    return min(int(text, 16 if text[:2] in ("0x", "0X") else 8), _BEYOND)


def cited(text: str) -> str:
    """A text of any length as an error has it."""
    return text if len(text) <= _CITED else f"{text[:_CITED]}..."
