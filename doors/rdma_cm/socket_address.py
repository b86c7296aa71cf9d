"""Addresses of sockets as C has them: struct sockaddr_in, sockaddr_in6 and sockaddr_ib."""

from __future__ import annotations

import errno
import socket
import struct
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

from doors.mads.umad_device import DeviceError
from doors.rdma_cm.mgid import GroupAddress
from wire.ip_cm import IpAddress, service_port

__all__ = ["SOCKADDR_IB_BYTES", "SOCKADDR_IN6_BYTES", "Endpoint", "group_address", "packed_ib"]

SOCKADDR_IN6_BYTES: Final = 28
SOCKADDR_IB_BYTES: Final = 48
_AF_IB: Final = 27
_FAMILY: Final = struct.Struct("=H")
_IN: Final = struct.Struct("=H2s4s8x")
_IN6: Final = struct.Struct("=H2s4x16s4x")
_IB: Final = struct.Struct("=H2s4x16s8s8s8x")
_SIZES: Final = {socket.AF_INET: _IN.size, socket.AF_INET6: SOCKADDR_IN6_BYTES, _AF_IB: _IB.size}
_LOOPBACKS: Final = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_WHOLE_SERVICE: Final = b"\xff" * 8


class Endpoint(NamedTuple):
    """An IP address and a port; the address of no port in particular is 0."""

    address: IpAddress
    port: int = 0

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"

    @property
    def is_any(self) -> bool:
        """Whether it is each address of its host."""
        return self.address.is_unspecified

    @property
    def is_loopback(self) -> bool:
        """Whether it is a host's name for itself: 127.0.0.1 or ::1."""
        return self.address in _LOOPBACKS

    @classmethod
    def unpack(cls, data: bytes) -> Endpoint | None:
        """From a structure with as many bytes behind it as you like; None if it says nothing.

        Raises:
            DeviceError: another family; of AF_IB each address of a host is known, and no single one.
        """
        (family,) = _FAMILY.unpack_from(data)
        if family == socket.AF_UNSPEC:
            return None
        if family == socket.AF_INET:
            _family, port, address = _IN.unpack_from(data)
            return cls(IPv4Address(address), int.from_bytes(port, "big"))
        if family == socket.AF_INET6 and len(data) >= _IN6.size:
            _family, port, address = _IN6.unpack_from(data)
            number = IPv6Address(address)
            return cls(number.ipv4_mapped or number, int.from_bytes(port, "big"))
        if family == _AF_IB and len(data) >= _IB.size:
            # By this librdmacm finds out whether it may use the commands that take any address.
            _family, _p_key, gid, service, _mask = _IB.unpack_from(data)
            if not any(gid):
                return cls(IPv6Address(0), service_port(int.from_bytes(service, "big")))
        raise DeviceError(errno.EAFNOSUPPORT)

    def pack(self) -> bytes:
        """The structure."""
        port, address = self.port.to_bytes(2, "big"), self.address.packed
        if self.address.version == 4:
            return _IN.pack(socket.AF_INET, port, address)
        return _IN6.pack(socket.AF_INET6, port, address)


def packed_ib(gid: int, p_key: int, service_id: int) -> bytes:
    """A struct sockaddr_ib."""
    return _IB.pack(
        _AF_IB, p_key.to_bytes(2, "big"), gid.to_bytes(16, "big"), service_id.to_bytes(8, "big"), _WHOLE_SERVICE
    )


def group_address(data: bytes, size: int) -> GroupAddress:
    """The group that a structure of SIZE bytes means, which may have more behind it.

    Raises:
        DeviceError: another size than that of its family, or another family.
    """
    (family,) = _FAMILY.unpack_from(data)
    if size != _SIZES.get(family):
        raise DeviceError(errno.EINVAL)
    if family == _AF_IB:
        return GroupAddress(mgid=int.from_bytes(_IB.unpack_from(data)[2], "big"))
    found = Endpoint.unpack(data)
    assert found is not None
    return GroupAddress(found.address)
