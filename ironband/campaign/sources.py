"""The version of the sources that runs are made with."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from toolchain.files_digest import files_digest

__all__ = ["sources_digest"]

_HOUSE: Final = Path(__file__).resolve().parents[2]
_ROOMS: Final = ("wire", "toolchain", "rtl", "model", "sm", "verbs", "verilog", "cosim")
"""All that decides what a run comes to."""

_DIGITS: Final = 16


@cache
def sources_digest() -> str:
    """Another one whenever a file of these rooms is another; as it was when this process first asked."""
    files = (file for room in _ROOMS for file in (_HOUSE / room).rglob("*.*") if file.suffix != ".pyc")
    return files_digest((file for file in files if file.is_file()), _HOUSE)[:_DIGITS]
