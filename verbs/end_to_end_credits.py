"""End-to-end credits as a requester of RC keeps them (IBTA vol 1, 9.7.7.2)."""

from __future__ import annotations

from typing import Final

from verbs.aeth import CREDITS, NO_CREDIT_COUNT
from verbs.psn import psn_add, psn_after

__all__ = ["EndToEndCredits"]

_HALF: Final = 1 << 23
"""SSN, LSN and MSN wrap round at 24 bits, and so far one is ahead of another."""


class EndToEndCredits:
    """Numbers messages (SSN) and knows up to which of them the peer has receive requests posted (LSN).

    Before the first ACK nothing is known, and the limit is 0: one packet goes, and asks.
    """

    def __init__(self, *, are_counted: bool = True) -> None:
        self._ssn = 0
        self._limit: int | None = 0 if are_counted else None
        """None if the peer does not count."""

    def number(self, *, takes_a_receive: bool) -> int:
        """The SSN of a message that begins.

        One that takes no receive request has a number too, and moves the limit.
        """
        self._ssn = psn_add(self._ssn, 1)
        if not takes_a_receive and self._limit is not None:
            self._limit = psn_add(self._limit, 1)
        return self._ssn

    def next_may_begin(self) -> bool:
        """True if the next message has a receive request, or is the first that has none: its first packet may go."""
        return self._limit is None or psn_after(self._limit, self._ssn) < _HALF

    def covers(self, ssn: int) -> bool:
        """True if the message of that number finds a receive request."""
        return self._limit is None or psn_after(self._limit, ssn) < _HALF

    def take(self, code: int, msn: int) -> None:
        """Learns what an ACK says: its credit code, and how many messages are complete."""
        if code == NO_CREDIT_COUNT or self._limit is None:
            self._limit = None
            return
        limit = psn_add(msn, CREDITS[code])
        if psn_after(limit, self._limit) < _HALF:
            self._limit = limit
