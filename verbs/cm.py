"""The communication manager of an adapter: connections made and ended, datagram services found (IBTA vol 1, ch. 12).

It does no input or output. A back end hands in the messages that arrive at QP1 (`received`) and asks for what is to be
sent and when it wants to be asked again (`poll`, `wake`). Time is an integer count of cycles, and only the back end
says what it is. It modifies no queue pair: consumers do, as `Connection.negotiated` says.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Final, NamedTuple, TypeVar

from verbs.cm_connection import CmError, Connection, ConnectionState
from verbs.cm_lookup import Lookup, LookupResult, ServiceRequest
from verbs.cm_parameters import CmRoute, ConnectionRequest, Negotiated
from wire.cm import CM_MAD, CmMessage, cm_mad, cm_message, private_data_of
from wire.cm_codes import AprStatus, ConnectedService, RejectReason, RejMessage, SidrStatus
from wire.codes import timer_ns
from wire.layout import Record

__all__ = ["CommunicationManager", "OutgoingMessage"]

_RESPONSE_TIMEOUT: Final = 20
"""Code of the time within which a communication manager answers: 4.3 s."""

_MAX_RETRIES: Final = 15
_LOW: Final = (1 << 32) - 1
_GUID_AT_END_OF_INFO: Final = 8 * (72 - 8)
_CONNECTED: Final = (ConnectedService.RC, ConnectedService.UC)


class OutgoingMessage(NamedTuple):
    """A MAD for QP1 to send, and how it goes."""

    mad: bytes
    route: CmRoute


class CommunicationManager:
    """The communication manager.

    Attributes:
        ca_guid: of its adapter.
        now: the cycle of the latest call of the back end.
    """

    def __init__(
        self,
        ca_guid: int,
        *,
        cycle_ns: int = 4,
        seed: int = 0,
        response_timeout: int = _RESPONSE_TIMEOUT,
        max_retries: int = _MAX_RETRIES,
    ) -> None:
        """Communication IDs and first PSNs are drawn from `ca_guid` and `seed`."""
        self.ca_guid = ca_guid
        self.now = 0
        self.response_timeout = response_timeout
        self.max_retries = max_retries
        self._cycle_ns = cycle_ns
        self._random = Random(f"{ca_guid} {seed}")
        self._ids = count(1 + self._random.getrandbits(30))
        self._outbox: list[OutgoingMessage] = []
        self._listeners: dict[int, Callable[[Connection], None]] = {}
        self._services: dict[int, Callable[[ServiceRequest], None]] = {}
        self._connections: dict[int, Connection] = {}
        self._by_remote: dict[tuple[int, int], Connection] = {}
        """By the peer's CA GUID and communication ID, those whose peer has asked."""
        self._lookups: dict[int, Lookup] = {}
        self._answers: dict[tuple[CmRoute, int], tuple[bytes, int]] = {}
        """By whence they were asked and the request's ID, answers to lookups and when they are forgotten; empty ones
        are due."""

    # What consumers call.

    def listen(self, service_id: int, on_request: Callable[[Connection], None]) -> None:
        """Hands each connection that is asked for at a service ID to `on_request`, which accepts or rejects it later.

        Raises:
            CmError: somebody does already.
        """
        _claim(self._listeners, service_id, on_request)

    def serve(self, service_id: int, on_request: Callable[[ServiceRequest], None]) -> None:
        """Hands each question for a datagram service to `on_request`, which answers it now or later.

        Raises:
            CmError: somebody does already.
        """
        _claim(self._services, service_id, on_request)

    def stop(self, service_id: int) -> None:
        """Nobody listens at or serves a service ID any more."""
        self._listeners.pop(service_id, None)
        self._services.pop(service_id, None)

    def connect(self, request: ConnectionRequest) -> Connection:
        """Asks for a connection. What comes of it are events.

        Raises:
            ValueError: a value that does not fit.
        """
        comm_id = self._next_id()
        negotiated = Negotiated.asked(request, self._random.getrandbits(24))
        connection = Connection(
            self, ConnectionState.REQ_SENT, negotiated, comm_id=comm_id, transaction_id=self._transaction(comm_id)
        )
        connection.ask(request.fields(), request.private_data)
        self._connections[comm_id] = connection
        return connection

    def look_up(
        self,
        service_id: int,
        route: CmRoute,
        p_key: int,
        private_data: bytes,
        on_result: Callable[[LookupResult], None],
    ) -> Lookup:
        """Asks for the queue pair of a datagram service.

        Raises:
            ValueError: a value that does not fit.
        """
        number = self._next_id()
        mad = cm_mad(
            CmMessage.SIDR_REQ,
            self._transaction(number),
            private_data,
            request_id=number,
            partition_key=p_key,
            service_id=service_id,
        )
        lookup = self._lookups[number] = Lookup(self, mad, route, on_result)
        return lookup

    # What the back end calls.

    def received(self, mad: bytes, route: CmRoute, now: int) -> None:
        """Takes a MAD that came to QP1; ROUTE leads back to where it came from. What is no message is ignored."""
        self._pass_time(now)
        found = cm_message(mad)
        if found is None:
            return
        message, record = found
        tid = CM_MAD["transaction_id"].read(mad)
        match message:
            case CmMessage.REQ:
                self._asked(record, tid, route)
            case CmMessage.SIDR_REQ:
                self._asked_for_service(record, tid, route)
            case CmMessage.SIDR_REP:
                lookup = self._lookups.pop(record.request_id, None)
                if lookup is not None:
                    lookup.answered(record)
            case CmMessage.APR:
                pass
            case _:
                connection = self._connection_of(message, record)
                if connection is None or message is CmMessage.LAP:
                    self._refuse(message, record, tid, route, connection)
                else:
                    connection.received(message, record)

    def hurry(self, mad: bytes, *, is_sender: bool) -> None:
        """The back end knows that a message, which was sent from here or was for here, never arrives.

        What waits for it, or for an answer to it, acts as if its time were up.
        """
        found = cm_message(mad)
        if found is None:
            return
        message, record = found
        if message in (CmMessage.SIDR_REQ, CmMessage.SIDR_REP):
            if is_sender is (message is CmMessage.SIDR_REQ):
                self._expire_lookup(record.request_id)
            return
        name = "local_comm_id" if is_sender else "remote_comm_id"
        connection = self._connections.get(record.get(name, 0))
        if connection is not None and connection.waits_for_peer:
            connection.expire()

    def poll(self, now: int) -> list[OutgoingMessage]:
        """Lets time pass to cycle `now`, and gives what is to be sent in it."""
        self._pass_time(now)
        outbox, self._outbox = self._outbox, []
        return outbox

    @property
    def wake(self) -> int | None:
        """The cycle in which `poll` is due if nothing arrives before; None if there is nothing to wait for."""
        return self.now if self._outbox else self._next_deadline()

    @property
    def open(self) -> int:
        """How many connections and lookups there are."""
        return len(self._connections) + len(self._lookups)

    # What connections and lookups call.

    def send(self, mad: bytes, route: CmRoute) -> None:
        """Sends a message."""
        self._outbox.append(OutgoingMessage(mad, route))

    def cycles(self, nanoseconds: int) -> int:
        """A time in cycles."""
        return -(-nanoseconds // self._cycle_ns)

    def forget(self, connection: Connection) -> None:
        """Nothing that comes is for a connection any more."""
        self._connections.pop(connection.local_comm_id, None)
        key = connection.remote_ca_guid, connection.remote_comm_id
        if self._by_remote.get(key) is connection:
            del self._by_remote[key]

    # Inside.

    def _pass_time(self, now: int) -> None:
        while (due := self._next_deadline()) is not None and due <= now:
            self.now = max(self.now, due)
            for connection in [one for one in self._connections.values() if one.deadline == due]:
                connection.expire()
            for number in [number for number, one in self._lookups.items() if one.deadline == due]:
                self._expire_lookup(number)
        self.now = now

    def _expire_lookup(self, number: int) -> None:
        lookup = self._lookups.get(number)
        if lookup is not None and not lookup.expire():
            del self._lookups[number]

    def _next_deadline(self) -> int | None:
        connections = (one.deadline for one in self._connections.values())
        lookups = (one.deadline for one in self._lookups.values())
        return min((when for when in (*connections, *lookups) if when is not None), default=None)

    def _next_id(self) -> int:
        return next(self._ids) & _LOW

    def _transaction(self, number: int) -> int:
        """The TransactionID of an exchange that begins here."""
        return (self.ca_guid & _LOW) << 32 | number

    def _asked(self, req: Record, tid: int, route: CmRoute) -> None:
        key = req.local_ca_guid, req.local_comm_id
        known = self._by_remote.get(key)
        if known is not None:
            known.received(CmMessage.REQ, req)
            return
        stale = [one for one in self._connections.values() if _is_same_pair(one, req)]
        for one in stale:
            one.disconnect()
        on_request = self._listeners.get(req.service_id)
        reason = None
        if stale:
            reason = RejectReason.STALE_CONNECTION
        elif req.transport_service_type not in _CONNECTED:
            reason = RejectReason.INVALID_TRANSPORT_SERVICE_TYPE
        elif on_request is None:
            reason = RejectReason.INVALID_SERVICE_ID
        elif not 1 <= req.path_packet_payload_mtu <= 5:
            reason = RejectReason.INVALID_PATH_MTU
        if reason is not None or on_request is None:
            self._send_reject(req.local_comm_id, tid, route, RejMessage.REQ, reason or RejectReason.INVALID_SERVICE_ID)
            return
        connection = Connection(
            self,
            ConnectionState.REQ_RECEIVED,
            Negotiated.heard(req, _primary_path(req, route), self._random.getrandbits(24)),
            comm_id=self._next_id(),
            transaction_id=tid,
            remote=key,
            private_data=private_data_of(req),
        )
        self._connections[connection.local_comm_id] = self._by_remote[key] = connection
        on_request(connection)

    def _asked_for_service(self, request: Record, tid: int, route: CmRoute) -> None:
        key = route, request.request_id
        self._answers = {one: answer for one, answer in self._answers.items() if answer[1] > self.now}
        if key in self._answers:
            mad = self._answers[key][0]
            if mad:
                self.send(mad, route)
            return
        asked = ServiceRequest(request, tid, route, self._answer_service)
        on_request = self._services.get(request.service_id)
        if on_request is None:
            asked.reply(SidrStatus.SERVICE_ID_NOT_SUPPORTED)
            return
        self._keep_answer(asked, b"")
        on_request(asked)

    def _answer_service(self, request: ServiceRequest, mad: bytes) -> None:
        self._keep_answer(request, mad)
        self.send(mad, request.route)

    def _keep_answer(self, request: ServiceRequest, mad: bytes) -> None:
        """For as long as it may be asked for again."""
        kept = self.cycles(timer_ns(self.response_timeout)) * (self.max_retries + 1)
        self._answers[request.route, request.request_id] = mad, self.now + kept

    def _connection_of(self, message: CmMessage, record: Record) -> Connection | None:
        connection = self._connections.get(record.remote_comm_id)
        if connection is not None:
            is_new = message in (CmMessage.REP, CmMessage.REJ, CmMessage.MRA) and not connection.remote_comm_id
            return connection if is_new or connection.remote_comm_id == record.local_comm_id else None
        if message is CmMessage.REJ and record.reason == RejectReason.TIMEOUT:
            # Its sender never heard what we call the connection.
            guid = record.additional_reject_info >> _GUID_AT_END_OF_INFO
            return self._by_remote.get((guid, record.local_comm_id))
        return None

    def _refuse(
        self, message: CmMessage, record: Record, tid: int, route: CmRoute, connection: Connection | None
    ) -> None:
        """Answers what is for no connection, and what is not supported."""
        ours, theirs = record.remote_comm_id, record.local_comm_id
        if message is CmMessage.DREQ:
            # Its connection is forgotten: it is over, then.
            self.send(cm_mad(CmMessage.DREP, tid, local_comm_id=ours, remote_comm_id=theirs), route)
        elif message is CmMessage.LAP:
            status = AprStatus.INVALID_COMMUNICATION_ID if connection is None else AprStatus.NOT_SUPPORTED
            apr = cm_mad(CmMessage.APR, tid, ap_status=status, local_comm_id=ours, remote_comm_id=theirs)
            self.send(apr, route)
        elif message in (CmMessage.REP, CmMessage.RTU):
            rejected = RejMessage.REP if message is CmMessage.REP else RejMessage.NO_MESSAGE
            reason = RejectReason.INVALID_COMMUNICATION_ID
            self._send_reject(theirs, tid, route, rejected, reason, ours)

    def _send_reject(
        self, remote: int, tid: int, route: CmRoute, rejected: RejMessage, reason: RejectReason, local: int = 0
    ) -> None:
        self.send(
            cm_mad(
                CmMessage.REJ,
                tid,
                local_comm_id=local,
                remote_comm_id=remote,
                message_rejected=rejected,
                reason=reason,
            ),
            route,
        )


_Handler = TypeVar("_Handler", Callable[[Connection], None], Callable[[ServiceRequest], None])


def _claim(handlers: dict[int, _Handler], service_id: int, handler: _Handler) -> None:
    if service_id in handlers:
        raise CmError(f"service ID {service_id:#x} is taken")
    handlers[service_id] = handler


def _is_same_pair(connection: Connection, req: Record) -> bool:
    """Whether a request is of a queue pair of which there is a connection already."""
    is_open = connection.state in (ConnectionState.ESTABLISHED, ConnectionState.REP_SENT)
    pair = connection.remote_ca_guid, connection.negotiated.remote_qpn
    return is_open and pair == (req.local_ca_guid, req.local_qpn)


def _primary_path(req: Record, route: CmRoute) -> CmRoute:
    """The way that the connection's packets go, by the request that came by ROUTE."""
    path = route.path
    lid = req.primary_local_port_lid or path.dlid
    return route._replace(path=type(path)(lid, req.primary_sl, path.src_path_bits, path.route, path.port))
