"""When a requester of RC sends again, and how often: Local ACK Timeout, RNR timer, retry counts (IBTA vol 1, 9.9.2)."""

from __future__ import annotations

from typing import Final

from verbs.aeth import ack_timeout_cycles, rnr_timer_cycles
from verbs.pair_state import PairState

__all__ = ["Retries"]

_ENDLESS: Final = 7
"""As RNR retry count: without end (IBTA vol 1, 9.7.5.2.8)."""


class Retries:
    """Timers and counts of one requester. Progress, an ACK of something new, renews the counts."""

    def __init__(self, pair: PairState) -> None:
        self._pair = pair
        self._left = 0
        self._rnr_left = 0
        self._deadline: int | None = None
        self._rnr_until: int | None = None

    def renew(self) -> None:
        """Something was acknowledged: nothing is waited for, and all may be tried as often as at first."""
        self._left = self._pair.attributes.retry_cnt
        self._rnr_left = self._pair.attributes.rnr_retry
        self.stop()

    def stop(self) -> None:
        """Nothing is waited for."""
        self._deadline = self._rnr_until = None

    @property
    def waits_for_receiver(self) -> bool:
        """True between an RNR NAK and the end of the time that it asked for."""
        return self._rnr_until is not None

    @property
    def wake(self) -> int | None:
        """When one of the timers runs out."""
        return self._deadline if self._rnr_until is None else self._rnr_until

    def start_timeout(self, now: int, *, anew: bool = False) -> None:
        """Begins to wait for an answer, unless that has begun already or is to begin anew."""
        if anew or self._deadline is None:
            cycles = ack_timeout_cycles(self._pair.attributes.timeout, self._pair.cycle_ns)
            self._deadline = None if cycles is None else now + cycles

    def expire(self, now: int) -> bool:
        """Lets time pass to `now`; true if an answer is overdue."""
        if self._rnr_until is not None and self._rnr_until <= now:
            self._rnr_until = None
        return self._deadline is not None and self._deadline <= now

    def spend(self) -> bool:
        """Takes one of the times that are left; false if there is none."""
        self._left -= 1
        return self._left >= 0

    def wait_for_receiver(self, timer_code: int, now: int) -> bool:
        """Takes one of the times for receivers that are not ready, and waits; false if there is none left."""
        if self._pair.attributes.rnr_retry != _ENDLESS:
            self._rnr_left -= 1
            if self._rnr_left < 0:
                return False
        self._deadline = None
        self._rnr_until = now + rnr_timer_cycles(timer_code, self._pair.cycle_ns)
        return True
