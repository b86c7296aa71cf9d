"""Communication management at a host: MADs of class 0x07 at its ports, and whose each IP port is."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Protocol

from doors.mads.agents import Agent
from doors.mads.host_port import HostPort
from doors.mads.mad_layer import Moment, Outgoing
from doors.mads.umad_device import DeviceError
from doors.mads.user_mad import Address, Registration
from doors.rdma_cm.address_plan import AddressPlan
from doors.rdma_cm.port_groups import PortGroups
from doors.rdma_cm.sa_client import SaClient
from doors.rdma_cm.socket_address import Endpoint
from verbs.address import AddressVector, GlobalRoute
from verbs.cm import CommunicationManager
from verbs.cm_connection import Connection
from verbs.cm_lookup import ServiceRequest
from verbs.cm_parameters import CmRoute
from wire.cm import CM_CLASS_VERSION
from wire.cm_codes import RejectReason, SidrStatus
from wire.codes import QP_GSI
from wire.ip_cm import ip_cm_ends, service_id
from wire.mad import MadMethod, MgmtClass
from wire.node_info import NODE_INFO
from wire.sma import SmaAttribute

__all__ = ["CmHost", "Listener"]


class Listener(Protocol):
    """What has a port of a port space, and may listen there."""

    @property
    def source(self) -> Endpoint:
        """Its address."""

    @property
    def listens(self) -> bool:
        """Whether it takes requests."""

    @property
    def reuses(self) -> bool:
        """Whether others may have the same port as long as none listens."""

    def requested(
        self, request: Connection | ServiceRequest, port: HostPort, source: Endpoint, destination: Endpoint
    ) -> None:
        """Takes a request that came to a port of the host."""


class CmHost:
    """One host.

    Attributes:
        ports: of its adapter.
        administrators: each one's Subnet Administrator.
        groups: the multicast groups of each of them.
    """

    def __init__(self, ports: Sequence[HostPort], plan: AddressPlan, clock: Callable[[], Moment]) -> None:
        """CLOCK says what time it is for programs."""
        self.ports = ports
        self.administrators = {port: SaClient(port, clock) for port in ports}
        self.groups = {port: PortGroups(port, one) for port, one in self.administrators.items()}
        self._plan = plan
        self._clock = clock
        self._manager: CommunicationManager | None = None
        self._holders: dict[tuple[int, int], list[Listener]] = {}
        for port in ports:
            wanted = Registration(QP_GSI, MgmtClass.COMM_MGT, CM_CLASS_VERSION, 1 << MadMethod.SEND)
            port.mads.register(_PortAgent(self, port), wanted)

    @property
    def node_guid(self) -> int:
        """The adapter's."""
        return NODE_INFO.unpack(self.ports[0].known[SmaAttribute.NODE_INFO]).node_guid

    @property
    def manager(self) -> CommunicationManager:
        """The host's communication manager, whose cycles are nanoseconds of the time in which programs count."""
        if self._manager is None:
            self._manager = CommunicationManager(self.node_guid, cycle_ns=1)
            self._manager.poll(self._clock().time)
        return self._manager

    @property
    def deadline(self) -> int | None:
        """When something is due, in the time of programs."""
        return None if self._manager is None else self._manager.wake

    def poll(self) -> None:
        """Lets time pass, and gives ports what they are to send."""
        if self._manager is None:
            return
        by_number = {port.number: port for port in self.ports}
        for mad, route in self._manager.poll(self._clock().time):
            address = _address_of(route)
            by_number[route.path.port].mads.outbox.append(Outgoing(mad, address, answered=False))

    def received(self, port: HostPort, address: Address, mad: bytes) -> None:
        """Takes a MAD that has come to a port; as long as the host does not know its adapter, it is lost."""
        if SmaAttribute.NODE_INFO not in self.ports[0].known:
            return
        self.manager.received(mad, _route_of(port, address), self._clock().time)

    def hurry(self, mad: bytes, *, is_sender: bool) -> None:
        """A message that it has sent, or that was for it, has not arrived and never will."""
        if self._manager is not None:
            self._manager.hurry(mad, is_sender=is_sender)

    # Ports of port spaces.

    def is_free(self, space: int, number: int) -> bool:
        """Whether nobody has a port."""
        return not self._holders.get((space, number))

    def check(self, holder: Listener, space: int, source: Endpoint) -> None:
        """Refuses a port that is others'.

        Raises:
            DeviceError: it is.
        """
        for other in self._holders.get((space, source.port), []):
            overlaps = other.source.is_any or source.is_any or other.source.address == source.address
            if overlaps and not (holder.reuses and other.reuses and not other.listens):
                raise DeviceError(errno.EADDRINUSE)

    def claim(self, holder: Listener, space: int, number: int) -> None:
        """Gives somebody a port."""
        self._holders.setdefault((space, number), []).append(holder)

    def listen(self, space: int, port: int, *, is_datagram: bool) -> None:
        """Takes requests for a port from now on, for those of its holders that listen."""
        service = service_id(space, port)
        listening = [one for one in self._holders[space, port] if one.listens]
        if len(listening) > 1:
            return
        if is_datagram:
            self.manager.serve(service, lambda request: self._asked(space, port, request, request.route))
        else:
            self.manager.listen(service, lambda one: self._asked(space, port, one, one.negotiated.route))

    def release(self, holder: Listener, space: int, port: int) -> None:
        """Takes the port back from somebody who does not listen any more."""
        holders = self._holders.get((space, port), [])
        if holder in holders:
            holders.remove(holder)
            if not any(one.listens for one in holders):
                self.manager.stop(service_id(space, port))

    def _asked(self, space: int, number: int, request: Connection | ServiceRequest, route: CmRoute) -> None:
        ends = ip_cm_ends(request.private_data)
        if ends is not None:
            source, source_port, destination = ends
            listening = [
                one
                for one in self._holders.get((space, number), [])
                if one.listens and (one.source.is_any or one.source.address == destination)
            ]
            came_by = next(port for port in self.ports if port.number == route.path.port)
            meant = self._plan.port_of(destination)
            port = meant if meant is not None and meant in self.ports else came_by
            if listening:
                chosen = min(listening, key=lambda one: one.source.is_any)
                chosen.requested(request, port, Endpoint(source, source_port), Endpoint(destination, number))
                return
        if isinstance(request, Connection):
            request.reject(RejectReason.INVALID_SERVICE_ID)
        else:
            request.reply(SidrStatus.SERVICE_ID_NOT_SUPPORTED)


class _PortAgent:
    """The agent of class 0x07 of a port."""

    def __init__(self, host: CmHost, port: HostPort) -> None:
        self._host = host
        self._port = port

    def arrived(self, agent: Agent, address: Address, mad: bytes) -> None:
        """Takes a MAD."""
        self._host.received(self._port, address, mad)

    def unanswered(self, agent: Agent, address: Address, mad: bytes) -> None:
        """Nothing that it sends is waited for by the port."""


def _address_of(route: CmRoute) -> Address:
    path = route.path
    grh = path.route
    came_with = None
    if grh is not None:
        came_with = grh.hop_limit, grh.traffic_class, grh.dgid.to_bytes(16, "big"), grh.flow_label
    return Address(path.dlid, route.qpn, path.sl, path.src_path_bits, route.p_key_index, grh=came_with)


def _route_of(port: HostPort, address: Address) -> CmRoute:
    grh = None
    if address.grh is not None:
        hop_limit, traffic_class, gid, flow_label = address.grh
        grh = GlobalRoute(int.from_bytes(gid, "big"), 0, flow_label, hop_limit, traffic_class)
    path = AddressVector(address.lid, address.sl, address.path_bits, grh, port.number)
    return CmRoute(path, address.p_key_index, address.qpn)
