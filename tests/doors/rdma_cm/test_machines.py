"""Machines with several adapters, and hosts of two ports."""

import errno
from ipaddress import IPv4Address

import pytest

from doors.rdma_cm import layouts
from doors.rdma_cm.socket_address import Endpoint
from tests.doors.cm_connections import INIT, REJECTED, REQUEST, RESPONSE, attributes, refused, reuse, route
from tests.doors.cm_programs import TCP_PORT, CmFabric, Program, address


def test_a_machine_with_two_adapters_listens_at_both(fabric):
    fabric = CmFabric(4)
    server, client = Program(fabric, 1, 3), Program(fabric, 2)
    number = server.create()
    server.listen(number)
    endpoint = Endpoint.unpack(route(server, number).src_addr)
    assert endpoint is not None
    for host, guid in ((1, 0x100002), (3, 0x100006), (4, None)):
        near = client.create()
        client.resolve(near, address(host, endpoint.port))
        client.connect(near, qp_num=0x100 + host)
        if guid is None:
            assert client.event().code is REJECTED
        else:
            asked = server.event()
            found = route(server, asked.id)
            assert (asked.code, int.from_bytes(found.node_guid, "big")) == (REQUEST, guid)
            server.accept(asked.id)
            assert client.event().code is RESPONSE
    server.destroy(number)
    for host in (1, 3):
        near = client.create()
        client.resolve(near, address(host, endpoint.port))
        client.connect(near, qp_num=0x200 + host)
        assert client.event().code is REJECTED
    # The port is free again at both.
    server.bind(server.create(), Endpoint(IPv4Address(0), endpoint.port).pack())


def test_a_machine_with_two_adapters_has_the_addresses_of_both(fabric):
    fabric = CmFabric(4)
    machine, alone = Program(fabric, 3, 1), Program(fabric, 1)
    number = machine.create()
    machine.bind(number, address(1, TCP_PORT))
    machine.listen(number)
    with refused(errno.EADDRINUSE):
        alone.bind(alone.create(), Endpoint(IPv4Address(0), TCP_PORT).pack())
    with refused(errno.EADDRNOTAVAIL):
        machine.bind(machine.create(), address(2, TCP_PORT))
    # Without a wish, it asks from the first.
    asker = machine.create()
    machine.resolve(asker, address(1, TCP_PORT))
    machine.connect(asker)
    asked = machine.event()
    source = Endpoint.unpack(route(machine, asked.id).dst_addr)
    assert source is not None
    assert source.address == IPv4Address("127.87.0.3")


def test_a_port_that_is_chosen_is_free_at_both_adapters():
    fabric = CmFabric(3)
    alone, machine = Program(fabric, 3), Program(fabric, 1, 3)
    alone.bind(alone.create(), Endpoint(IPv4Address(0), 32_768).pack())
    number = machine.create()
    machine.listen(number)
    endpoint = Endpoint.unpack(route(machine, number).src_addr)
    assert endpoint is not None
    assert endpoint.port == 32_769


@pytest.fixture
def of_two_ports() -> CmFabric:
    return CmFabric(two_ports=True)


def test_each_of_a_hosts_ports_has_listeners_of_its_own(of_two_ports):
    server, client = Program(of_two_ports, 1), Program(of_two_ports, 2)
    listens = {}
    for host in (1, 99):
        listens[host] = server.create()
        server.bind(listens[host], address(host, TCP_PORT))
        server.listen(listens[host])
    for host, qpn in ((99, 0x21), (1, 0x22), (99, 0x23)):
        near = client.create()
        client.resolve(near, address(host, TCP_PORT))
        client.connect(near, qp_num=qpn)
        asked = server.event()
        assert (asked.code, asked.user) == (REQUEST, 100 if host == 1 else 200)
        assert route(server, asked.id).port_num == (1 if host == 1 else 2)
    server.destroy(listens[99])
    for host, code in ((1, None), (99, REJECTED)):
        near = client.create()
        client.resolve(near, address(host, TCP_PORT))
        client.connect(near, qp_num=0x30 + host)
        assert client.events() == ([] if code is None else [code])
    assert server.event().user == 100


def test_a_listener_at_an_address_comes_before_one_at_all_of_them(of_two_ports):
    server, client = Program(of_two_ports, 1), Program(of_two_ports, 2)
    users = []
    for where in (Endpoint(IPv4Address(0), TCP_PORT).pack(), address(99, TCP_PORT)):
        number = server.create()
        reuse(server, number)
        server.bind(number, where)
        users.append((number, server.users))
    for number, _user in users:
        server.listen(number)
    for host, user in ((99, 200), (1, 100)):
        near = client.create()
        client.resolve(near, address(host, TCP_PORT))
        client.connect(near, qp_num=0x30 + host)
        assert server.event().user == user


def test_what_is_bound_to_a_port_asks_from_there(of_two_ports):
    server, client = Program(of_two_ports, 1), Program(of_two_ports, 2)
    number = client.create()
    client.bind(number, Endpoint(IPv4Address(0), TCP_PORT).pack())
    client.listen(number)
    near = server.create()
    server.bind(near, address(99))
    server.resolve(near, address(2, TCP_PORT))
    server.connect(near)
    asked = client.event()
    there = Endpoint.unpack(route(client, asked.id).dst_addr)
    assert there is not None
    assert there.address == IPv4Address("127.87.0.99")
    assert layouts.USER_PATH_REC.unpack(route(client, asked.id).ib_route).dlid == b"\0\x63"
    client.accept(asked.id)
    server.event()
    assert attributes(server, near, INIT).port_num == 2
