"""The log of a port's congestion control (IBTA vol 1, A10.4.3.5)."""

from __future__ import annotations

from collections import deque
from typing import Final

from verbs.congestion_control.settings import UNIT_NS
from wire.congestion_control import CA_CONGESTION_LOG, CA_CONGESTION_LOG_EVENT

__all__ = ["CongestionLog", "time_stamp"]

_EVENTS: Final = 13
_COUNTER_MAX: Final = 0xFFFF


def time_stamp(now: int, cycle_ns: int) -> int:
    """Of a cycle, in units of 1.024 us, 32 bits."""
    return now * cycle_ns // UNIT_NS & 0xFFFF_FFFF


class CongestionLog:
    """Flows that have reached the threshold of their SL."""

    def __init__(self) -> None:
        self._count = 0
        self._sls = 0
        self._events: deque[int] = deque([0] * _EVENTS, _EVENTS)

    def add(self, sl: int, **event: int) -> None:
        """One more, with the other fields of a CongestionLogEvent."""
        self._count = min(self._count + 1, _COUNTER_MAX)
        self._sls |= 1 << sl
        self._events.appendleft(CA_CONGESTION_LOG_EVENT.to_int(sl=sl, **event))

    def read(self, current_time_stamp: int) -> bytes:
        """The attribute; the counter and the map begin anew."""
        fields = {f"event{place}": event for place, event in enumerate(self._events)}
        data = CA_CONGESTION_LOG.pack(
            threshold_event_counter=self._count,
            threshold_congestion_event_map=self._sls,
            current_time_stamp=current_time_stamp,
            **fields,
        )
        self._count = self._sls = 0
        return data
