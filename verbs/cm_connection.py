"""One end of a connection: its states from the first message to the end of TimeWait (IBTA vol 1, 12.9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

from verbs.cm_parameters import CmRoute, ConnectionReply, Negotiated
from wire.cm import CmMessage, cm_mad, private_data_of
from wire.cm_codes import MraMessage, RejectReason, RejMessage
from wire.codes import timer_ns
from wire.layout import Record

__all__ = ["CmError", "CmEvent", "CmEventType", "Connection", "ConnectionState", "Exchange"]

_SERVICE_TIMEOUT: Final = 24
"""Code of the time that an MRA asks for: 69 s."""

_GUID_BYTES: Final = 8


class CmError(ValueError):
    """What cannot be done in a connection's state, or at all."""


class ConnectionState(Enum):
    """Where a connection is."""

    REQ_SENT = auto()
    """We have asked, and wait for REP or REJ."""
    REQ_RECEIVED = auto()
    """We were asked; our consumer has to decide."""
    REP_SENT = auto()
    """Our consumer has accepted; we wait for RTU."""
    REP_RECEIVED = auto()
    """We were accepted; our consumer has to say that it is ready."""
    ESTABLISHED = auto()
    DREQ_SENT = auto()
    """We have ended it, and wait for DREP."""
    TIME_WAIT = auto()
    """It is over; packets of it may still be under way."""
    CLOSED = auto()
    """Nothing is left of it."""


class CmEventType(Enum):
    """What a consumer hears of a connection."""

    REPLY = auto()
    """The peer has accepted; `confirm` is due."""
    ESTABLISHED = auto()
    """The peer, whom we had accepted, is ready."""
    REJECTED = auto()
    UNREACHABLE = auto()
    """There is no answer."""
    DISCONNECTED = auto()
    """It is over, by whomever."""
    TIME_WAIT_EXIT = auto()
    """Its queue pair may be used for something else."""


@dataclass(frozen=True, slots=True)
class CmEvent:
    """An event of a connection.

    Attributes:
        reason: of a reject.
        private_data: that came with the message; as long as it has room for.
    """

    kind: CmEventType
    private_data: bytes = b""
    reason: int = 0


class Exchange(Protocol):
    """What a connection needs of the communication manager."""

    now: int
    ca_guid: int
    response_timeout: int
    max_retries: int

    def send(self, mad: bytes, route: CmRoute) -> None:
        """Sends a message."""

    def cycles(self, nanoseconds: int) -> int:
        """A time in cycles."""

    def forget(self, connection: Connection) -> None:
        """Nothing that comes is for it any more."""


class Connection:
    """One end.

    Attributes:
        state: where it is.
        negotiated: what is known of the queue pairs.
        private_data: of the request, at the end that was asked.
        on_event: gets each event.
        local_comm_id, remote_comm_id: what it is called here, and there.
        remote_ca_guid: of the peer.
    """

    def __init__(
        self,
        exchange: Exchange,
        state: ConnectionState,
        negotiated: Negotiated,
        *,
        comm_id: int,
        transaction_id: int,
        remote: tuple[int, int] = (0, 0),
        private_data: bytes = b"",
    ) -> None:
        """REMOTE is CA GUID and communication ID of the peer."""
        self.state = state
        self.negotiated = negotiated
        self.private_data = private_data
        self.on_event: Callable[[CmEvent], None] = lambda event: None
        self.local_comm_id = comm_id
        self.remote_ca_guid, self.remote_comm_id = remote
        self.deadline: int | None = None
        self._exchange = exchange
        self._tid = transaction_id
        self._repeated = b""
        self._tries = 0
        self._rtu = b""
        self._last_word: RejectReason | None = None
        self._was_established = False

    def __str__(self) -> str:
        return f"connection {self.local_comm_id:#x} ({self.state.name})"

    # What consumers call.

    def ask(self, fields: dict[str, int], private_data: bytes) -> None:
        """Sends the REQ, until it is answered.

        Raises:
            ValueError: a value that does not fit.
        """
        exchange = self._exchange
        req = self._mad(
            CmMessage.REQ,
            private_data,
            local_ca_guid=exchange.ca_guid,
            starting_psn=self.negotiated.psn,
            remote_cm_response_timeout=exchange.response_timeout,
            local_cm_response_timeout=exchange.response_timeout,
            max_cm_retries=exchange.max_retries,
            **fields,
        )
        self._send_until_answered(req)

    def accept(self, reply: ConnectionReply) -> None:
        """Accepts what was asked; the peer's readiness is an event.

        Raises:
            CmError: there is nothing to be accepted, or a value does not fit.
        """
        self._require("accepted", ConnectionState.REQ_RECEIVED)
        rep = self._mad(
            CmMessage.REP,
            reply.private_data,
            local_ca_guid=self._exchange.ca_guid,
            starting_psn=self.negotiated.psn,
            **reply.fields(),
        )
        self.negotiated.reply(reply)
        self.state = ConnectionState.REP_SENT
        self._send_until_answered(rep)

    def confirm(self, private_data: bytes = b"") -> None:
        """Says that we, who were accepted, are ready.

        Raises:
            CmError: we were not accepted.
        """
        self._require("confirmed", ConnectionState.REP_RECEIVED)
        self._rtu = self._mad(CmMessage.RTU, private_data)
        self._establish()
        self._send(self._rtu)

    def establish(self) -> None:
        """A message has come on the queue pair, so the peer is ready, whatever has become of its RTU."""
        if self.state is ConnectionState.REP_SENT:
            self._establish()
            self._tell(CmEventType.ESTABLISHED)

    def reject(
        self, reason: RejectReason = RejectReason.CONSUMER_REJECT, private_data: bytes = b"", info: bytes = b""
    ) -> None:
        """Refuses what was asked, or what was answered to us.

        Raises:
            CmError: there is nothing to be refused.
        """
        self._require("rejected", ConnectionState.REQ_RECEIVED, ConnectionState.REP_RECEIVED)
        self._repeated = self._reject(reason, private_data, info)
        self._last_word = reason
        self._end()

    def disconnect(self, private_data: bytes = b"") -> None:
        """Ends it. That it is over is an event. Of what is over already nothing more is heard.

        Raises:
            CmError: it is not established.
        """
        if self.state in (ConnectionState.DREQ_SENT, ConnectionState.TIME_WAIT, ConnectionState.CLOSED):
            return
        self._require("disconnected", ConnectionState.ESTABLISHED, ConnectionState.REP_SENT)
        self.state = ConnectionState.DREQ_SENT
        self._send_until_answered(self._mad(CmMessage.DREQ, private_data, remote_qpn_eecn=self.negotiated.remote_qpn))

    def close(self) -> None:
        """The consumer wants to hear no more of it. The peer is told what it has to know."""
        self.on_event = lambda event: None
        match self.state:
            case ConnectionState.REQ_SENT:
                self._give_up(RejectReason.TIMEOUT)
            case ConnectionState.REQ_RECEIVED | ConnectionState.REP_RECEIVED:
                self.reject()
            case ConnectionState.REP_SENT | ConnectionState.ESTABLISHED:
                self.disconnect()
            case _:
                pass

    # What the communication manager calls.

    @property
    def waits_for_peer(self) -> bool:
        """Whether it waits for the peer's communication manager, which answers at once."""
        return self.state in (ConnectionState.REQ_SENT, ConnectionState.REP_SENT, ConnectionState.DREQ_SENT)

    def received(self, message: CmMessage, record: Record) -> None:
        """Takes a message that is for it."""
        match message:
            case CmMessage.REQ:
                self._req_again()
            case CmMessage.REP:
                self._rep(record)
            case CmMessage.RTU:
                self._rtu_received(record)
            case CmMessage.MRA:
                self._mra(record)
            case CmMessage.REJ:
                self._rej(record)
            case CmMessage.DREQ:
                self._dreq(record)
            case CmMessage.DREP:
                if self.state is ConnectionState.DREQ_SENT:
                    self._end()
                    self._tell(CmEventType.DISCONNECTED, record)
            case _:
                pass

    def expire(self) -> None:
        """Its time is up."""
        self.deadline = None
        if self.state is ConnectionState.TIME_WAIT:
            self.state = ConnectionState.CLOSED
            self._exchange.forget(self)
            if self._was_established:
                self._tell(CmEventType.TIME_WAIT_EXIT)
        elif self._tries:
            self._tries -= 1
            self._send(self._repeated)
            self._wait()
        elif self.state is ConnectionState.DREQ_SENT:
            self._end()
            self._tell(CmEventType.DISCONNECTED)
        else:
            self._give_up(RejectReason.TIMEOUT)
            self._tell(CmEventType.UNREACHABLE)

    # Messages that have come.

    def _req_again(self) -> None:
        if self.state is ConnectionState.REQ_RECEIVED:
            self._send(self._mad(CmMessage.MRA, message_mraed=MraMessage.REQ, service_timeout=_SERVICE_TIMEOUT))
        elif self.state is ConnectionState.REP_SENT or self._last_word is not None:
            self._send(self._repeated)

    def _rep(self, rep: Record) -> None:
        match self.state:
            case ConnectionState.REQ_SENT:
                self.remote_comm_id = rep.local_comm_id
                self.remote_ca_guid = rep.local_ca_guid
                self.negotiated.replied(rep)
                self.state = ConnectionState.REP_RECEIVED
                self.deadline = None
                self._tell(CmEventType.REPLY, rep)
            case ConnectionState.REP_RECEIVED:
                self._send(self._mad(CmMessage.MRA, message_mraed=MraMessage.REP, service_timeout=_SERVICE_TIMEOUT))
            case ConnectionState.ESTABLISHED:
                self._send(self._rtu)
            case ConnectionState.TIME_WAIT:
                self.remote_comm_id = rep.local_comm_id
                self._reject(self._last_word or RejectReason.INVALID_COMMUNICATION_ID)
            case _:
                pass

    def _rtu_received(self, rtu: Record) -> None:
        if self.state is ConnectionState.REP_SENT:
            self._establish()
            self._tell(CmEventType.ESTABLISHED, rtu)
        elif self.state is ConnectionState.TIME_WAIT and self._last_word is not None:
            self._reject(self._last_word)

    def _mra(self, mra: Record) -> None:
        waits_for = {ConnectionState.REQ_SENT: MraMessage.REQ, ConnectionState.REP_SENT: MraMessage.REP}
        if waits_for.get(self.state) == mra.message_mraed:
            exchange = self._exchange
            self.deadline = exchange.now + self._there_and_back + exchange.cycles(timer_ns(mra.service_timeout))

    def _rej(self, rej: Record) -> None:
        if self.state is ConnectionState.DREQ_SENT:
            self._end()
            self._tell(CmEventType.DISCONNECTED)
        elif self.state not in (ConnectionState.TIME_WAIT, ConnectionState.CLOSED):
            self._end()
            self._tell(CmEventType.REJECTED, rej)

    def _dreq(self, dreq: Record) -> None:
        if self.state in (ConnectionState.REQ_SENT, ConnectionState.REQ_RECEIVED):
            return
        self._send(self._mad(CmMessage.DREP, tid=None))
        if self.state is not ConnectionState.TIME_WAIT:
            self._was_established = True
            self._end()
            self._tell(CmEventType.DISCONNECTED, dreq)

    # Inside.

    @property
    def _there_and_back(self) -> int:
        """Cycles that a message and its answer may be under way."""
        return self._exchange.cycles(timer_ns(self.negotiated.ack_timeout))

    def _require(self, what: str, *states: ConnectionState) -> None:
        if self.state not in states:
            allowed = ", ".join(state.name for state in states)
            raise CmError(f"{self} cannot be {what}: allowed in {allowed}")

    def _establish(self) -> None:
        self.state = ConnectionState.ESTABLISHED
        self.deadline = None
        self._was_established = True

    def _end(self) -> None:
        """It is over, but what may still come of it."""
        self.state = ConnectionState.TIME_WAIT
        exchange = self._exchange
        self.deadline = exchange.now + self._there_and_back
        if self._last_word is not None:
            # For as long as the peer may ask again.
            self.deadline += exchange.cycles(timer_ns(exchange.response_timeout)) * exchange.max_retries

    def _give_up(self, reason: RejectReason) -> None:
        self._last_word = reason
        self._repeated = self._reject(reason, info=self._exchange.ca_guid.to_bytes(_GUID_BYTES, "big"))
        self._end()

    def _reject(self, reason: RejectReason, private_data: bytes = b"", info: bytes = b"") -> bytes:
        """Sends a REJ, which is given back."""
        rejected = {
            ConnectionState.REQ_RECEIVED: RejMessage.REQ,
            ConnectionState.REP_RECEIVED: RejMessage.REP,
        }.get(self.state, RejMessage.NO_MESSAGE)
        width = 72
        rej = self._mad(
            CmMessage.REJ,
            private_data,
            message_rejected=rejected,
            reason=reason,
            reject_info_length=len(info),
            additional_reject_info=int.from_bytes(info.ljust(width, b"\0"), "big"),
        )
        self._send(rej)
        return rej

    def _tell(self, kind: CmEventType, message: Record | None = None) -> None:
        if message is None:
            self.on_event(CmEvent(kind))
        else:
            self.on_event(CmEvent(kind, private_data_of(message), message.get("reason", 0)))

    def _mad(self, message: CmMessage, private_data: bytes = b"", *, tid: int | None = None, **fields: int) -> bytes:
        if message is not CmMessage.REQ:
            fields["remote_comm_id"] = self.remote_comm_id
        return cm_mad(
            message, self._tid if tid is None else tid, private_data, local_comm_id=self.local_comm_id, **fields
        )

    def _send(self, mad: bytes) -> None:
        self._exchange.send(mad, self.negotiated.route)

    def _send_until_answered(self, mad: bytes) -> None:
        self._repeated = mad
        self._tries = self._exchange.max_retries
        self._send(mad)
        self._wait()

    def _wait(self) -> None:
        exchange = self._exchange
        self.deadline = exchange.now + self._there_and_back + exchange.cycles(timer_ns(exchange.response_timeout))
