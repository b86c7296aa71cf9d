"""What programs ask of rdma_cm devices, and hear there: the kernel's commands, in bytes."""

import ctypes
import errno
import os
import shutil
import struct
import subprocess
from collections import Counter
from ipaddress import IPv4Address, IPv6Address
from random import Random

import pytest

from doors.mads.host_port import HostPort
from doors.mads.umad_device import DeviceError
from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand, CmEventCode, CmQuery
from doors.rdma_cm.socket_address import Endpoint
from doors.uverbs.c_struct import CStruct
from doors.uverbs.layouts import AH_ATTR
from tests.doors.cm_programs import TCP_PORT, CmFabric, Program, address
from wire.cm import CM_MAD, CmMessage
from wire.codes import LinkWidth, PortState
from wire.ip_cm import PortSpace
from wire.path_record import PATH_RECORD
from wire.port_info import PORT_INFO
from wire.port_tables import P_KEY_TABLE
from wire.sma import SmaAttribute

INIT, RTR, RTS = 1, 2, 3
CREATED = layouts.CREATE_ID.pack(ps=PortSpace.TCP)
ESTABLISHED, DISCONNECTED = CmEventCode.ESTABLISHED, CmEventCode.DISCONNECTED
REJECTED, UNREACHABLE = CmEventCode.REJECTED, CmEventCode.UNREACHABLE
REQUEST, RESPONSE = CmEventCode.CONNECT_REQUEST, CmEventCode.CONNECT_RESPONSE


@pytest.fixture
def fabric() -> CmFabric:
    return CmFabric()


@pytest.fixture
def server(fabric) -> Program:
    return Program(fabric, 1)


@pytest.fixture
def client(fabric) -> Program:
    return Program(fabric, 2)


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


def query(program: Program, number: int, option: int, room: int) -> bytes:
    return program.command(CmCommand.QUERY, layouts.QUERY.pack(response=1, id=number, option=option), room)


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


@pytest.mark.skipif(shutil.which("cc") is None, reason="NOT TESTED against the kernel's headers: apt-get install gcc")
def test_every_structure_is_as_long_as_the_kernels_headers_say(tmp_path):
    ours = {one.name: one.size for one in vars(layouts).values() if isinstance(one, CStruct) and " " not in one.name}
    source = tmp_path / "sizes.c"
    lines = "".join(f'printf("%zu ", sizeof(struct {name}));' for name in ours)
    source.write_text(f"#include <stdio.h>\n#include <rdma/rdma_user_cm.h>\nint main() {{ {lines} }}")
    if subprocess.run(["cc", "-o", tmp_path / "sizes", source], capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED against the kernel's headers: apt-get install linux-libc-dev")
    printed = subprocess.run([tmp_path / "sizes"], capture_output=True, text=True, check=True).stdout
    theirs = dict(zip(ours, map(int, printed.split()), strict=True))
    # Newer headers have `ece` at the end of these.
    for name in ("rdma_ucm_connect", "rdma_ucm_accept"):
        assert theirs.pop(name) in (ours[name], ours.pop(name) + 8)
    assert theirs == ours


def test_a_program_connects_to_another_ones_port(server, client):
    listens = listening(server)
    near = asking(client, private_data=b"hello", qp_num=0x22, responder_resources=4, initiator_depth=5)
    asked = server.event()
    assert (asked.code, asked.user) == (REQUEST, 100)
    assert asked.id not in (listens, 0)
    assert (asked.connection.qp_num, asked.private_data, asked.connection.private_data_len) == (0x22, b"hello", 56)
    # What the one sends the other takes.
    assert (asked.connection.responder_resources, asked.connection.initiator_depth) == (5, 4)
    server.accept(asked.id, b"welcome", qp_num=0x33, responder_resources=5, initiator_depth=4)
    answered = client.event()
    assert (answered.code, answered.id, answered.user) == (RESPONSE, near, 100)
    assert (answered.connection.qp_num, answered.private_data) == (0x33, b"welcome")
    client.confirm(near)
    up = server.event()
    assert (up.code, up.id, up.user) == (ESTABLISHED, asked.id, 200)


def test_both_queue_pairs_are_modified_for_each_other(server, client):
    far, near = connected(server, client)
    here, there = attributes(client, near, RTR), attributes(server, far, RTR)
    assert here.qp_attr_mask == there.qp_attr_mask == 0x129181
    assert (here.dest_qp_num, there.dest_qp_num) == (0x11, 0x11)
    assert (here.path_mtu, there.path_mtu) == (4, 4)
    assert [AH_ATTR.unpack(one.ah_attr).dlid for one in (here, there)] == [1, 2]
    sends = attributes(client, near, RTS)
    assert sends.qp_attr_mask == 0x12E01
    assert sends.sq_psn == there.rq_psn
    assert attributes(client, near, INIT).qp_attr_mask == 0x39
    with refused(errno.EINVAL):
        attributes(client, near, 6)


def test_a_queue_pair_that_is_not_connected_yet_gets_into_init(client):
    number = client.create()
    with refused(errno.EINVAL):
        attributes(client, number, INIT)
    client.resolve(number, address(1, 5))
    found = attributes(client, number, INIT)
    assert (found.qp_attr_mask, found.port_num, found.pkey_index, found.qp_access_flags) == (0x39, 1, 0, 0)
    with refused(errno.EINVAL):
        attributes(client, number, RTR)


def test_the_route_says_whence_and_whither(server, client):
    far, near = connected(server, client)
    mine, theirs = route(client, near), route(server, far)
    assert mine.node_guid == bytes.fromhex("0000000000100004")
    assert (mine.port_num, mine.num_paths, mine.ibdev_index) == (1, 1, 0xFFFF_FFFF)
    assert Endpoint.unpack(mine.src_addr) == Endpoint.unpack(theirs.dst_addr)
    assert Endpoint.unpack(mine.dst_addr) == Endpoint(IPv4Address("127.87.0.1"), TCP_PORT)
    path = layouts.USER_PATH_REC.unpack(mine.ib_route)
    assert (path.slid, path.dlid, path.pkey) == (b"\0\2", b"\0\1", b"\xff\xff")
    assert (path.mtu, path.rate, path.reversible) == (4, 3, 1)
    assert path.dgid == layouts.USER_PATH_REC.unpack(theirs.ib_route).sgid


def test_what_newer_libraries_query_says_the_same(server, client):
    _far, near = connected(server, client)
    addresses = layouts.QUERY_ADDR_RESP.unpack(query(client, near, CmQuery.ADDR, layouts.QUERY_ADDR_RESP.size))
    assert addresses.src_addr[: addresses.src_size] == route(client, near).src_addr[:16]
    assert (addresses.port_num, addresses.pkey) == (1, b"\xff\xff")
    gids = layouts.QUERY_ADDR_RESP.unpack(query(client, near, CmQuery.GID, layouts.QUERY_ADDR_RESP.size))
    path = layouts.USER_PATH_REC.unpack(route(client, near).ib_route)
    assert gids.dst_size == 48
    assert gids.dst_addr[8:24] == path.dgid
    assert struct.unpack_from(">Q", gids.dst_addr, 24) == (0x0106_0000 | TCP_PORT,)
    found = query(client, near, CmQuery.PATH, 8 + 72)
    record = PATH_RECORD.unpack(layouts.PATH_DATA.unpack(found, 8).path_rec)
    assert layouts.PATH_DATA.unpack(found, 8).flags == 0x2B
    assert (record.dlid, record.slid, record.p_key, record.mtu) == (1, 2, 0xFFFF, 4)
    with refused(errno.ENOSYS):
        query(client, near, 3, 8)


@pytest.mark.parametrize("ender", ["client", "server"])
def test_either_may_disconnect_and_both_hear_of_it(fabric, server, client, ender):
    far, near = connected(server, client)
    program, number = (client, near) if ender == "client" else (server, far)
    program.command(CmCommand.DISCONNECT, layouts.ONLY_ID.pack(id=number))
    fabric.wait()
    assert client.events() == server.events() == [DISCONNECTED, CmEventCode.TIMEWAIT_EXIT]


def test_a_program_that_dies_disconnects(fabric, server, client):
    connected(server, client)
    client.device.close()
    fabric.wait()
    assert server.events() == [DISCONNECTED, CmEventCode.TIMEWAIT_EXIT]


def test_a_program_that_goes_while_it_is_asked_refuses(fabric, server, client):
    listening(server)
    asking(client)
    server.device.close()
    fabric.wait()
    assert client.events() == [REJECTED]


def test_what_a_program_asked_that_has_gone_cannot_be_accepted(fabric, server, client):
    listening(server)
    asking(client)
    client.device.close()
    fabric.wait()
    asked = server.event()
    with refused(errno.EINVAL):
        server.accept(asked.id)
    assert not server.device.has_news


def test_a_refusal_brings_its_reason_and_private_data(server, client):
    listening(server)
    near = asking(client)
    far = server.event().id
    body = layouts.REJECT.pack(id=far, private_data_len=4, private_data=b"busy")
    server.command(CmCommand.REJECT, body)
    refusal = client.event()
    assert (refusal.code, refusal.id, refusal.status, refusal.private_data) == (REJECTED, near, 28, b"busy")


def test_nobody_at_a_port_is_a_refusal(client):
    asking(client)
    refusal = client.event()
    assert (refusal.code, refusal.status) == (REJECTED, 8)


def test_a_listener_at_one_address_is_not_asked_for_another(fabric):
    third = CmFabric(3)
    server, client = Program(third, 1), Program(third, 2)
    number = server.create()
    server.bind(number, address(1, TCP_PORT))
    server.listen(number)
    asking(client)
    assert server.events() == [REQUEST]


def test_a_host_that_does_not_answer_is_unreachable(fabric, server, client):
    listening(server)
    fabric.lose = lambda mad: True
    near = asking(client)
    fabric.wait()
    told = client.event()
    assert (told.code, told.id, told.status) == (UNREACHABLE, near, -errno.ETIMEDOUT)


@pytest.mark.parametrize("where", ["10.1.2.3", "127.87.0.9"])
def test_an_address_that_nobody_has_is_an_error(client, where):
    number = client.create()
    body = layouts.RESOLVE_IP.pack(dst_addr=Endpoint(IPv4Address(where), 5).pack(), id=number)
    client.command(CmCommand.RESOLVE_IP, body)
    told = client.event()
    assert (told.code, told.status) == (CmEventCode.ADDR_ERROR, -errno.EHOSTUNREACH)
    # It may try another one.
    client.resolve(number, address(1, 5))


def test_a_port_that_is_not_active_has_no_route(fabric, client):
    number = client.create()
    client.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=address(1, 5), id=number))
    changed(fabric.ports["H1"][0], port_state=PortState.INITIALIZE)
    client.command(CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=number))
    assert client.event().code is CmEventCode.ADDR_RESOLVED
    told = client.event()
    assert (told.code, told.status) == (CmEventCode.ROUTE_ERROR, -errno.EHOSTUNREACH)


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


# Machines with several adapters.


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


# Hosts of two ports.


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


# Paths.


def changed(port: HostPort, **values: int) -> None:
    """A port's PortInfo is another."""
    info = dict(PORT_INFO.unpack(port.known[SmaAttribute.PORT_INFO])) | values
    port.learn(SmaAttribute.PORT_INFO, PORT_INFO.pack(info))


def test_a_path_is_as_narrow_as_the_narrower_of_its_ends(fabric, client):
    changed(fabric.ports["H1"][0], neighbor_mtu=2, link_width_active=LinkWidth.X1)
    number = client.create()
    client.resolve(number, address(1, 5))
    path = layouts.USER_PATH_REC.unpack(route(client, number).ib_route)
    assert (path.mtu, path.rate) == (2, 2)


def test_a_path_is_in_the_first_partition_that_both_ends_are_in(fabric, client):
    for host, keys in (("H1", (0x8001, 0x8003)), ("H2", (0xFFFF, 0, 0x0001, 0x0003))):
        table = P_KEY_TABLE.pack([*keys, *[0] * (32 - len(keys))])
        fabric.ports[host][0].learn(SmaAttribute.P_KEY_TABLE, table)
    number = client.create()
    client.resolve(number, address(1, 5))
    assert layouts.USER_PATH_REC.unpack(route(client, number).ib_route).pkey == b"\0\1"
    assert attributes(client, number, INIT).pkey_index == 2
    # Limited members of a partition do not reach each other.
    table = P_KEY_TABLE.pack([0x0001, *[0] * 31])
    fabric.ports["H1"][0].learn(SmaAttribute.P_KEY_TABLE, table)
    other = client.create()
    client.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=address(1, 5), id=other))
    client.command(CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=other))
    assert client.events() == [CmEventCode.ADDR_RESOLVED, CmEventCode.ROUTE_ERROR]


# Ports.


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


# What a program has not looked at.


def test_requests_beyond_the_backlog_are_refused(server, client):
    listening(server, backlog=2)
    for _ in range(3):
        asking(client)
    assert client.events() == [REJECTED]
    assert server.events() == [REQUEST] * 2
    asking(client)
    assert server.events() == [REQUEST]


def test_a_listener_that_goes_refuses_what_it_has_not_looked_at(server, client):
    number = listening(server)
    asking(client)
    assert server.destroy(number) == 0
    assert client.events() == [REJECTED]
    assert not server.device.has_news


def test_the_end_of_an_id_says_how_many_events_there_were(server, client):
    far, near = connected(server, client)
    assert client.destroy(near) == 3
    assert server.events() == [DISCONNECTED]
    assert server.destroy(far) == 2
    with refused(errno.ENOENT):
        server.destroy(far)


def test_events_follow_an_id_to_another_channel(fabric, server, client):
    far, near = connected(server, client)
    other = Program(fabric, 1)
    client.command(CmCommand.DISCONNECT, layouts.ONLY_ID.pack(id=near))
    body = layouts.MIGRATE_ID.pack(response=1, id=far, fd=3)
    back = other.command(CmCommand.MIGRATE_ID, body, 4)
    assert layouts.EVENTS_RESP.unpack(back).events_reported == 1
    assert not server.device.has_news
    assert other.event().code is DISCONNECTED
    fabric.wait()
    assert other.event().code is CmEventCode.TIMEWAIT_EXIT
    with refused(errno.EINVAL):
        server.destroy(far)
    assert other.destroy(far) == 3
    with refused(errno.EINVAL):
        Program(fabric, 1).command(CmCommand.MIGRATE_ID, layouts.MIGRATE_ID.pack(id=near), 4)


def test_a_message_on_the_queue_pair_makes_up_for_a_lost_confirmation(fabric, server, client):
    listening(server)
    near = asking(client)
    far = server.event().id
    server.accept(far)
    fabric.lose = lambda mad: CM_MAD["attribute_id"].read(mad) == CmMessage.RTU
    client.confirm(near)
    server.command(CmCommand.NOTIFY, layouts.NOTIFY.pack(id=far, event=4))
    assert server.event().code is ESTABLISHED
    with refused(errno.EINVAL):
        server.command(CmCommand.NOTIFY, layouts.NOTIFY.pack(id=far, event=1))


def test_whoever_names_no_host_means_its_own(server):
    listening(server)
    near = server.create()
    server.resolve(near, Endpoint(IPv4Address(0), TCP_PORT).pack())
    assert Endpoint.unpack(route(server, near).dst_addr) == Endpoint(IPv4Address("127.87.0.1"), TCP_PORT)
    server.connect(near)
    assert server.event().code is REQUEST


# Datagrams.


def test_a_datagram_service_is_found(server, client):
    listening(server, PortSpace.UDP)
    near = asking(client, PortSpace.UDP, private_data=b"who")
    asked = server.event()
    assert (asked.code, asked.datagrams.private_data.rstrip(b"\0")) == (REQUEST, b"who")
    server.accept(asked.id, b"here", qp_num=0x44)
    told = client.event()
    found = told.datagrams
    assert (told.code, told.id, found.qp_num, found.qkey) == (ESTABLISHED, near, 0x44, 0x0123_4567)
    assert found.private_data.rstrip(b"\0") == b"here"
    assert AH_ATTR.unpack(found.ah_attr).dlid == 1
    mine = attributes(client, near, INIT)
    assert (mine.qp_attr_mask, mine.qkey) == (0x71, 0x0123_4567)


def test_what_is_found_after_its_end_is_nobodys(server, client):
    listening(server, PortSpace.UDP)
    near = asking(client, PortSpace.UDP)
    client.destroy(near)
    server.accept(server.event().id)
    assert not client.device.has_news


@pytest.mark.parametrize("how", ["reject", "destroy", "nobody"])
def test_a_datagram_service_that_is_refused_is_unreachable(server, client, how):
    if how != "nobody":
        listening(server, PortSpace.UDP)
    asking(client, PortSpace.UDP)
    if how != "nobody":
        far = server.event().id
        if how == "reject":
            server.command(CmCommand.REJECT, layouts.REJECT.pack(id=far))
        server.destroy(far)
    told = client.event()
    assert (told.code, told.status) == (UNREACHABLE, 1 if how == "nobody" else 2)


# What a fabric loses, as one knows that has nothing in flight any more.


@pytest.mark.parametrize("space", [PortSpace.TCP, PortSpace.UDP])
def test_nobody_waits_for_what_cannot_come_any_more(space):
    fabric = CmFabric(knows_losses=True)
    server, client = Program(fabric, 1), Program(fabric, 2)
    listening(server, space)
    fabric.lose = lambda mad: True
    asking(client, space)
    told = client.event()
    assert (told.code, told.status, fabric.now.time) == (UNREACHABLE, -errno.ETIMEDOUT, 0)
    assert fabric.losses in (16, 17)


@pytest.mark.parametrize("kind", [*CmMessage])
def test_whatever_is_lost_is_made_up_for_at_once(kind):
    fabric = CmFabric(knows_losses=True)
    server, client = Program(fabric, 1), Program(fabric, 2)
    left = Counter({kind: 3})

    def lose(mad: bytes) -> bool:
        left[CM_MAD["attribute_id"].read(mad)] -= 1
        return left[CM_MAD["attribute_id"].read(mad)] >= 0

    fabric.lose = lose
    far, near = connected(server, client)
    client.command(CmCommand.DISCONNECT, layouts.ONLY_ID.pack(id=near))
    assert (client.event().code, server.event().code) == (DISCONNECTED, DISCONNECTED)
    assert far
    near = asking(client)
    server.command(CmCommand.REJECT, layouts.REJECT.pack(id=server.event().id))
    assert client.event().code is REJECTED
    datagrams = server.create(PortSpace.UDP)
    server.bind(datagrams, address(1, TCP_PORT))
    server.listen(datagrams)
    near = asking(client, PortSpace.UDP)
    server.accept(server.event().id)
    assert client.event().code is ESTABLISHED
    assert fabric.now.time == 0
    assert fabric.losses == (0 if kind in (CmMessage.MRA, CmMessage.LAP, CmMessage.APR) else 3)


# What is refused.


@pytest.mark.parametrize("code", [CmCommand.JOIN_IP_MCAST, CmCommand.JOIN_MCAST, CmCommand.LEAVE_MCAST])
def test_there_are_no_multicast_groups(client, code):
    with refused(errno.EOPNOTSUPP):
        client.command(code, bytes(200), 4)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", errno.EINVAL),
        (bytes(7), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID, in_bytes=24), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID) + bytes(23), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID, in_bytes=25, out_bytes=4) + CREATED, errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID) + bytes(24), errno.ENOSPC),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID, out_bytes=4) + bytes(24), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.GET_OPTION) + bytes(24), errno.ENOSYS),
        (layouts.CMD_HDR.pack(command=23), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.LISTEN) + layouts.LISTEN.pack(id=99), errno.ENOENT),
        (layouts.CMD_HDR.pack(command=CmCommand.GET_EVENT, out_bytes=336) + bytes(8), errno.EAGAIN),
    ],
)
def test_a_command_that_is_none_is_refused(client, data, error):
    with refused(error):
        client.device.write(data, 1, no_wait=True)


def test_an_answer_is_as_long_as_the_program_has_room_for(client):
    number = client.create()
    client.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=address(1, 5), id=number))
    back = client.command(CmCommand.GET_EVENT, layouts.GET_EVENT.pack(), layouts.EVENT_RESP.size - 12)
    assert len(back) == layouts.EVENT_RESP.size - 12


@pytest.mark.parametrize(("kind", "error"), [(2, 0), (3, 0), (4, 0), (8, errno.EOPNOTSUPP), (9, errno.EOPNOTSUPP)])
def test_queue_pairs_that_are_not_connected_or_looked_up_have_no_ids(client, kind, error):
    if error:
        with refused(error):
            client.create(PortSpace.IB, kind)
    else:
        assert client.create(PortSpace.IB, kind)


def test_a_host_that_does_not_know_its_adapter_yet_hears_nothing(fabric, client):
    (port,) = fabric.ports["H1"]
    guid = port.known.pop(SmaAttribute.NODE_INFO)
    asking(client)
    assert not client.device.has_news
    port.known[SmaAttribute.NODE_INFO] = guid
    fabric.wait()
    assert client.event().code is REJECTED


def test_an_event_is_waited_for_by_who_wants_to_wait(client):
    data = layouts.CMD_HDR.pack(command=CmCommand.GET_EVENT, out_bytes=336) + bytes(8)
    assert client.device.write(data, 1, no_wait=False) is None


def test_commands_in_the_wrong_order_are_refused(server, client):
    number = client.create()
    for code, body in (
        (CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=number)),
        (CmCommand.CONNECT, layouts.CONNECT.pack(id=number)),
        (CmCommand.ACCEPT, layouts.ACCEPT.pack(id=number)),
        (CmCommand.REJECT, layouts.REJECT.pack(id=number)),
        (CmCommand.DISCONNECT, layouts.ONLY_ID.pack(id=number)),
    ):
        with refused(errno.EINVAL):
            client.command(code, body)
    client.resolve(number, address(1, 5))
    with refused(errno.EINVAL):
        client.connect(number, bytes(57))
    with refused(errno.EINVAL):
        client.listen(number)
    with refused(errno.EINVAL):
        client.bind(number, address(2))


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"level": 1, "optname": 1, "optlen": 72}, errno.ENOSYS),
        ({"optname": 4, "optlen": 4}, errno.ENOSYS),
        ({"optname": 1, "optlen": 1}, errno.EINVAL),
        ({"optname": 3, "optlen": 1}, errno.EINVAL),
        ({"optname": 0, "optlen": 1, "optval": 8}, errno.EFAULT),
    ],
)
def test_an_option_that_there_is_not_is_refused(client, values, error):
    wrong = ctypes.c_ubyte(32)
    body = layouts.SET_OPTION.pack(**{"id": client.create(), "optval": ctypes.addressof(wrong), **values})
    with refused(error):
        client.command(CmCommand.SET_OPTION, body, process=os.getpid())


def test_a_program_may_choose_its_local_ack_timeout(server, client):
    _far, near = connected(server, client)
    assert attributes(client, near, RTS).timeout == 15
    code = ctypes.c_ubyte(9)
    body = layouts.SET_OPTION.pack(optval=ctypes.addressof(code), id=near, optname=3, optlen=1)
    client.command(CmCommand.SET_OPTION, body, process=os.getpid())
    assert attributes(client, near, RTS).timeout == 9


LAYOUTS = {
    CmCommand.CREATE_ID: layouts.CREATE_ID,
    CmCommand.DESTROY_ID: layouts.DESTROY_ID,
    CmCommand.BIND_IP: layouts.BIND_IP,
    CmCommand.RESOLVE_IP: layouts.RESOLVE_IP,
    CmCommand.QUERY: layouts.QUERY,
    CmCommand.CONNECT: layouts.CONNECT,
    CmCommand.ACCEPT: layouts.ACCEPT,
    CmCommand.REJECT: layouts.REJECT,
    CmCommand.INIT_QP_ATTR: layouts.INIT_QP_ATTR,
    CmCommand.SET_OPTION: layouts.SET_OPTION,
    CmCommand.BIND: layouts.BIND,
    CmCommand.RESOLVE_ADDR: layouts.RESOLVE_ADDR,
}


LIKELY = (CmCommand.GET_EVENT, CmCommand.BIND_IP, CmCommand.RESOLVE_IP, CmCommand.RESOLVE_ROUTE, CmCommand.CONNECT)


def random_body(random: Random, code: int, ids: list[int]) -> bytes:
    """One that makes it past the first look now and then; IDS are the program's."""
    layout = LAYOUTS.get(CmCommand(code), layouts.LISTEN) if code in set(CmCommand) else layouts.LISTEN
    values: dict[str, int | bytes] = {}
    for name in layout.fields:
        if name.endswith("addr"):
            where = address(random.choice((1, 1, 1, 2, 2, 3)), random.choice((1, 1, 1, 0)))
            values[name] = random.choice((where, where, where, where, bytes(16), random.randbytes(28)))
        elif name == "conn_param":
            size = random.choice((0, 0, 10, 56, 57, 255))
            values[name] = layouts.CONN_PARAM.pack(private_data_len=size, valid=random.random() < 0.8)
        elif name == "private_data":
            values[name] = random.randbytes(256)
        else:
            is_own = name == "id" and ids and random.random() < 0.95
            small = random.choice(ids) if is_own else random.choice((0, 1, 2, 3, 4, 16, 28, 255))
            values[name] = random.choice((*PortSpace, PortSpace.TCP, PortSpace.UDP)) if name == "ps" else small
    return layout.pack(**values) + bytes(random.choice((0, 8)))


def test_random_commands_do_no_harm(fabric, server, client):
    seed = 7
    print(f"seed {seed}")
    random = Random(seed)
    strays = [Program(fabric, 1 + number % 2) for number in range(4)]
    ids: dict[Program, list[int]] = {stray: [] for stray in strays}
    done, heard = Counter[int](), Counter[CmEventCode]()
    for _ in range(10_000):
        program = random.choice(strays)
        mine = ids[program]
        code = random.choice([*CmCommand, *LIKELY, *LIKELY, random.randrange(1 << 32)])
        if (code == CmCommand.DESTROY_ID and len(mine) < 5) or (code == CmCommand.CREATE_ID and len(mine) > 20):
            code = CmCommand.RESOLVE_ROUTE
        body = random_body(random, code, mine) if random.random() < 0.97 else random.randbytes(random.randrange(300))
        try:
            back = program.command(code, body, random.choice((4, 144, 336, 65_535)))
            done[code] += 1
            if code == CmCommand.GET_EVENT:
                event = layouts.EVENT_RESP.unpack(back.ljust(336, b"\0"))
                heard[CmEventCode(event.event)] += 1
                if event.id not in mine:
                    mine.append(event.id)
            elif code == CmCommand.DESTROY_ID:
                mine.remove(layouts.DESTROY_ID.unpack(body).id)
            elif code == CmCommand.CREATE_ID:
                mine.append(layouts.CREATE_ID_RESP.unpack(back).id)
        except DeviceError:
            pass
        fabric.now = fabric.now._replace(time=fabric.now.time + random.randrange(10**8))
    print(done, heard)
    assert len(done) >= 14
    assert {REQUEST, REJECTED, CmEventCode.ADDR_ERROR} <= set(heard)
    for stray in strays:
        stray.device.close()
    connected(server, client)
