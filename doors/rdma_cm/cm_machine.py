"""What a machine's programs have of communication management: the adapters of one host, or of several."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from itertools import count
from typing import Final

from doors.mads.host_port import HostPort
from doors.mads.umad_device import DeviceError
from doors.rdma_cm.address_plan import AddressPlan
from doors.rdma_cm.cm_host import CmHost, Listener
from doors.rdma_cm.port_groups import PortGroups
from doors.rdma_cm.sa_client import SaClient
from doors.rdma_cm.socket_address import Endpoint
from verbs.cm import CommunicationManager

__all__ = ["CmMachine"]

_FIRST_EPHEMERAL: Final = 32_768
_EPHEMERAL: Final = 28_232


class CmMachine:
    """One machine.

    Attributes:
        plan: everybody's addresses.
    """

    def __init__(self, hosts: Sequence[CmHost], plan: AddressPlan) -> None:
        self.plan = plan
        self._hosts = tuple(hosts)
        self._numbers = count()

    def manager(self, port: HostPort) -> CommunicationManager:
        """That of a port's adapter."""
        return self._host_of(port).manager

    def node_guid(self, port: HostPort) -> int:
        """That of a port's adapter."""
        return self._host_of(port).node_guid

    def administrator(self, port: HostPort) -> SaClient:
        """The Subnet Administrator, to be asked for a port."""
        return self._host_of(port).administrators[port]

    def groups(self, port: HostPort) -> PortGroups:
        """The multicast groups of a port."""
        return self._host_of(port).groups[port]

    def local_port(self, source: Endpoint) -> HostPort | None:
        """The machine's port that has an address; 127.0.0.1 is the first that works."""
        port = self.plan.port_of(source.address)
        if port is None and source.is_loopback:
            return self.first_port
        return port if any(port in host.ports for host in self._hosts) else None

    @property
    def first_port(self) -> HostPort | None:
        """The first port that works and has an address."""
        ports = (port for host in self._hosts for port in host.ports)
        return next((port for port in ports if port.sends_data and self.plan.address_of(port)), None)

    def hold(self, holder: Listener, space: int, source: Endpoint) -> Endpoint:
        """Gives somebody a port, or one of those that are free, and says which; for 127.0.0.1, at the first address.

        Raises:
            DeviceError: it is taken, or the address is none of the machine's.
        """
        if not source.is_any:
            port = self.local_port(source)
            address = None if port is None else self.plan.address_of(port)
            if address is None:
                raise DeviceError(errno.EADDRNOTAVAIL)
            source = source._replace(address=address)
        hosts = self._hosts_of(source)
        if not source.port:
            tried = (_FIRST_EPHEMERAL + next(self._numbers) % _EPHEMERAL for _ in range(_EPHEMERAL))
            free = next((number for number in tried if all(host.is_free(space, number) for host in hosts)), None)
            if free is None:
                raise DeviceError(errno.EADDRNOTAVAIL)
            source = source._replace(port=free)
        for host in hosts:
            host.check(holder, space, source)
        for host in hosts:
            host.claim(holder, space, source.port)
        return source

    def listen(self, source: Endpoint, space: int, *, is_datagram: bool) -> None:
        """Takes requests for a port that is held from now on."""
        for host in self._hosts_of(source):
            host.listen(space, source.port, is_datagram=is_datagram)

    def release(self, holder: Listener, space: int, source: Endpoint) -> None:
        """Takes the port back from somebody who does not listen any more."""
        for host in self._hosts:
            host.release(holder, space, source.port)

    def _host_of(self, port: HostPort) -> CmHost:
        return next(host for host in self._hosts if port in host.ports)

    def _hosts_of(self, source: Endpoint) -> Sequence[CmHost]:
        """Those where an address is."""
        if source.is_any:
            return self._hosts
        port = self.local_port(source)
        return () if port is None else (self._host_of(port),)
