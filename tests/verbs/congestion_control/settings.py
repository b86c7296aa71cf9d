"""Settings of congestion control that tests begin with."""

from __future__ import annotations

from verbs.congestion_control.settings import TABLE_ENTRIES, AdapterSettings, SlEntry, TableEntry
from wire.codes import SERVICE_LEVELS

NS = 4
"""Of a cycle."""
UNIT = 256
"""Cycles of 1.024 us."""
LIMIT = TABLE_ENTRIES - 1


def settings_with(*, by_sl: bool = False, limit: int = LIMIT, **entry: int) -> AdapterSettings:
    """The same for all SLs; entry i of the table waits i times as long as a packet takes."""
    entries = (SlEntry(**{"ccti_increase": 1, **entry}),) * SERVICE_LEVELS
    table = tuple(TableEntry(0, place) for place in range(TABLE_ENTRIES))
    return AdapterSettings(by_sl=by_sl, entries=entries, ccti_limit=limit, table=table)
