"""Limits of what a scenario may ask for."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_CYCLES"]

MAX_CYCLES: Final = 1 << 40
"""No run is as long."""
