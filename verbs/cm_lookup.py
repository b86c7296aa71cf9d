"""Service ID resolution: which datagram queue pair serves a service ID (IBTA vol 1, 12.11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from verbs.cm_parameters import CmRoute
from wire.cm import CmMessage, cm_mad, private_data_of
from wire.cm_codes import SidrStatus
from wire.codes import timer_ns
from wire.layout import Record

__all__ = ["Lookup", "LookupResult", "ServiceRequest", "SidrExchange"]


class SidrExchange(Protocol):
    """What a lookup needs of the communication manager."""

    now: int
    response_timeout: int
    max_retries: int

    def send(self, mad: bytes, route: CmRoute) -> None:
        """Sends a message."""

    def cycles(self, nanoseconds: int) -> int:
        """A time in cycles."""


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What was found; of `status` None, there was no answer."""

    status: SidrStatus | int | None
    qpn: int = 0
    q_key: int = 0
    private_data: bytes = b""


class Lookup:
    """A question that was asked."""

    def __init__(
        self, exchange: SidrExchange, mad: bytes, route: CmRoute, on_result: Callable[[LookupResult], None]
    ) -> None:
        self.deadline: int | None = None
        self._exchange = exchange
        self._mad = mad
        self._route = route
        self._tries = exchange.max_retries
        self._on_result = on_result
        self._send()

    def answered(self, record: Record) -> None:
        """Takes the SIDR_REP."""
        self.deadline = None
        self._on_result(LookupResult(record.status, record.qpn, record.q_key, private_data_of(record)))

    def expire(self) -> bool:
        """Its time is up; whether it still waits."""
        if not self._tries:
            self.deadline = None
            self._on_result(LookupResult(None))
            return False
        self._tries -= 1
        self._send()
        return True

    def close(self) -> None:
        """The consumer wants to hear no more of it."""
        self._on_result = lambda result: None

    def _send(self) -> None:
        exchange = self._exchange
        exchange.send(self._mad, self._route)
        self.deadline = exchange.now + exchange.cycles(timer_ns(exchange.response_timeout))


class ServiceRequest:
    """A question that has come.

    Attributes:
        route: where it came from.
        service_id: what it asks for.
        private_data: that came with it; as long as it has room for.
    """

    def __init__(
        self, record: Record, transaction_id: int, route: CmRoute, answer: Callable[[ServiceRequest, bytes], None]
    ) -> None:
        """ANSWER takes the SIDR_REP."""
        self.route = route
        self.service_id = record.service_id
        self.private_data = private_data_of(record)
        self.request_id = record.request_id
        self._tid = transaction_id
        self._answer = answer

    def reply(self, status: SidrStatus, qpn: int = 0, q_key: int = 0, private_data: bytes = b"") -> None:
        """Answers it.

        Raises:
            ValueError: a value that does not fit.
        """
        self._answer(
            self,
            cm_mad(
                CmMessage.SIDR_REP,
                self._tid,
                private_data,
                request_id=self.request_id,
                status=status,
                qpn=qpn,
                service_id=self.service_id,
                q_key=q_key,
            ),
        )
