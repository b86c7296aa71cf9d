"""Routes of which the Subnet Administrator is asked: what it says of a path is what a connection has."""

from __future__ import annotations

import ctypes
import errno
import os

import pytest

from doors.mads.agents import Agent
from doors.mads.mad_layer import Moment
from doors.mads.user_mad import Address, Registration
from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand, CmEventCode
from doors.uverbs.layouts import AH_ATTR
from tests.doors.cm_connections import RTR, RTS, attributes, connected, listening, refused, route
from tests.doors.cm_programs import TCP_PORT, CmFabric, Event, Program, address
from wire.codes import QP_GSI
from wire.ip_cm import PortSpace
from wire.mad import MadStatus, MgmtClass, pack_data
from wire.path_record import PATH_RECORD
from wire.sa import SA_CLASS_VERSION, SA_HEADER_BYTES, SA_MAD, SA_RESPONSES, SaMethod, SaStatus, components
from wire.sma import SmaAttribute

RESOLVED, ROUTE_ERROR = CmEventCode.ROUTE_RESOLVED, CmEventCode.ROUTE_ERROR


class Administrator:
    """At H1: answers a query for a PathRecord with what is asked for, and what the paths are like here.

    Attributes:
        asked: the components of each query.
        paths: what the paths are like.
        status: of its answers.
    """

    def __init__(self, fabric: CmFabric) -> None:
        self.fabric = fabric
        self.port = fabric.ports["H1"][0]
        self.port.mads.register(self, Registration(QP_GSI, MgmtClass.SUBN_ADM, SA_CLASS_VERSION, 1 << SaMethod.GET))
        self.asked: list[dict[str, int]] = []
        self.paths = {"dlid": 1, "slid": 2, "sl": 5, "mtu": 3, "rate": 2, "packet_life_time": 9}
        self.status = 0

    def arrived(self, agent: Agent, source: Address, mad: bytes) -> None:
        head, record = SA_MAD.unpack(mad), PATH_RECORD.unpack(mad, SA_HEADER_BYTES)
        named = [name for bit, name in enumerate(components(PATH_RECORD)) if head.component_mask >> bit & 1]
        self.asked.append({name: record[name] for name in named if name is not None})
        data = pack_data(SA_MAD, record.replace(**self.paths).pack())
        answer = head.replace(method=SA_RESPONSES[head.method], status=self.status, data=data)
        self.port.mads.send(agent, source, answer.pack(), 0, 0, self.fabric.now)

    def unanswered(self, agent: Agent, source: Address, mad: bytes) -> None:
        raise AssertionError("it asks nothing")


@pytest.fixture
def administrator(fabric) -> Administrator:
    return Administrator(fabric)


def asking_for_route(client: Program, number: int, timeout_ms: int = 2_000) -> None:
    client.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=address(1, TCP_PORT), id=number))
    assert client.event().code is CmEventCode.ADDR_RESOLVED
    client.command(CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=number, timeout_ms=timeout_ms))


def resolved(client: Program, number: int) -> Event:
    asking_for_route(client, number)
    return client.event()


def service_level(program: Program, number: int) -> int:
    """That of the packets of an rdma_cm_id's queue pair."""
    return AH_ATTR.unpack(attributes(program, number, RTR).ah_attr).sl


def test_a_connection_is_as_the_subnet_administrator_says(administrator, server, client):
    far, near = connected(server, client)
    path = layouts.USER_PATH_REC.unpack(route(client, near).ib_route)
    assert (path.sl, path.mtu, path.rate, path.packet_life_time) == (5, 3, 2, 9)
    assert layouts.USER_PATH_REC.unpack(route(server, far).ib_route).sl == 5
    assert (service_level(client, near), service_level(server, far)) == (5, 5)
    assert (attributes(client, near, RTR).path_mtu, attributes(server, far, RTR).path_mtu) == (3, 3)
    assert attributes(client, near, RTS).timeout == 10


def test_it_is_asked_for_a_path_that_leads_back_in_a_partition_for_a_service(fabric, administrator, client):
    number = client.create()
    kind_of_service = ctypes.c_uint8(0x28)
    body = layouts.SET_OPTION.pack(optval=ctypes.addressof(kind_of_service), id=number, optname=0, optlen=1)
    client.command(CmCommand.SET_OPTION, body, process=os.getpid())
    assert resolved(client, number).code is RESOLVED
    ends = {"dgid": fabric.ports["H1"][0].gid, "sgid": fabric.ports["H2"][0].gid}
    wanted = {"p_key": 0xFFFF, "numb_path": 1, "reversible": 1, "service_id": 0x0106_0000 | TCP_PORT, "qos_class": 0x28}
    assert administrator.asked == [{**ends, **wanted}]


def test_datagrams_go_by_it_too(administrator, server, client):
    listening(server, PortSpace.UDP)
    number = client.create(PortSpace.UDP)
    assert resolved(client, number).code is RESOLVED
    client.connect(number)
    server.accept(server.event().id)
    assert AH_ATTR.unpack(client.event().datagrams.ah_attr).sl == 5
    assert administrator.asked[0]["service_id"] == 0x0111_0000 | TCP_PORT


def test_a_path_may_be_from_another_lid_of_the_port(fabric, administrator, client):
    port = fabric.ports["H2"][0]
    port.learn(SmaAttribute.PORT_INFO, port.info.replace(lmc=1).pack())
    administrator.paths["slid"] = 3
    number = client.create()
    assert resolved(client, number).code is RESOLVED
    path = layouts.USER_PATH_REC.unpack(route(client, number).ib_route)
    assert (path.slid, path.dlid) == (b"\0\3", b"\0\1")
    fabric.carry = fabric.hosts.poll
    client.connect(number)
    (request,) = port.mads.outbox
    assert (request.address.lid, request.address.path_bits, request.address.sl) == (1, 1, 5)


@pytest.mark.parametrize("status", [SaStatus.NO_RECORDS, SaStatus.REQ_INVALID_GID])
def test_where_it_says_that_there_is_no_path_there_is_none(administrator, client, status):
    administrator.status = status
    number = client.create()
    told = resolved(client, number)
    assert (told.code, told.status) == (ROUTE_ERROR, -errno.EINVAL)
    administrator.status = 0
    client.command(CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=number, timeout_ms=2_000))
    assert client.event().code is RESOLVED


@pytest.mark.parametrize("wrong", [{"mtu": 0}, {"mtu": 6}, {"slid": 1}, {"dlid": 0}, {"dlid": 0xC000}])
def test_a_path_that_cannot_be_is_none(administrator, client, wrong):
    administrator.paths |= wrong
    told = resolved(client, client.create())
    assert (told.code, told.status) == (ROUTE_ERROR, -errno.EINVAL)


def test_who_is_no_subnet_administrator_does_not_count(administrator, client):
    administrator.status = MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED
    number = client.create()
    assert resolved(client, number).code is RESOLVED
    assert layouts.USER_PATH_REC.unpack(route(client, number).ib_route).sl == 0


def test_without_an_answer_in_time_the_path_is_what_both_ports_know(fabric, client):
    fabric.lose = lambda mad: mad[1] == MgmtClass.SUBN_ADM
    number = client.create()
    asking_for_route(client, number, timeout_ms=2_000)
    with refused(errno.EINVAL):
        client.command(CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=number, timeout_ms=2_000))
    port = fabric.ports["H2"][0]
    while not client.device.has_news:
        due = port.mads.deadline
        assert due is not None
        fabric.now = Moment(due, 0)
        port.mads.expire(fabric.now, 1 << 60)
        fabric.carry()
    assert (client.event().code, fabric.now.time, fabric.losses) == (RESOLVED, 2_000_000_000, 4)
    path = layouts.USER_PATH_REC.unpack(route(client, number).ib_route)
    assert (path.sl, path.mtu, path.rate) == (0, 4, 3)


def test_where_no_subnet_manager_is_known_nobody_is_asked(fabric, administrator, client):
    port = fabric.ports["H2"][0]
    port.learn(SmaAttribute.PORT_INFO, port.info.replace(master_sm_lid=0).pack())
    assert resolved(client, client.create()).code is RESOLVED
    assert administrator.asked == []


def test_who_goes_while_it_is_asked_hears_nothing(fabric, administrator, client):
    carry, fabric.carry = fabric.carry, lambda: None
    number = client.create()
    asking_for_route(client, number)
    client.destroy(number)
    carry()
    assert len(administrator.asked) == 1
    assert not client.device.has_news
