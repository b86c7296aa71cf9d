"""The RDMA IP CM service: IP addresses and ports in service IDs and private data (IBTA vol 1, annex A11)."""

from __future__ import annotations

from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from .layout import Field, Layout
from .meaning import HEX

__all__ = [
    "IP_CM_HEADER",
    "IpAddress",
    "PortSpace",
    "ip_cm_ends",
    "ip_cm_header",
    "service_id",
    "service_port",
]

IpAddress: TypeAlias = IPv4Address | IPv6Address


class PortSpace(IntEnum):
    """Whose port a service ID stands for: its bytes 4 and 5, which the port follows.

    Of the RDMA IP CM service byte 4 is 1 and byte 5 an IP protocol's number.
    """

    IPOIB = 0x0002
    TCP = 0x0106
    UDP = 0x0111
    IB = 0x013F


def service_id(space: int, port: int) -> int:
    """The service ID of a port."""
    return space << 16 | port


def service_port(service: int) -> int:
    """The port that a service ID stands for."""
    return service & 0xFFFF


IP_CM_HEADER: Final = Layout(
    "IPCMHeader",
    36,
    [
        Field("major_version", 0, 4),
        Field("minor_version", 4, 4),
        Field("ip_version", 8, 4),
        Field("source_port", 16, 16),
        Field("source_ip", 32, 128, meaning=HEX),
        Field("destination_ip", 160, 128, meaning=HEX),
    ],
)
"""The first 36 bytes of the private data of a REQ or SIDR_REQ. An IPv4 address is in the last 4 bytes of its field."""


def ip_cm_header(source: IpAddress, source_port: int, destination: IpAddress) -> bytes:
    """The header of a request from an address and port to an address, whose port the service ID says."""
    return IP_CM_HEADER.pack(
        ip_version=source.version, source_port=source_port, source_ip=int(source), destination_ip=int(destination)
    )


def ip_cm_ends(private_data: bytes) -> tuple[IpAddress, int, IpAddress] | None:
    """Source address and port and destination address that private data begin with; None if they say no such thing."""
    if len(private_data) < IP_CM_HEADER.size_bytes:
        return None
    header = IP_CM_HEADER.unpack(private_data)
    if header.major_version or header.ip_version not in (4, 6):
        return None
    kind = IPv4Address if header.ip_version == 4 else IPv6Address
    try:
        return kind(header.source_ip), header.source_port, kind(header.destination_ip)
    except ValueError:
        return None
