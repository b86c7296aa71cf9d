"""What addresses say: hosts and ports, those that are bound, and who is reached by them."""

import errno
import struct
from ipaddress import IPv4Address, IPv6Address

import pytest

from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand, CmEventCode
from doors.rdma_cm.socket_address import Endpoint
from tests.doors.cm_connections import REQUEST, RESPONSE, asking, listening, refused, reuse, route
from tests.doors.cm_programs import TCP_PORT, CmFabric, Program, address
from wire.ip_cm import PortSpace


def test_a_listener_at_one_address_is_not_asked_for_another(fabric):
    third = CmFabric(3)
    server, client = Program(third, 1), Program(third, 2)
    number = server.create()
    server.bind(number, address(1, TCP_PORT))
    server.listen(number)
    asking(client)
    assert server.events() == [REQUEST]


@pytest.mark.parametrize("where", ["10.1.2.3", "127.87.0.9"])
def test_an_address_that_nobody_has_is_an_error(client, where):
    number = client.create()
    body = layouts.RESOLVE_IP.pack(dst_addr=Endpoint(IPv4Address(where), 5).pack(), id=number)
    client.command(CmCommand.RESOLVE_IP, body)
    told = client.event()
    assert (told.code, told.status) == (CmEventCode.ADDR_ERROR, -errno.EHOSTUNREACH)
    # It may try another one.
    client.resolve(number, address(1, 5))


def test_a_program_reaches_its_own_host_by_loopback_addresses(fabric, server):
    listening(server)
    number = server.create()
    server.resolve(number, Endpoint(IPv4Address("127.0.0.1"), TCP_PORT).pack())
    server.connect(number)
    asked = server.event()
    assert asked.code is REQUEST
    server.accept(asked.id)
    assert server.event().code is RESPONSE
    bound = server.create()
    server.bind(bound, Endpoint(IPv4Address("127.0.0.1")).pack())
    endpoint = Endpoint.unpack(route(server, bound).src_addr)
    assert endpoint is not None
    assert endpoint.address == IPv4Address("127.87.0.1")


def test_a_port_is_one_programs(fabric, server):
    listening(server)
    other = Program(fabric, 1)
    number = other.create()
    with refused(errno.EADDRINUSE):
        other.bind(number, Endpoint(IPv4Address(0), TCP_PORT).pack())
    with refused(errno.EADDRINUSE):
        other.bind(number, address(1, TCP_PORT))
    other.bind(number, address(1, TCP_PORT + 1))
    datagrams = other.create(PortSpace.UDP)
    other.bind(datagrams, address(1, TCP_PORT))


def test_a_port_is_free_again_when_its_program_has_gone(fabric, server):
    listening(server)
    server.device.close()
    listening(Program(fabric, 1))


def test_two_may_have_a_port_that_both_reuse_and_one_listens(fabric, server):
    numbers = [server.create() for _ in range(2)]
    for number in numbers:
        reuse(server, number)
        server.bind(number, address(1, TCP_PORT))
    server.listen(numbers[1])
    third = server.create()
    for _ in range(2):
        with refused(errno.EADDRINUSE):
            server.bind(third, address(1, TCP_PORT))
        reuse(server, third)


def test_a_port_is_chosen_for_who_wants_none_in_particular(client):
    ports = []
    for _ in range(3):
        number = client.create()
        client.listen(number)
        endpoint = Endpoint.unpack(route(client, number).src_addr)
        assert endpoint is not None
        ports.append(endpoint.port)
    assert len(set(ports)) == 3
    assert min(ports) >= 32_768


@pytest.mark.parametrize(
    ("where", "error"),
    [
        (address(2), errno.EADDRNOTAVAIL),
        (Endpoint(IPv6Address("fd00::1")).pack(), errno.EADDRNOTAVAIL),
        (struct.pack("=H26x", 27), errno.EAFNOSUPPORT),
        (bytes(28), errno.EINVAL),
    ],
)
def test_an_address_of_others_cannot_be_had(server, where, error):
    with refused(error):
        server.bind(server.create(), where)


@pytest.mark.parametrize("where", ["::", "::ffff:127.87.0.1"])
def test_ipv4_addresses_may_be_written_as_ipv6(server, client, where):
    number = server.create()
    server.bind(number, Endpoint(IPv6Address(where), TCP_PORT).pack())
    server.listen(number)
    asking(client)
    assert server.event().code is REQUEST


def test_whoever_names_no_host_means_its_own(server):
    listening(server)
    near = server.create()
    server.resolve(near, Endpoint(IPv4Address(0), TCP_PORT).pack())
    assert Endpoint.unpack(route(server, near).dst_addr) == Endpoint(IPv4Address("127.87.0.1"), TCP_PORT)
    server.connect(near)
    assert server.event().code is REQUEST
