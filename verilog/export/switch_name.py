"""What an exported switch is called: its modules and files begin with its name, so that several live side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from toolchain.errors import UserError
from verilog.export.names import KEYWORDS

__all__ = ["PARTNER", "TEST_BENCH", "TOP", "check_name", "named"]

TOP: Final = "ironband_switch"
"""Name of the top module, unless another is asked for."""

TEST_BENCH: Final = f"{TOP}_tb"

PARTNER: Final = "ironband_link_partner"
"""Module of the other end of a link, the same for all switches."""

_MOST: Final = 64
_NAME: Final = re.compile(rf"[A-Za-z]\w{{0,{_MOST - 1}}}", re.ASCII)
_OF_TOP: Final = re.compile(rf"\b{TOP}")


def check_name(name: str) -> None:
    """Raise UserError unless a switch can be called NAME."""
    if not _NAME.fullmatch(name) or name in KEYWORDS or name == PARTNER or name.endswith("_tb"):
        raise UserError(
            f"name {name}: expected 1..{_MOST} letters, digits and underscores, a letter first,"
            f" neither a keyword nor {PARTNER} nor with _tb at its end"
        )


def named(files: Mapping[str, str], name: str) -> dict[str, str]:
    """The files of a switch called TOP as those of one called NAME."""
    return {_OF_TOP.sub(name, file): _OF_TOP.sub(name, text) for file, text in files.items()}
