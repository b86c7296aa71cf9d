"""Which IP address each port of a host has, as long as nothing else gives it one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Final

from doors.mads.host_port import HostPort
from toolchain.errors import UserError
from wire.codes import is_unicast_lid

__all__ = ["NETMASK", "AddressPlan", "derived_address"]

_NETWORK: Final = int(IPv4Address("127.87.0.0"))
NETMASK: Final = IPv4Address("255.255.0.0")
"""All ports are neighbours."""

_PORT: Final = re.compile(r"(?P<host>.+?)(?:\[(?P<number>[0-9]+)\])?")


def derived_address(lid: int) -> IPv4Address:
    """127.87.X.Y, X and Y being a LID's upper and lower byte. By TCP it is the machine that all programs are on."""
    return IPv4Address(_NETWORK + lid)


class AddressPlan:
    """The addresses of all hosts' ports, by a file or by their LIDs."""

    def __init__(self, ports: Mapping[str, Sequence[HostPort]], file: Path | None = None) -> None:
        """FILE has lines "ADDRESS HOST[PORT]", "HOST" being its port 1, empty ones, and comments with # in front.

        Raises:
            UserError: the file cannot be read, or a line in it is none.
        """
        self._ports = [port for host in ports.values() for port in host]
        self._given = None if file is None else dict(_read(file, {str(port): port for port in self._ports}))

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


def _read(file: Path, ports: Mapping[str, HostPort]) -> Iterator[tuple[IPv4Address, HostPort]]:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise UserError(f"{file}: addresses cannot be read: {why}") from None
    seen: dict[object, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip().split(None, 1)
        if not words or words[0].startswith("#"):
            continue
        place = f"{file}:{number}"
        if len(words) != 2:
            raise UserError(f"{place}: {line.strip()!r}: expected ADDRESS HOST[PORT]")
        try:
            address = IPv4Address(words[0])
        except AddressValueError:
            raise UserError(f"{place}: address {words[0]!r}: expected an IPv4 address such as 10.87.0.1") from None
        found = _PORT.fullmatch(words[1])
        port = ports.get(f"{found['host']}[{found['number'] or 1}]") if found is not None else None
        if port is None:
            known = ", ".join([*ports][:8])
            raise UserError(f"{place}: port {words[1]!r}: expected one of {known}{', ...' if len(ports) > 8 else ''}")
        for what, name in ((address, str(address)), (port, str(port))):
            if what in seen:
                raise UserError(f"{place}: {name} stands in line {seen[what]} too: expected one address for each port")
            seen[what] = number
        yield address, port
