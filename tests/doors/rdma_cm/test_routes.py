"""Routes: what programs are told of a path, and which one it is."""

import errno
import struct
from ipaddress import IPv4Address

from doors.mads.host_port import HostPort
from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand, CmEventCode, CmQuery
from doors.rdma_cm.socket_address import Endpoint
from tests.doors.cm_connections import INIT, attributes, connected, refused, route
from tests.doors.cm_programs import TCP_PORT, Program, address
from wire.codes import LinkWidth, PortState
from wire.path_record import PATH_RECORD
from wire.port_info import PORT_INFO
from wire.port_tables import P_KEY_TABLE
from wire.sma import SmaAttribute


def query(program: Program, number: int, option: int, room: int) -> bytes:
    return program.command(CmCommand.QUERY, layouts.QUERY.pack(response=1, id=number, option=option), room)


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


def test_a_port_that_is_not_active_has_no_route(fabric, client):
    number = client.create()
    client.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=address(1, 5), id=number))
    changed(fabric.ports["H1"][0], port_state=PortState.INITIALIZE)
    client.command(CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=number))
    assert client.event().code is CmEventCode.ADDR_RESOLVED
    told = client.event()
    assert (told.code, told.status) == (CmEventCode.ROUTE_ERROR, -errno.EHOSTUNREACH)


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
