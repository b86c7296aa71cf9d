"""What is played on the wires of an open port: the golden model's rows, as entries of the player's file."""

from __future__ import annotations

from cosim.harness.stream_files import WIRE_ENTRY
from model.fabric import WireLog
from wire.symbols import IDLE_PERIOD

__all__ = ["WirePlay"]

_PACES = {0: 0, 1: 1, 4: 2}
"""Codes of `cosim.harness.stream_files.WIRE_ENTRY`, by the cycles from row to row."""

_IDLE = (0, 0)


class WirePlay:
    """Turns what is logged of a wire into entries, window by window."""

    def __init__(self, log: WireLog, delay: int = 0) -> None:
        """Rows are played `delay` cycles after those in which they were on the sender's wires."""
        self._log = log
        self._delay = delay
        self._pace = 0
        self._polls = True

    def entries(self, until: int) -> bytes:
        """Entries for cycles below UNTIL, all of which are over in the model, and that were not asked for before."""
        log, delay = self._log, self._delay
        paces = {cycle + delay: pace for cycle, pace in log.paces(until - delay)}
        rows = {cycle + delay: (data, k) for cycle, data, k in log.rows(until - delay)}
        polls = dict(log.polls(until))
        entries = []
        for cycle in sorted({*paces, *rows, *polls}):
            self._pace = paces.get(cycle, self._pace)
            self._polls = polls.get(cycle, self._polls)
            sent = cycle - delay
            flags = (cycle in rows) | _PACES[self._pace] << 1 | self._polls << 3 | (sent & 3) << 4
            data, k = rows.get(cycle, _IDLE)
            entries.append(WIRE_ENTRY.pack(cycle, flags, k, sent % IDLE_PERIOD, data))
        return b"".join(entries)
