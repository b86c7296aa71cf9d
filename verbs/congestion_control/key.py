"""CC_Key: who may set a port's congestion control (IBTA vol 1, A10.4.3.4; rules in docs/management.md, section 7)."""

from __future__ import annotations

from enum import Enum
from typing import Final

from wire.congestion_control import CONGESTION_KEY_INFO
from wire.mad import MadMethod

__all__ = ["CongestionKey", "Verdict"]

_SECOND_NS: Final = 1_000_000_000
_COUNTER_MAX: Final = 0xFFFF


class Verdict(Enum):
    """What becomes of a request."""

    GOOD = "good"
    KEY_HIDDEN = "answered, but the key is not shown"
    VIOLATION = "not answered"


class CongestionKey:
    """The key, its lease, and how often somebody did not have it."""

    def __init__(self, cycle_ns: int) -> None:
        self._cycle_ns = cycle_ns
        self._key = 0
        self._protects = False
        self._lease_period = 0
        self._violations = 0
        self._expires: int | None = None

    def judge(self, key: int, method: int, now: int) -> Verdict:
        """Looks at the key of a request before anything else is."""
        self._pass_time(now)
        if self._key in (0, key):
            self._expires = None
            return Verdict.GOOD
        if method == MadMethod.GET and not self._protects:
            return Verdict.KEY_HIDDEN
        self._violations = min(self._violations + 1, _COUNTER_MAX)
        if self._expires is None and self._lease_period:
            self._expires = now + self._lease_period * _SECOND_NS // self._cycle_ns
        return Verdict.VIOLATION

    def set(self, data: bytes) -> None:
        """Takes CongestionKeyInfo; violations are cleared by 0, and no other value is taken."""
        info = CONGESTION_KEY_INFO.unpack(data)
        self._key, self._protects, self._lease_period = info.cc_key, bool(info.protect_bit), info.lease_period
        if not info.violations:
            self._violations = 0

    def info(self, *, shown: bool) -> bytes:
        """CongestionKeyInfo."""
        return CONGESTION_KEY_INFO.pack(
            cc_key=self._key if shown else 0,
            protect_bit=self._protects,
            lease_period=self._lease_period,
            violations=self._violations,
        )

    def _pass_time(self, now: int) -> None:
        if self._expires is not None and self._expires <= now:
            self._expires = None
            self._protects = False
