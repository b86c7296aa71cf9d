"""Programs join and leave multicast groups; a Subnet Administrator counts ports, the host counts its programs."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

import pytest

from doors.mads.agents import Agent
from doors.mads.mad_layer import Moment
from doors.mads.user_mad import Address, Registration
from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand, CmEventCode, JoinFlag
from doors.rdma_cm.socket_address import Endpoint
from doors.uverbs.layouts import AH_ATTR
from sm.partition_groups import broadcast_mgid
from tests.doors.cm_connections import INIT, attributes, refused
from tests.doors.cm_programs import RESPONSE, CmFabric, Event, Program, address
from wire.codes import QP_GSI
from wire.ip_cm import PortSpace
from wire.mad import MgmtClass, pack_data
from wire.mc_member_record import MC_MEMBER_RECORD, JoinState
from wire.port_info import PORT_INFO
from wire.sa import SA_CLASS_VERSION, SA_HEADER_BYTES, SA_MAD, SA_RESPONSES, SaMethod, SaStatus, components
from wire.sma import SmaAttribute

JOIN, ERROR = CmEventCode.MULTICAST_JOIN, CmEventCode.MULTICAST_ERROR
GROUP = Endpoint(IPv4Address("239.1.2.3")).pack()
OTHER = Endpoint(IPv4Address("239.1.2.4")).pack()
UDP_MGID = int(IPv6Address("ff12:4001:ffff::f01:203"))
BROADCAST = broadcast_mgid()
FULL, SEND_ONLY = JoinState.FULL, JoinState.SEND_ONLY_FULL
OF_ALL = {"mgid", "port_gid", "join_state", "p_key", "q_key", "sl", "flow_label", "t_class"}
OF_IPOIB = OF_ALL | {"mtu_selector", "mtu", "rate_selector", "rate", "hop_limit"}


class Administrator:
    """At H1: gives each MGID the LID that is next, and answers all with what is asked for.

    Attributes:
        asked: method, MGID and JoinState of each request but those about broadcast groups.
        names: components of the last one.
        refuses: whether it says no to a request.
    """

    def __init__(self, fabric: CmFabric) -> None:
        self.fabric = fabric
        self.port = fabric.ports["H1"][0]
        methods = sum(1 << method for method in SA_RESPONSES)
        self.port.mads.register(self, Registration(QP_GSI, MgmtClass.SUBN_ADM, SA_CLASS_VERSION, methods))
        self.mlids: dict[int, int] = {}
        self.asked: list[tuple[SaMethod, int, int]] = []
        self.names: set[str | None] = set()
        self.refuses: Callable[[SaMethod], bool] = lambda method: False

    def arrived(self, agent: Agent, source: Address, mad: bytes) -> None:
        head, record = SA_MAD.unpack(mad), MC_MEMBER_RECORD.unpack(mad, SA_HEADER_BYTES)
        method = SaMethod(head.method)
        names = {name for bit, name in enumerate(components(MC_MEMBER_RECORD)) if head.component_mask >> bit & 1}
        if method is SaMethod.GET:
            assert names == {"mgid"}
            known = {"q_key": 0xB1B, "p_key": 0xFFFF, "mtu": 4, "rate": 3, "sl": 5, "mlid": 0xC000, "hop_limit": 2}
            record = MC_MEMBER_RECORD.record(known, mgid=record.mgid, flow_label=7, t_class=6)
        else:
            self.asked.append((method, record.mgid, record.join_state))
            self.names = names
            mgid = record.mgid or int(IPv6Address(f"ff12:a01b:fe80::{len(self.asked)}"))
            record = record.replace(mgid=mgid, mlid=self.mlids.setdefault(mgid, 0xC001 + len(self.mlids)))
        status = SaStatus.REQ_INVALID if self.refuses(method) else 0
        answer = head.replace(method=SA_RESPONSES[method], status=status, data=pack_data(SA_MAD, record.pack()))
        self.port.mads.send(agent, source, answer.pack(), 0, 0, self.fabric.now)

    def unanswered(self, agent: Agent, source: Address, mad: bytes) -> None:
        raise AssertionError("it asks nothing")


@pytest.fixture
def administrator(fabric) -> Administrator:
    return Administrator(fabric)


def bound(program: Program, space: PortSpace = PortSpace.UDP) -> int:
    number = program.create(space, 4)
    program.bind(number, address(2))
    return number


def join(program: Program, number: int, group: bytes = GROUP, flag: int = JoinFlag.FULL_MEMBER, user: int = 7) -> int:
    size = {2: 16, 10: 28, 27: 48}[int.from_bytes(group[:2], "little")]
    body = layouts.JOIN_MCAST.pack(response=RESPONSE, uid=user, id=number, addr=group, addr_size=size, join_flags=flag)
    return layouts.CREATE_ID_RESP.unpack(program.command(CmCommand.JOIN_MCAST, body, 4)).id


def leave(program: Program, group: int) -> int:
    """How many events of it there were."""
    back = program.command(CmCommand.LEAVE_MCAST, layouts.DESTROY_ID.pack(response=RESPONSE, id=group), 4)
    return layouts.EVENTS_RESP.unpack(back).events_reported


def reconfigure(fabric: CmFabric, **values: int) -> None:
    """Another PortInfo of H2's port, of which it hears."""
    port = fabric.ports["H2"][0]
    port.known[SmaAttribute.PORT_INFO] = PORT_INFO.unpack(port.known[SmaAttribute.PORT_INFO]).replace(**values).pack()
    fabric.hosts.changed(port)
    fabric.carry()


def joined(program: Program) -> Event:
    told = program.event()
    assert (told.code, told.status) == (JOIN, 0)
    return told


def test_who_joins_is_told_how_packets_get_to_the_group(administrator, client):
    number = bound(client)
    group = join(client, number)
    told = joined(client)
    found = told.datagrams
    way = AH_ATTR.unpack(found.ah_attr)
    assert (told.id, told.user, found.qp_num, found.qkey) == (group, 7, 0xFF_FFFF, 0x0123_4567)
    assert (way.dlid, way.sl, way.static_rate, way.is_global, way.port_num) == (0xC001, 5, 3, 1, 1)
    assert int.from_bytes(way.dgid, "big") == UDP_MGID
    assert (way.flow_label, way.hop_limit, way.traffic_class) == (7, 2, 6)
    assert administrator.asked == [(SaMethod.SET, UDP_MGID, FULL)]
    assert administrator.names == OF_ALL
    assert leave(client, group) == 1
    assert administrator.asked[1:] == [(SaMethod.DELETE, UDP_MGID, FULL)]
    assert administrator.names == {"mgid", "port_gid", "join_state"}
    assert client.destroy(number) == 1


def test_the_older_command_joins_too(administrator, client):
    body = layouts.JOIN_IP_MCAST.pack(response=RESPONSE, uid=9, addr=GROUP, id=bound(client))
    group = layouts.CREATE_ID_RESP.unpack(client.command(CmCommand.JOIN_IP_MCAST, body, 4)).id
    assert (joined(client).id, administrator.asked) == (group, [(SaMethod.SET, UDP_MGID, FULL)])


def test_a_group_of_ipoib_is_as_its_broadcast_group(administrator, client):
    number = client.create(PortSpace.IPOIB)
    client.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=GROUP, id=number))
    assert client.event().code is CmEventCode.ADDR_RESOLVED
    assert attributes(client, number, INIT).qkey == 0xB1B
    join(client, number)
    assert joined(client).datagrams.qkey == 0xB1B
    assert (administrator.asked[0][1], administrator.names) == (UDP_MGID | 0x1B << 96, OF_IPOIB)


def test_without_a_broadcast_group_there_is_no_ipoib(administrator, client):
    administrator.refuses = lambda method: method is SaMethod.GET
    number = client.create(PortSpace.IPOIB)
    client.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=GROUP, id=number))
    told = client.event()
    assert (told.code, told.status) == (CmEventCode.ADDR_ERROR, -errno.EADDRNOTAVAIL)


def test_a_group_is_resolved_at_once_but_no_route_leads_to_it(client):
    number = client.create(PortSpace.UDP)
    client.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=GROUP, id=number))
    client.command(CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=number))
    assert client.events() == [CmEventCode.ADDR_RESOLVED, CmEventCode.ROUTE_ERROR]


def test_a_program_joins_a_group_by_its_mgid_or_one_that_is_chosen_for_it(administrator, client):
    mgid = 0xFF12 << 112 | 0x1234
    by_mgid = struct.pack("=HHI16sQQQ", 27, 0, 0, mgid.to_bytes(16, "big"), 0, 0, 0)
    number = bound(client)
    join(client, number, by_mgid)
    assert int.from_bytes(AH_ATTR.unpack(joined(client).datagrams.ah_attr).dgid, "big") == mgid
    any_group = Endpoint(IPv4Address(0)).pack()
    chosen = [join(client, number, any_group) for _ in range(2)]
    gids = {AH_ATTR.unpack(joined(client).datagrams.ah_attr).dgid for _ in chosen}
    assert len(gids) == 2
    assert leave(client, chosen[0]) == 1
    assert administrator.asked[-1][:2] in [(SaMethod.DELETE, int.from_bytes(gid, "big")) for gid in gids]


def test_the_administrator_hears_of_the_first_and_the_last_of_a_hosts_programs(fabric, administrator, client):
    other = Program(fabric, 2)
    ids = [(program, bound(program)) for program in (client, client, other)]
    for program, number in ids:
        join(program, number)
        joined(program)
    assert len(administrator.asked) == 1
    client.destroy(ids[0][1])
    client.destroy(ids[1][1])
    assert len(administrator.asked) == 1
    other.device.close()
    fabric.carry()
    assert administrator.asked[1:] == [(SaMethod.DELETE, UDP_MGID, FULL)]
    join(client, bound(client))
    joined(client)
    assert len(administrator.asked) == 3


def test_who_only_sends_is_counted_by_itself(administrator, client):
    sender, member = bound(client), bound(client)
    join(client, sender, flag=JoinFlag.SEND_ONLY_FULL_MEMBER)
    join(client, member)
    assert client.events() == [JOIN, JOIN]
    client.destroy(sender)
    client.destroy(member)
    assert administrator.asked == [
        (method, UDP_MGID, state) for method in (SaMethod.SET, SaMethod.DELETE) for state in (SEND_ONLY, FULL)
    ]


@pytest.mark.parametrize(
    ("method", "error"), [(SaMethod.GET, errno.EADDRNOTAVAIL), (SaMethod.SET, errno.EINVAL)], ids=["broadcast", "join"]
)
def test_who_may_not_join_is_told(administrator, client, method, error):
    administrator.refuses = lambda asked: asked is method
    number = bound(client)
    group = join(client, number)
    told = client.event()
    assert (told.code, told.status, told.id, told.user) == (ERROR, -error, group, 7)
    assert (leave(client, group), client.destroy(number)) == (1, 1)
    assert SaMethod.DELETE not in [asked for asked, *_what in administrator.asked]


def test_without_an_administrator_nobody_joins(fabric, client):
    fabric.lose = lambda mad: mad[1] == MgmtClass.SUBN_ADM
    number = bound(client)
    join(client, number)
    port = fabric.ports["H2"][0]
    while not client.device.has_news:
        due = port.mads.deadline
        assert due is not None
        fabric.now = Moment(due, 0)
        port.mads.expire(fabric.now, 1 << 60)
        fabric.carry()
    assert (client.event().code, fabric.now.time) == (ERROR, 12_000_000_000)
    reconfigure(fabric, master_sm_lid=0)
    join(client, number)
    assert client.event().status == -errno.EADDRNOTAVAIL


def test_who_leaves_while_it_joins_is_no_member(fabric, administrator, client):
    number = bound(client)
    carry, fabric.carry = fabric.carry, lambda: None
    early = join(client, number)
    assert leave(client, early) == 0
    carry()
    assert administrator.asked == []
    late = join(client, number)
    # What is known of the broadcast group is there, the group's own answer is not.
    while not administrator.asked:
        step(fabric)
    assert leave(client, late) == 0
    carry()
    assert [method for method, *_what in administrator.asked] == [SaMethod.SET, SaMethod.DELETE]
    assert not client.device.has_news


def step(fabric: CmFabric) -> None:
    """Carries the MADs that there are, and no answers to them."""
    ports = [port for ports in fabric.ports.values() for port in ports]
    posts = [(port, one) for port in ports for one in port.mads.outbox]
    for port in ports:
        port.mads.outbox = []
    for port, one in posts:
        reached = next(other for other in ports if other.has_lid(one.address.lid))
        reached.mads.received(Address(port.info.lid, QP_GSI), one.mad, fabric.now)


@pytest.mark.parametrize("change", [{"port_state": 2}, {"lid": 9}, {"client_reregister": 1}])
def test_a_port_that_is_new_to_the_subnet_is_in_no_group(fabric, administrator, client, change):
    number = bound(client)
    group = join(client, number)
    joined(client)
    reconfigure(fabric, subnet_timeout=17)
    assert not client.device.has_news
    reconfigure(fabric, **change)
    told = client.event()
    assert (told.code, told.status, told.id) == (ERROR, -errno.ENETRESET, group)
    assert leave(client, group) == 2
    assert [method for method, *_what in administrator.asked] == [SaMethod.SET]


def test_a_group_that_two_programs_want_different_is_the_firsts(administrator, client):
    by_mgid = struct.pack("=HHI16sQQQ", 27, 0, 0, (0xFF12 << 112 | 5).to_bytes(16, "big"), 0, 0, 0)
    join(client, bound(client), by_mgid)
    joined(client)
    join(client, bound(client, PortSpace.IPOIB), by_mgid)
    told = client.event()
    assert (told.code, told.status, len(administrator.asked)) == (ERROR, -errno.EINVAL, 1)


def test_what_cannot_be_joined_or_left_is_refused(fabric, administrator, client):
    with refused(errno.EINVAL):
        join(client, client.create(PortSpace.UDP))
    stream = client.create()
    client.bind(stream, address(2))
    with refused(errno.EINVAL):
        join(client, stream)
    number = bound(client)
    for wrong in ({"join_flags": 2}, {"addr_size": 28}, {"addr": bytes(16)}):
        body = {"response": RESPONSE, "id": number, "addr": GROUP, "addr_size": 16, "join_flags": 0, **wrong}
        with refused(errno.EINVAL):
            client.command(CmCommand.JOIN_MCAST, layouts.JOIN_MCAST.pack(**body), 4)
    assert administrator.asked == []
    with refused(errno.ENOENT):
        leave(client, 99)
    group = join(client, number, OTHER)
    with refused(errno.EINVAL):
        leave(Program(fabric, 2), group)
    assert leave(client, group) == 0
    with refused(errno.ENOENT):
        leave(client, group)


def test_librdmacm_finds_that_it_may_use_the_newer_commands(client):
    number = client.create(PortSpace.IB)
    of_all = struct.pack("=HHI16s8sQQ", 27, 0, 0, bytes(16), (0x0106 << 16 | 77).to_bytes(8, "big"), 0, 0)
    client.command(CmCommand.BIND, layouts.BIND.pack(id=number, addr_size=48, addr=of_all))
    one = of_all[:8] + bytes(15) + b"\1" + of_all[24:]
    with refused(errno.EAFNOSUPPORT):
        client.command(CmCommand.BIND, layouts.BIND.pack(id=client.create(PortSpace.IB), addr_size=48, addr=one))
