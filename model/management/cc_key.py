"""CC_Key: who may set congestion control, and the lease of that right (docs/management.md, section 7)."""

from typing import Final

from wire.congestion_control import CONGESTION_KEY_INFO
from wire.mad import MadMethod

from ..kernel import STATE, Kernel
from ..link.congestion_words import CongestionWords
from .m_key import KeyCheck, Lease

__all__ = ["CcKey"]

_VIOLATIONS: Final = CONGESTION_KEY_INFO["violations"]
_VIOLATIONS_WORD: Final = _VIOLATIONS.offset_bits // 32
_VIOLATIONS_SHIFT: Final = 32 - _VIOLATIONS.width
"""They are at the beginning of their word."""


class CcKey(CongestionWords):
    """CongestionKeyInfo of a switch."""

    def __init__(self, kernel: Kernel) -> None:
        names = "cc_key", "protect_bit", "lease_period"
        super().__init__(CONGESTION_KEY_INFO, {name: CONGESTION_KEY_INFO[name].max for name in names})
        self._kernel = kernel
        self._lease = Lease(kernel, self._expired)

    def write(self, word: int, value: int) -> None:
        """Violations may be cleared; a lease that expires in this cycle ends protection all the same."""
        if word == _VIOLATIONS_WORD and not value >> _VIOLATIONS_SHIFT:
            self.record = self.record.replace(violations=0)
        super().write(word, value)
        if self._lease.expired == self._kernel.now:
            self.record = self.record.replace(protect_bit=0)

    def check(self, method: int, given: int, lease_second: int) -> KeyCheck:
        """The check of a request's CC_Key, `given`, at its step 0 in the current cycle."""
        record = self.record
        if record.cc_key in (0, given):
            self._lease.stop()
            return KeyCheck.GOOD
        if method == MadMethod.GET and not record.protect_bit:
            return KeyCheck.ANSWERED_WITHOUT_KEY
        self._kernel.at(self._kernel.now + 1, STATE, self._count_violation)  # what is written wins
        self._lease.start(record.lease_period * lease_second)
        return KeyCheck.VIOLATION

    def _count_violation(self, _: None) -> None:
        violations = min(self.record.violations + 1, _VIOLATIONS.max)
        self.record = self.record.replace(violations=violations)

    def _expired(self) -> None:
        self.record = self.record.replace(protect_bit=0)
