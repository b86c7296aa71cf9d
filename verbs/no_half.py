"""The half that a queue pair of XRC or RD does not have."""

from __future__ import annotations

from verbs.arrived import Arrived
from verbs.frame import Outgoing
from verbs.work import SendRequest

__all__ = ["NoResponder", "NoSender"]


class NoResponder:
    """Takes no requests."""

    @property
    def expected(self) -> int:
        """No PSN is."""
        return 0

    def start(self) -> None:
        """Nothing begins."""

    def clear(self) -> None:
        """Nothing is there."""

    def flush(self) -> None:
        """Nothing is there."""

    def receive(self, packet: Arrived) -> None:
        """Drops it."""

    def next_packet(self, held: bool) -> Outgoing | None:
        """Nothing is answered."""
        return None


class NoSender:
    """Sends no packets of requests."""

    @property
    def wake(self) -> int | None:
        """Nothing is waited for."""
        return None

    @property
    def waits_for_receiver(self) -> bool:
        """Nothing is waited for."""
        return False

    @property
    def posted(self) -> int:
        """Nothing is."""
        return 0

    @property
    def psn(self) -> int:
        """No PSN is next."""
        return 0

    @property
    def sl(self) -> int:
        """Nothing is sent."""
        return 0

    @property
    def is_drained(self) -> bool:
        """Always."""
        return True

    def start(self) -> None:
        """Nothing begins."""

    def post(self, request: SendRequest) -> None:
        """No request gets as far as here."""

    def receive(self, packet: Arrived, now: int) -> None:
        """Drops it."""

    def next_packet(self, now: int) -> Outgoing | None:
        """Nothing is sent."""
        return None

    def expire(self, now: int) -> None:
        """Nothing depends on time."""

    def flush(self) -> None:
        """Nothing is there."""

    def clear(self) -> None:
        """Nothing is there."""
