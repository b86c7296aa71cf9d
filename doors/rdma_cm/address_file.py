"""The file that says which IP address each port of a fabric's hosts has; read before anything is simulated."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Final

from toolchain.errors import UserError

__all__ = ["read_addresses"]

_BROADCAST: Final = IPv4Address("255.255.255.255")
_PORT: Final = re.compile(r"(?P<host>.+?)(?:\[(?P<number>[0-9]+)\])?")


def read_addresses(file: Path, ports: Collection[str]) -> dict[IPv4Address, str]:
    """The port of each address. PORTS are all there are, as "HOST[PORT]".

    The file has lines "ADDRESS HOST[PORT]", "HOST" being its port 1, empty ones, and comments with # in front.

    Raises:
        UserError: the file cannot be read, or a line in it is none.
    """
    return dict(_read(file, ports))


def _read(file: Path, ports: Collection[str]) -> Iterator[tuple[IPv4Address, str]]:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise UserError(f"{file}: addresses cannot be read: {why}") from None
    seen: dict[str, int] = {}
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
        if address.is_multicast or address.is_unspecified or address == _BROADCAST:
            raise UserError(f"{place}: address {address}: expected one of a port, not of any, all or a group")
        found = _PORT.fullmatch(words[1])
        port = f"{found['host']}[{found['number'] or 1}]" if found is not None else ""
        if port not in ports:
            known = ", ".join([*ports][:8])
            raise UserError(f"{place}: port {words[1]!r}: expected one of {known}{', ...' if len(ports) > 8 else ''}")
        for name in (str(address), port):
            if name in seen:
                raise UserError(f"{place}: {name} stands in line {seen[name]} too: expected one address for each port")
            seen[name] = number
        yield address, port
