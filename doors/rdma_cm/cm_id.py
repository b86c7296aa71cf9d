"""An rdma_cm_id: what a program has of the connection manager, by a number (rdma/rdma_cma.h of librdmacm)."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from ipaddress import IPv4Address
from typing import Any, Final, NamedTuple

from doors.mads.host_port import HostPort
from doors.mads.umad_device import DeviceError
from doors.rdma_cm.cm_machine import CmMachine
from doors.rdma_cm.group_id import GroupId
from doors.rdma_cm.layouts import CONN_PARAM, UD_PARAM, CmEventCode, JoinFlag
from doors.rdma_cm.mgid import GroupAddress
from doors.rdma_cm.qp import ah_attr, bare_attributes, connected_attributes
from doors.rdma_cm.route import administered_path, ask_for_path, path_between, shared_p_key
from doors.rdma_cm.socket_address import Endpoint
from verbs.cm_connection import CmError, CmEvent, CmEventType, Connection, ConnectionState
from verbs.cm_lookup import Lookup, LookupResult, ServiceRequest
from verbs.cm_parameters import ConnectionPath, ConnectionReply, ConnectionRequest
from verbs.states import QpType
from wire.cm import CmMessage, private_data_bytes
from wire.cm_codes import RejectReason, SidrStatus
from wire.ip_cm import IP_CM_HEADER, PortSpace, ip_cm_header, service_id
from wire.layout import Record
from wire.mc_member_record import JoinState

__all__ = ["UDP_Q_KEY", "CmId", "News"]

UDP_Q_KEY: Final = 0x0123_4567
"""RDMA_UDP_QKEY of librdmacm: that of datagram queue pairs of the port space UDP."""

_KINDS: Final = {PortSpace.TCP: QpType.RC, PortSpace.UDP: QpType.UD, PortSpace.IPOIB: QpType.UD}
_OF_ANY_KIND: Final = (QpType.RC, QpType.UC, QpType.UD)
_ANY: Final = Endpoint(IPv4Address(0))
_MOST_BACKLOG: Final = 1024
_JOIN_STATES: Final = {
    JoinFlag.FULL_MEMBER: JoinState.FULL,
    JoinFlag.SEND_ONLY_FULL_MEMBER: JoinState.SEND_ONLY_FULL,
}

_CODES: Final = {
    CmEventType.REPLY: CmEventCode.CONNECT_RESPONSE,
    CmEventType.ESTABLISHED: CmEventCode.ESTABLISHED,
    CmEventType.REJECTED: CmEventCode.REJECTED,
    CmEventType.UNREACHABLE: CmEventCode.UNREACHABLE,
    CmEventType.DISCONNECTED: CmEventCode.DISCONNECTED,
    CmEventType.TIME_WAIT_EXIT: CmEventCode.TIMEWAIT_EXIT,
}


class _State(Enum):
    """How far it has come."""

    IDLE = auto()
    BOUND = auto()
    ADDR_RESOLVED = auto()
    ROUTE_ASKED = auto()
    """The Subnet Administrator is asked for the path."""
    ROUTE_RESOLVED = auto()
    CONNECTING = auto()
    """It has asked, or was asked."""
    LISTENING = auto()


class News(NamedTuple):
    """An event that a program has not got yet.

    Attributes:
        about: whose event it is, which counts it.
        child: of a request, what it made; it is given to the program with the event.
        group: the multicast group that it is about, which counts it too.
        parameters: a struct rdma_ucm_conn_param, or rdma_ucm_ud_param.
    """

    about: CmId
    code: CmEventCode
    status: int = 0
    parameters: bytes = b""
    child: CmId | None = None
    group: GroupId | None = None


class CmId:
    """One of them.

    Attributes:
        user: what the program calls it.
        told: events of it that the program has got.
        kind: of its queue pair.
        source, destination: its addresses; of IP address 0 as long as they are not known.
        port: the host's port that it uses, once it is known.
        path: to the peer, once it is known.
        reuses: whether its port may be others', too.
        qos_class: of the path that is asked for.
        ack_timeout: code of the Local ACK Timeout that the program wants instead of the path's.
    """

    def __init__(self, machine: CmMachine, space: int, kind: int, user: int, tell: Callable[[News], None]) -> None:
        """TELL takes its events.

        Raises:
            DeviceError: there is no such port space, or no such type of queue pairs.
        """
        if space not in set(PortSpace):
            raise DeviceError(errno.EINVAL)
        if space == PortSpace.IB and kind not in _OF_ANY_KIND:
            raise DeviceError(errno.EOPNOTSUPP)
        self.kind = _KINDS.get(PortSpace(space)) or QpType(kind)
        self.machine = machine
        self.user = user
        self.tell = tell
        self.told = 0
        self.source = _ANY
        self.destination = _ANY
        self.port: HostPort | None = None
        self.path: ConnectionPath | None = None
        self.reuses = False
        self.qos_class = 0
        self.ack_timeout: int | None = None
        self.remote: HostPort | None = None
        self._space = space
        self._state = _State.IDLE
        self._backlog = 0
        self._waiting = 0
        self._connection: Connection | None = None
        self._lookup: Lookup | None = None
        self._request: ServiceRequest | None = None
        self._groups: list[GroupId] = []
        self._q_key = UDP_Q_KEY

    @property
    def groups(self) -> Sequence[GroupId]:
        """Its multicast groups."""
        return self._groups

    @property
    def listens(self) -> bool:
        """Whether it takes requests."""
        return self._state is _State.LISTENING

    @property
    def is_datagram(self) -> bool:
        """Whether it looks queue pairs up instead of connecting them."""
        return self.kind is QpType.UD

    def service(self, endpoint: Endpoint) -> int:
        """The service ID of one of its ports."""
        return service_id(self._space, endpoint.port)

    # What programs do.

    def bind(self, source: Endpoint) -> None:
        """Takes an address.

        Raises:
            DeviceError: it has one, or it cannot have this one.
        """
        self._require(_State.IDLE)
        self.source = self.machine.hold(self, self._space, source)
        self._state = _State.BOUND
        if not self.source.is_any:
            self.port = self.machine.local_port(self.source)

    def resolve_address(self, source: Endpoint | None, destination: Endpoint) -> None:
        """Finds the port that has an address, and the own one from which it is reached; what comes of it is an event.

        Raises:
            DeviceError: it has a destination already, or the source cannot be taken.
        """
        if self._state is _State.IDLE:
            self.bind(source or _ANY)
        self._require(_State.BOUND)
        self.destination = destination
        plan = self.machine.plan
        near = self.port or self.machine.first_port
        far = plan.port_of(destination.address)
        if destination.is_any or (far is None and destination.is_loopback):
            far = near
        address = None if near is None else plan.address_of(near)
        is_group = destination.address.is_multicast
        if near is None or address is None or (far is None and not is_group):
            self._tell(CmEventCode.ADDR_ERROR, -errno.EHOSTUNREACH)
            return
        self.port, self.remote = near, far
        self.source = self.source._replace(address=address)
        if destination.is_any:
            self.destination = destination._replace(address=address)
        self._state = _State.ADDR_RESOLVED
        if is_group and self._space == PortSpace.IPOIB:
            # Its queue pair is made before it joins, with IPoIB's Q_Key, which a kernel knows all the time.
            self.machine.groups(near).look_up_broadcast(self._p_key(near), self._knows_broadcast)
            return
        self._tell(CmEventCode.ADDR_RESOLVED)

    def resolve_route(self, timeout_ms: int) -> None:
        """Asks for the path; what comes of it is an event.

        Without a Subnet Administrator that answers in time the path is what both ports know of themselves.

        Raises:
            DeviceError: there is no destination yet.
        """
        self._require(_State.ADDR_RESOLVED)
        assert self.port is not None
        if self.remote is None:
            # No path leads to a group before it is joined.
            self._tell(CmEventCode.ROUTE_ERROR, -errno.EINVAL)
            return
        try:
            path = path_between(self.port, self.remote)
        except DeviceError as error:
            self._tell(CmEventCode.ROUTE_ERROR, -error.errno)
            return
        self._state = _State.ROUTE_ASKED
        service, administrator = self.service(self.destination), self.machine.administrator(self.port)
        answered = partial(self._heard_of_path, self.port, path)
        ask_for_path(administrator, path, service, self.qos_class, timeout_ms, answered)

    def listen(self, backlog: int) -> None:
        """Takes requests, so many that the program has not got yet.

        Raises:
            DeviceError: it is used for something else.
        """
        if self._state is _State.IDLE:
            self.bind(_ANY)
        if self._state is not _State.LISTENING:
            self._require(_State.BOUND)
            self._state = _State.LISTENING
            self.machine.listen(self.source, self._space, is_datagram=self.is_datagram)
        self._backlog = backlog if 0 < backlog < _MOST_BACKLOG else _MOST_BACKLOG

    def connect(self, parameters: Any) -> None:
        """Asks for a connection, or for a datagram queue pair; what comes of it is an event.

        Raises:
            DeviceError: there is no path yet, or there are too many private data.
        """
        self._require(_State.ROUTE_RESOLVED)
        assert self.path is not None
        given = parameters.private_data[: parameters.private_data_len]
        message = CmMessage.SIDR_REQ if self.is_datagram else CmMessage.REQ
        if len(given) > private_data_bytes(message) - IP_CM_HEADER.size_bytes:
            raise DeviceError(errno.EINVAL)
        private = ip_cm_header(self.source.address, self.source.port, self.destination.address) + given
        assert self.port is not None
        service, manager = self.service(self.destination), self.machine.manager(self.port)
        if self.is_datagram:
            self._lookup = manager.look_up(service, self.path.route, self.path.p_key, private, self._found)
        else:
            request = ConnectionRequest(
                service,
                self.path,
                self.kind,
                parameters.qp_num & 0xFF_FFFF,
                parameters.responder_resources,
                parameters.initiator_depth,
                min(7, parameters.retry_count),
                min(7, parameters.rnr_retry_count),
                bool(parameters.srq),
                bool(parameters.flow_control),
                private,
            )
            self._keep(manager.connect(request))
        self._state = _State.CONNECTING

    def accept(self, parameters: Any, user: int) -> None:
        """Accepts what was asked; without parameters, says that it is ready, who has asked.

        Raises:
            DeviceError: there is nothing of the kind.
        """
        try:
            if self._request is not None:
                given = parameters.private_data[: parameters.private_data_len]
                self._request.reply(SidrStatus.QPN_VALID, parameters.qp_num & 0xFF_FFFF, UDP_Q_KEY, given)
                self._request, self.user = None, user
            elif self._connection is None:
                raise DeviceError(errno.EINVAL)
            elif parameters.valid:
                self._connection.accept(
                    ConnectionReply(
                        parameters.qp_num & 0xFF_FFFF,
                        parameters.responder_resources,
                        parameters.initiator_depth,
                        min(7, parameters.rnr_retry_count),
                        bool(parameters.srq),
                        bool(parameters.flow_control),
                        parameters.private_data[: parameters.private_data_len],
                    )
                )
                self.user = user
            else:
                self._connection.confirm()
        except ValueError:
            raise DeviceError(errno.EINVAL) from None

    def reject(self, reason: int, private_data: bytes) -> None:
        """Refuses what was asked, or answered.

        Raises:
            DeviceError: there is nothing of the kind.
        """
        try:
            if self._request is not None:
                self._request.reply(SidrStatus.REJECTED, private_data=private_data)
                self._request = None
            elif self._connection is not None:
                self._connection.reject(RejectReason(reason or RejectReason.CONSUMER_REJECT), private_data)
            else:
                raise DeviceError(errno.EINVAL)
        except ValueError:
            raise DeviceError(errno.EINVAL) from None

    def disconnect(self) -> None:
        """Ends the connection; that it is over is an event.

        Raises:
            DeviceError: there is none.
        """
        if self._connection is None:
            raise DeviceError(errno.EINVAL)
        try:
            self._connection.disconnect()
        except CmError:
            raise DeviceError(errno.EINVAL) from None

    def establish(self) -> None:
        """Its queue pair has got a message: the peer is ready."""
        if self._connection is not None:
            self._connection.establish()

    def qp_attributes(self, state: int) -> bytes:
        """How its queue pair is to be modified to get into a state: a struct ib_uverbs_qp_attr.

        Raises:
            DeviceError: that is not known yet, or no such state.
        """
        if self.port is None:
            raise DeviceError(errno.EINVAL)
        if self._connection is None:
            index = shared_p_key(self.port, self.remote)
            return bare_attributes(state, self.port, index, self._q_key if self.is_datagram else None)
        return connected_attributes(state, self._connection.negotiated, self.ack_timeout)

    def new_group(self, address: GroupAddress, flag: int, user: int) -> GroupId:
        """A multicast group that the program, which calls it USER, is to join by `join`.

        Raises:
            DeviceError: it has no port, or is none for datagrams or used for something else, or there is no such flag.
        """
        is_free = self._state in (_State.BOUND, _State.ADDR_RESOLVED)
        if self.port is None or not self.is_datagram or not is_free or flag not in set(JoinFlag):
            raise DeviceError(errno.EINVAL)
        q_key = None if self._space == PortSpace.IPOIB else UDP_Q_KEY
        return GroupId(user, address, _JOIN_STATES[JoinFlag(flag)], self._space, q_key, self._heard_of)

    def join(self, group: GroupId) -> None:
        """Joins it; what comes of it is an event."""
        assert self.port is not None
        self._groups.append(group)
        group.join(self.machine.groups(self.port), self.port, self._p_key(self.port))

    def leave(self, group: GroupId) -> None:
        """Leaves it, or gives up to join it."""
        self._groups.remove(group)
        group.leave()

    def close(self) -> None:
        """The program has no more use for it."""
        for group in [*self._groups]:
            self.leave(group)
        self._state = _State.BOUND
        self.machine.release(self, self._space, self.source)
        if self._connection is not None:
            self._connection.close()
        if self._lookup is not None:
            self._lookup.close()
        if self._request is not None:
            self._request.reply(SidrStatus.REJECTED)
        self._connection = self._lookup = self._request = None

    def taken(self) -> None:
        """The program has got one of the requests that wait."""
        self._waiting -= 1

    # What happens.

    def requested(
        self, request: Connection | ServiceRequest, port: HostPort, source: Endpoint, destination: Endpoint
    ) -> None:
        """Takes a request that came to a port of the host."""
        child = CmId(self.machine, self._space, self.kind, 0, self.tell)
        child.source, child.destination = destination, source
        child.remote = self.machine.plan.port_of(source.address)
        child.port = port
        child._state = _State.CONNECTING
        private = request.private_data[IP_CM_HEADER.size_bytes :]
        if isinstance(request, Connection):
            child._keep(request)
            route = request.negotiated.route
            parameters = _connection_parameters(request, private)
        else:
            child._request = request
            route = request.route
            parameters = UD_PARAM.pack(private_data=private, private_data_len=len(private))
        if child.remote is not None:
            try:
                child.path = replace(path_between(port, child.remote), route=route)
            except DeviceError:
                child.remote = None
        if child.path is None or self._waiting >= self._backlog:
            child.close()
            return
        self._waiting += 1
        self.tell(News(self, CmEventCode.CONNECT_REQUEST, 0, parameters, child))

    def _heard_of_path(self, port: HostPort, path: ConnectionPath, status: int, record: Record) -> None:
        """The Subnet Administrator has said what a path is like, or that there is none, or nothing."""
        if self._state is not _State.ROUTE_ASKED:
            return
        try:
            if status == -errno.EINVAL:
                raise DeviceError(errno.EINVAL)
            self.path = path if status else administered_path(path, port, record)
        except DeviceError as error:
            self._state = _State.ADDR_RESOLVED
            self._tell(CmEventCode.ROUTE_ERROR, -error.errno)
            return
        self._state = _State.ROUTE_RESOLVED
        self._tell(CmEventCode.ROUTE_RESOLVED)

    def _keep(self, connection: Connection) -> None:
        self._connection = connection
        connection.on_event = self._happened

    def _happened(self, event: CmEvent) -> None:
        """Hands an event of the connection on; of what the program has not accepted yet it hears nothing."""
        if not self.user or self._connection is None:
            return
        status = {CmEventType.REJECTED: event.reason, CmEventType.UNREACHABLE: -errno.ETIMEDOUT}.get(event.kind, 0)
        parameters = _connection_parameters(self._connection, event.private_data)
        self.tell(News(self, _CODES[event.kind], status, parameters))

    def _found(self, result: LookupResult) -> None:
        """Hands on what was found of a datagram queue pair."""
        if result.status is None:
            self._tell(CmEventCode.UNREACHABLE, -errno.ETIMEDOUT)
            return
        assert self.path is not None
        private = result.private_data
        parameters = UD_PARAM.pack(
            qp_num=result.qpn,
            qkey=result.q_key,
            ah_attr=ah_attr(self.path.route.path),
            private_data=private,
            private_data_len=len(private),
        )
        is_there = result.status == SidrStatus.QPN_VALID
        code = CmEventCode.ESTABLISHED if is_there else CmEventCode.UNREACHABLE
        self.tell(News(self, code, int(result.status), parameters))

    def _heard_of(self, group: GroupId, code: CmEventCode, status: int, parameters: bytes) -> None:
        """Hands on what is heard of a multicast group."""
        self.tell(News(self, code, status, parameters, group=group))

    def _knows_broadcast(self, status: int, record: Record) -> None:
        """The broadcast group is there, or not: without it IPoIB does not work."""
        self._q_key = record.q_key
        self._tell(CmEventCode.ADDR_ERROR if status else CmEventCode.ADDR_RESOLVED, status)

    # Inside.

    def _p_key(self, port: HostPort) -> int:
        """The P_Key by which it is at a port, as `qp_attributes` has it."""
        return port.p_keys[shared_p_key(port, self.remote)]

    def _require(self, state: _State) -> None:
        if self._state is not state:
            raise DeviceError(errno.EINVAL)

    def _tell(self, code: CmEventCode, status: int = 0) -> None:
        self.tell(News(self, code, status))


def _connection_parameters(connection: Connection, private_data: bytes) -> bytes:
    """A struct rdma_ucm_conn_param, of what the peer says."""
    negotiated = connection.negotiated
    return CONN_PARAM.pack(
        qp_num=negotiated.remote_qpn,
        private_data=private_data,
        private_data_len=len(private_data),
        srq=int(negotiated.srq),
        responder_resources=negotiated.responder_resources,
        initiator_depth=negotiated.initiator_depth,
        flow_control=int(negotiated.flow_control),
        retry_count=negotiated.retry_count if connection.state is ConnectionState.REQ_RECEIVED else 0,
        rnr_retry_count=negotiated.rnr_retry_count,
    )
