"""Limits of what a scenario may ask for, and what its lengths come to."""

from __future__ import annotations

from typing import Final

from wire.parameters import MAX_FLIGHT

__all__ = ["LONGEST_M", "MAX_CYCLES", "NS_PER_METRE", "SDR_CYCLE_NS"]

MAX_CYCLES: Final = 1 << 40
"""No run is as long."""

NS_PER_METRE: Final = 5.0
"""Flight time of a cable, copper or fibre: light at two thirds of its speed in vacuum."""

SDR_CYCLE_NS: Final = 4.0
"""A symbol of a lane at SDR."""

LONGEST_M: Final = MAX_FLIGHT * SDR_CYCLE_NS / NS_PER_METRE
"""The longest cable at SDR."""
