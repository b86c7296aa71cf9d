"""M_Key: who may manage a node, and the lease of that right (docs/management.md, section 4); CC_Key has the same."""

from collections.abc import Callable
from enum import IntEnum

from wire.mad import MadMethod

from ..kernel import NEVER, STATE, Kernel

__all__ = ["KeyCheck", "Lease", "check_key"]


class KeyCheck(IntEnum):
    """What an SMP's M_Key lets it do."""

    GOOD = 0
    ANSWERED = 1
    """Wrong; the SMP is answered nevertheless."""
    ANSWERED_WITHOUT_KEY = 2
    """Wrong; the SMP is answered, and M_Key reads 0."""
    VIOLATION = 3
    """Wrong; the SMP has no answer."""


def check_key(method: int, given: int, m_key: int, protect_bits: int) -> KeyCheck:
    """The check of an SMP's M_Key, `given`, against PortInfo's M_Key and M_KeyProtectBits."""
    if m_key in (0, given):
        return KeyCheck.GOOD
    if method == MadMethod.GET and protect_bits == 0:
        return KeyCheck.ANSWERED
    if method == MadMethod.GET and protect_bits == 1:
        return KeyCheck.ANSWERED_WITHOUT_KEY
    return KeyCheck.VIOLATION


class Lease:
    """The lease timer: runs from a violation to a request with a good key. It counts every cycle.

    Attributes:
        expired: the cycle in which it last did.
    """

    def __init__(self, kernel: Kernel, expire: Callable[[], None]) -> None:
        """`expire` is called in the cycle in which the timer expires, before what is written shows in it."""
        self.expired = NEVER
        self._kernel = kernel
        self._expire = expire
        self._expires_at: int | None = None

    def start(self, cycles: int) -> None:
        """Start, unless it runs or `cycles`, the period, is 0."""
        if self._expires_at is None and cycles:
            self._expires_at = self._kernel.now + cycles
            self._kernel.at(self._expires_at, STATE, self._expire_now)

    def stop(self) -> None:
        """A good key came in."""
        self._expires_at = None

    def _expire_now(self, _: None) -> None:
        if self._expires_at == self._kernel.now:
            self._expires_at = None
            self.expired = self._kernel.now
            self._expire()
