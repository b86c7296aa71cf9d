"""What programs do by rdma_cm, in short: they listen, ask, are connected, and look at what they have."""

from __future__ import annotations

import ctypes
import errno
import os
from ipaddress import IPv4Address

import pytest

from doors.mads.umad_device import DeviceError
from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand, CmEventCode
from doors.rdma_cm.socket_address import Endpoint
from tests.doors.cm_programs import TCP_PORT, Program, address
from wire.ip_cm import PortSpace

__all__ = [
    "DISCONNECTED",
    "ESTABLISHED",
    "INIT",
    "REJECTED",
    "REQUEST",
    "RESPONSE",
    "RTR",
    "RTS",
    "UNREACHABLE",
    "asking",
    "attributes",
    "connected",
    "listening",
    "refused",
    "reuse",
    "route",
]

INIT, RTR, RTS = 1, 2, 3
ESTABLISHED, DISCONNECTED = CmEventCode.ESTABLISHED, CmEventCode.DISCONNECTED
REJECTED, UNREACHABLE = CmEventCode.REJECTED, CmEventCode.UNREACHABLE
REQUEST, RESPONSE = CmEventCode.CONNECT_REQUEST, CmEventCode.CONNECT_RESPONSE


def listening(server: Program, space: PortSpace = PortSpace.TCP, backlog: int = 0) -> int:
    number = server.create(space)
    server.bind(number, Endpoint(IPv4Address(0), TCP_PORT).pack())
    server.listen(number, backlog)
    return number


def asking(client: Program, space: PortSpace = PortSpace.TCP, **parameters: object) -> int:
    number = client.create(space)
    client.resolve(number, address(1, TCP_PORT))
    client.connect(number, **parameters)  # type: ignore[arg-type]
    return number


def connected(server: Program, client: Program) -> tuple[int, int]:
    listening(server)
    near = asking(client)
    far = server.event().id
    server.accept(far)
    assert client.event().code is RESPONSE
    client.confirm(near)
    assert server.event().code is ESTABLISHED
    return far, near


def route(program: Program, number: int):
    body = layouts.QUERY.pack(response=1, id=number)
    return layouts.QUERY_ROUTE_RESP.unpack(program.command(CmCommand.QUERY_ROUTE, body, layouts.QUERY_ROUTE_RESP.size))


def attributes(program: Program, number: int, state: int):
    body = layouts.INIT_QP_ATTR.pack(response=1, id=number, qp_state=state)
    return layouts.QP_ATTR.unpack(program.command(CmCommand.INIT_QP_ATTR, body, layouts.QP_ATTR.size))


def reuse(program: Program, number: int) -> None:
    """Sets the option that others may have the same port."""
    one = ctypes.c_int(1)
    body = layouts.SET_OPTION.pack(optval=ctypes.addressof(one), id=number, optname=1, optlen=4)
    program.command(CmCommand.SET_OPTION, body, process=os.getpid())


def refused(number: int):
    """The block's command fails with this error."""
    return pytest.raises(DeviceError, match=errno.errorcode[number])
