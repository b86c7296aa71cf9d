"""Which IP address each port of a host has, as long as nothing else gives it one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from typing import Final

from doors.mads.host_port import HostPort
from wire.codes import is_unicast_lid

__all__ = ["NETMASK", "AddressPlan", "derived_address"]

_NETWORK: Final = int(IPv4Address("127.87.0.0"))
NETMASK: Final = IPv4Address("255.255.0.0")
"""All ports are neighbours."""


def derived_address(lid: int) -> IPv4Address:
    """127.87.X.Y, X and Y being a LID's upper and lower byte. By TCP it is the machine that all programs are on."""
    return IPv4Address(_NETWORK + lid)


class AddressPlan:
    """The addresses of all hosts' ports, by a file or by their LIDs."""

    def __init__(self, ports: Mapping[str, Sequence[HostPort]], given: Mapping[IPv4Address, str] | None = None) -> None:
        """GIVEN has ports as `doors.rdma_cm.address_file` names them."""
        self._ports = [port for host in ports.values() for port in host]
        by_name = {str(port): port for port in self._ports}
        self._given = None if given is None else {address: by_name[name] for address, name in given.items()}

    def address_of(self, port: HostPort) -> IPv4Address | None:
        """A port's address; None if it has none, or no LID yet."""
        if self._given is not None:
            return next((address for address, one in self._given.items() if one is port), None)
        lid = port.info.lid
        return derived_address(lid) if is_unicast_lid(lid) else None

    def port_of(self, address: object) -> HostPort | None:
        """The port that has an address."""
        return next((port for port in self._ports if self.address_of(port) == address), None)

    def port_with_lid(self, lid: int) -> HostPort | None:
        """The port that has a LID."""
        return next((port for port in self._ports if port.has_lid(lid)), None)
