"""Which engines there are, known without importing any of them."""

from __future__ import annotations

from typing import Final

__all__ = ["ENGINES", "MODEL", "PART_ENGINES"]

PART_ENGINES: Final = ("verilator", "icarus")
"""Those that can simulate some nodes of a fabric and leave the others to the golden model."""

MODEL: Final = "model"
"""The golden model alone."""

ENGINES: Final = (*PART_ENGINES, "amaranth", MODEL)
