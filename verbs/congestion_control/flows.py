"""Flows that a port slows down: their place in the table of delays, and when they may go on (IBTA vol 1, A10.2.2)."""

from __future__ import annotations

from dataclasses import dataclass

from verbs.congestion_control.settings import AdapterSettings

__all__ = ["Flows"]


@dataclass(slots=True)
class _Flow:
    """One that was told of congestion, or has sent with a delay.

    Attributes:
        ccti: its place as it was in cycle `since`.
        free: the cycle from which on it may send.
    """

    ccti: int
    since: int
    free: int = 0


class Flows:
    """The flows of a port, each a queue pair's of an SL, or an SL.

    Nothing is done as timers end: what a CCTI has become by then is reckoned when somebody asks.
    """

    def __init__(self, cycle_ns: int) -> None:
        self._settings = AdapterSettings()
        self._cycle_ns = cycle_ns
        self._flows: dict[tuple[int, int], _Flow] = {}

    @property
    def settings(self) -> AdapterSettings:
        """What management has set; to be changed by `change` alone."""
        return self._settings

    def change(self, settings: AdapterSettings, now: int) -> None:
        """Goes by other settings from cycle `now` on."""
        for (number, sl), flow in self._flows.items():
            flow.ccti, flow.since = self.ccti(number, sl, now), now
        if settings.by_sl is not self._settings.by_sl:
            self._flows.clear()
        self._settings = settings

    def ccti(self, number: int, sl: int, now: int) -> int:
        """The place of a queue pair's packets of an SL."""
        settings, flow = self._settings, self._flows.get(self._key(number, sl))
        entry, ccti = settings.entries[sl], 0
        if flow is not None:
            ccti = flow.ccti - entry.ticks(flow.since, now, self._cycle_ns)
        return min(max(ccti, entry.ccti_min), settings.ccti_limit)

    def slow_down(self, number: int, sl: int, now: int) -> bool:
        """A BECN has come; true if the flow so has reached the threshold of its SL."""
        settings, before = self._settings, self.ccti(number, sl, now)
        entry = settings.entries[sl]
        after = min(before + entry.ccti_increase, settings.ccti_limit)
        flow = self._flow(number, sl, now)
        flow.ccti, flow.since = after, now
        return before < entry.trigger_threshold <= after

    def sent(self, number: int, sl: int, cycles: int, now: int) -> None:
        """A packet has been sent that takes so many cycles on the link."""
        ccti = self.ccti(number, sl, now)
        if ccti:
            self._flow(number, sl, now).free = now + cycles + self._settings.table[ccti].delay(cycles)

    def free(self, number: int, sl: int) -> int:
        """The cycle from which on a queue pair may send packets of an SL."""
        flow = self._flows.get(self._key(number, sl))
        return 0 if flow is None else flow.free

    def forget(self, number: int) -> None:
        """A queue pair has ended."""
        for key in [key for key in self._flows if key[0] == number]:
            del self._flows[key]

    def _key(self, number: int, sl: int) -> tuple[int, int]:
        return 0 if self._settings.by_sl else number, sl

    def _flow(self, number: int, sl: int, now: int) -> _Flow:
        key = self._key(number, sl)
        if key not in self._flows:
            self._flows[key] = _Flow(0, now)
        return self._flows[key]
