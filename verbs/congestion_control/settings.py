"""What a port does about notices of congestion, as management sets it (IBTA vol 1, A10.4.3.8 and A10.4.3.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from wire.codes import SERVICE_LEVELS

__all__ = [
    "TABLE_BLOCKS",
    "TABLE_BLOCK_ENTRIES",
    "TABLE_ENTRIES",
    "UNIT_NS",
    "AdapterSettings",
    "SlEntry",
    "TableEntry",
]

UNIT_NS: Final = 1_024
"""Nanoseconds of the unit of time of CCTI_Timer and of time stamps."""

TABLE_BLOCK_ENTRIES: Final = 64
TABLE_BLOCKS: Final = 2
"""ControlTableCap."""
TABLE_ENTRIES: Final = TABLE_BLOCKS * TABLE_BLOCK_ENTRIES


@dataclass(frozen=True, slots=True)
class SlEntry:
    """How flows of an SL slow down.

    Attributes:
        ccti_timer: the time after which they are one entry of the table faster, in units of 1.024 us; 0: never.
        ccti_increase: entries that they are slower by with each BECN.
        trigger_threshold: the entry that is logged when a flow gets there; 0: none.
        ccti_min: the entry below which no flow goes.
    """

    ccti_timer: int = 0
    ccti_increase: int = 0
    trigger_threshold: int = 0
    ccti_min: int = 0

    def ticks(self, before: int, now: int, cycle_ns: int) -> int:
        """How often the timer has ended after cycle `before`, up to `now`; it runs in step with the time stamps."""
        period = self.ccti_timer * UNIT_NS
        return now * cycle_ns // period - before * cycle_ns // period if period else 0


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The delay behind a packet, by its time on the link."""

    shift: int = 0
    multiplier: int = 0

    def delay(self, cycles: int) -> int:
        """Cycles, behind a packet that takes so many."""
        return (cycles >> self.shift) * self.multiplier


_NO_ENTRIES: Final = (SlEntry(),) * SERVICE_LEVELS
_NO_DELAYS: Final = (TableEntry(),) * TABLE_ENTRIES


@dataclass(slots=True)
class AdapterSettings:
    """CACongestionSetting and CongestionControlTable of a port; at first nothing is ever delayed.

    Attributes:
        by_sl: flows are SLs, and not queue pairs (bit 0 of Port_Control).
        control_map: the entries that the last Set was about.
        entries: by SL.
        ccti_limit: the last entry of the table that is used.
        table: delays by CCTI.
    """

    by_sl: bool = False
    control_map: int = 0
    entries: Sequence[SlEntry] = field(default=_NO_ENTRIES)
    ccti_limit: int = 0
    table: Sequence[TableEntry] = field(default=_NO_DELAYS)
