"""MCMemberRecords: who may join, create and leave groups, what is refused and why, and who is told of whom."""

from __future__ import annotations

import pytest

from sm.partitions import DEFAULT_PARTITION, EndPorts, Membership, Partitions
from sm.settings import SubnetSettings
from tests.sm.managed import Managed
from tests.sm.multicast.members import BROADCAST, CREATE, GROUP, RECORD, client, gid_of, host_guids, join, leave
from tests.sm.sa_client import SaClient
from tests.sm.subnets import HOST_GUID, star
from wire.codes import LID_PERMISSIVE, MTU
from wire.layout import Record
from wire.mad import MadStatus
from wire.mc_member_record import MGID, JoinState, MgidSignature, MulticastScope
from wire.notice import TrapNumber, details_of
from wire.path_record import EXACTLY, GREATER, LARGEST, LESS
from wire.sa import SaAttribute, SaMethod, SaStatus

INVALID, INSUFFICIENT = SaStatus.REQ_INVALID, SaStatus.REQ_INSUFFICIENT_COMPONENTS
PATH = SaAttribute.PATH_RECORD
RATE_10, RATE_2_5 = 3, 2
A = 5


def brought_up(hosts: int = 4, **fabric: int) -> Managed:
    return Managed(star(hosts), mft_cap=32, **fabric).bring_up()


@pytest.fixture
def up() -> Managed:
    return brought_up()


@pytest.fixture
def hosts(up: Managed) -> list[int]:
    return host_guids(up)


@pytest.fixture
def parted() -> Managed:
    """The second host and, with less right, the third are members of A."""
    memberships = (
        Membership(DEFAULT_PARTITION, EndPorts.ALL, True),
        Membership(A, HOST_GUID + 5, True),
        Membership(A, HOST_GUID + 9, False),
    )
    return Managed(star(4), SubnetSettings(partitions=Partitions(memberships)), mft_cap=32).bring_up()


def test_without_partitions_there_is_the_broadcast_group_of_ipoib_from_the_start(up):
    (group,) = SaClient(up, 1).ask(SaMethod.GET_TABLE, RECORD).records
    assert group.mgid == 0xFF12_401B_FFFF_0000_0000_0000_FFFF_FFFF == BROADCAST
    assert (group.mlid, group.q_key, group.p_key, group.sl, group.t_class) == (0xC000, 0xB1B, 0xFFFF, 0, 0)
    assert (group.mtu_selector, group.mtu, group.rate_selector, group.rate) == (EXACTLY, 4, EXACTLY, RATE_10)
    assert (group.packet_life_time_selector, group.scope, group.hop_limit) == (EXACTLY, MulticastScope.LINK_LOCAL, 0)


def test_who_joins_is_told_what_the_group_is_like(up, hosts):
    (record,) = join(up, hosts[1], BROADCAST).records
    assert (record.mlid, record.q_key, record.mtu, record.rate) == (0xC000, 0xB1B, 4, RATE_10)
    assert (record.port_gid, record.join_state) == (gid_of(hosts[1]), JoinState.FULL)
    assert join(up, hosts[1], BROADCAST, JoinState.SEND_ONLY_NON).records[0].join_state == 5


def test_a_group_is_created_with_what_is_asked_and_what_its_port_can(up, hosts):
    (record,) = join(up, hosts[0], q_key=9, t_class=3, flow_label=0x12345, sl=2, hop_limit=4).records
    assert (record.mlid, record.q_key, record.t_class, record.flow_label, record.sl) == (0xC001, 9, 3, 0x12345, 2)
    assert (record.mtu, record.rate, record.hop_limit) == (MTU.MTU_2048, RATE_10, 4)
    assert join(up, hosts[1], q_key=9, sl=2).status == INVALID, "its TClass is another"


def test_a_wanted_mlid_is_given_where_it_is_free(up, hosts):
    assert join(up, hosts[0], mlid=0xC010).records[0].mlid == 0xC010
    assert join(up, hosts[0], GROUP + 1, **CREATE, mlid=0xC010).records[0].mlid == 0xC001
    assert join(up, hosts[0], GROUP + 2, **CREATE, mlid=0xC020).records[0].mlid == 0xC002, (
        "beyond the table of a switch"
    )


@pytest.mark.parametrize(
    ("selector", "mtu", "got"),
    [
        *[(EXACTLY, 3, 3), (GREATER, 2, 4), (LESS, 3, 2), (LARGEST, 1, 4), (LESS, 5, 4)],
        *[(EXACTLY, 5, None), (GREATER, 4, None), (LESS, 1, None), (EXACTLY, 6, None), (EXACTLY, 0, None)],
    ],
)
def test_the_mtu_of_a_new_group_is_what_is_selected_and_the_port_has(up, hosts, selector, mtu, got):
    answer = join(up, hosts[0], mtu_selector=selector, mtu=mtu)
    assert [record.mtu for record in answer.records] == ([] if got is None else [got])
    assert answer.status == (INVALID if got is None else MadStatus.OK)


@pytest.mark.parametrize(
    ("selector", "rate", "is_joined"),
    [
        *[(EXACTLY, RATE_10, True), (GREATER, RATE_2_5, True), (LESS, 6, True), (LARGEST, RATE_2_5, True)],
        *[(EXACTLY, RATE_2_5, False), (GREATER, RATE_10, False), (LESS, RATE_10, False), (EXACTLY, 63, False)],
    ],
)
def test_who_joins_may_select_of_what_rate_the_group_is(up, hosts, selector, rate, is_joined):
    assert (join(up, hosts[0], BROADCAST, rate_selector=selector, rate=rate).status == MadStatus.OK) == is_joined


def test_a_port_that_cannot_keep_up_with_a_group_does_not_join_it():
    up = brought_up(mtu=MTU.MTU_1024)
    hosts = host_guids(up)
    assert join(up, hosts[0], BROADCAST).status == INVALID
    assert join(up, hosts[0]).records[0].mtu == MTU.MTU_1024


REFUSED = {
    "no PortGID": ({"port_gid": None}, INSUFFICIENT),
    "no JoinState": ({"join_state": None}, INSUFFICIENT),
    "no MGID": ({"mgid": None}, INSUFFICIENT),
    **{f"created without {name}": ({name: None}, INSUFFICIENT) for name in CREATE},
    "a JoinState of nothing": ({"join_state": 0}, INVALID),
    "created by no full member": ({"join_state": JoinState.NON}, INVALID),
    "a PortGID of nobody": ({"port_gid": gid_of(0x77)}, INVALID),
    "a PortGID of another subnet": ({"port_gid": 1 << 112 | HOST_GUID + 1}, SaStatus.REQ_INVALID_GID),
    "a PortGID of another port": ({"port_gid": gid_of(HOST_GUID + 5)}, INVALID),
    "a P_Key of no partition": ({"p_key": 0x8000}, INVALID),
    "a P_Key that the port does not have": ({"p_key": 0x8005}, INVALID),
    "a unicast GID": ({"mgid": 0xFE12 << 112 | 1}, INVALID),
    "an MGID with reserved flags": ({"mgid": 0xFF22 << 112 | 1}, INVALID),
    "an MGID that is for the administrator to give out": ({"mgid": 0xFF12_A01B << 96 | 1}, INVALID),
    "a scope that is not the MGID's": ({"scope": MulticastScope.GLOBAL}, INVALID),
    "a group of IPoIB before that of its broadcasts": ({"mgid": 0xFF15_401B_FFFF << 80 | 1}, INVALID),
    "a group of IPoIB unlike that of its broadcasts": ({"mgid": 0xFF12_401B_FFFF << 80 | 1}, INVALID),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_not_to_be_is_refused_with_its_reason(up, hosts, why):
    values, status = REFUSED[why]
    asked = {"mgid": GROUP, "port_gid": gid_of(hosts[0]), "join_state": 1} | CREATE | values
    asked = {name: value for name, value in asked.items() if value is not None}
    before = list(up.manager.groups.by_mgid)
    assert client(up, hosts[0]).ask(SaMethod.SET, RECORD, **asked).status == status
    assert list(up.manager.groups.by_mgid) == before


def test_groups_of_ipoib_are_created_like_the_one_of_their_broadcasts(up, hosts):
    assert not join(up, hosts[0], 0xFF12_401B_FFFF << 80 | 1, **CREATE | {"q_key": 0xB1B}).status
    assert not join(up, hosts[0], 0xFF12_601B_FFFF << 80 | 1, **CREATE | {"q_key": 0xB1B}).status
    assert not join(up, hosts[0], 0xFF15_401B_FFFF_0000_0000_0000_FFFF_FFFF, **CREATE).status


def test_who_asks_for_no_mgid_in_particular_is_given_one(up, hosts):
    for number in range(2):
        (record,) = join(up, hosts[0], 0, **CREATE, scope=MulticastScope.SITE_LOCAL).records
        mgid = MGID.from_int(record.mgid)
        assert (mgid.prefix, mgid.flags, mgid.scope, mgid.signature) == (0xFF, 1, 5, MgidSignature.ADMINISTRATOR)
        assert record.mgid >> 32 & (1 << 64) - 1 == 0xFE80 << 48
        assert len(up.manager.groups.by_mgid) == 2 + number


def test_a_member_leaves_as_what_it_is(up, hosts):
    join(up, hosts[0], state=JoinState.FULL | JoinState.NON)
    join(up, hosts[1])
    assert leave(up, hosts[0], state=JoinState.SEND_ONLY_NON).status == INVALID
    assert leave(up, hosts[0], state=JoinState.FULL | JoinState.SEND_ONLY_FULL).status == INVALID
    assert leave(up, hosts[0], state=0).status == INVALID
    assert leave(up, hosts[2]).status == INVALID
    assert leave(up, hosts[0], GROUP + 1).status == INVALID
    assert client(up, hosts[0]).ask(SaMethod.DELETE, RECORD, mgid=GROUP, join_state=1).status == INSUFFICIENT
    assert leave(up, hosts[0]).records[0].join_state == JoinState.NON
    assert leave(up, hosts[0], state=JoinState.NON).records[0].join_state == 0
    assert leave(up, hosts[0], state=JoinState.NON).status == INVALID


def test_nobody_joins_or_leaves_for_another(up, hosts):
    join(up, hosts[0])
    for method in (SaMethod.SET, SaMethod.DELETE):
        asked = {"mgid": GROUP, "port_gid": gid_of(hosts[0]), "join_state": 1, "proxy_join": 1}
        assert client(up, hosts[1]).ask(method, RECORD, **asked).status == INVALID


def test_port_0_of_a_switch_is_in_no_group(up):
    switch = up.subnet.switches[0].end_ports[0].guid
    assert join(up, switch, BROADCAST).status == INVALID


def test_with_its_last_full_member_a_group_ends_and_its_mlid_is_free(up, hosts):
    join(up, hosts[0])
    join(up, hosts[1], state=JoinState.NON)
    leave(up, hosts[0])
    assert GROUP not in up.manager.groups.by_mgid
    assert join(up, hosts[2], GROUP + 1, **CREATE).records[0].mlid == 0xC001
    join(up, hosts[0], BROADCAST)
    leave(up, hosts[0], BROADCAST)
    assert BROADCAST in up.manager.groups.by_mgid, "it is the manager's"


def test_there_are_as_many_groups_as_the_least_table_has_room_for(up, hosts):
    for number in range(31):
        assert not join(up, hosts[0], GROUP + number, **CREATE).status
    assert join(up, hosts[0], GROUP + 31, **CREATE).status == SaStatus.NO_RESOURCES


def table(up: Managed, guid: int, *, sm_key: int = 0, **values: int) -> list[Record]:
    asker = client(up, guid)
    asker.sm_key = sm_key
    return asker.ask(SaMethod.GET_TABLE, RECORD, **values).records


def test_members_are_told_to_who_has_the_sm_key_alone(up, hosts):
    join(up, hosts[0], BROADCAST)
    join(up, hosts[1], BROADCAST, JoinState.NON)
    join(up, hosts[1])
    told = [(one.mlid, one.port_gid, one.join_state) for one in table(up, hosts[3])]
    assert told == [(0xC001, 0, 0), (0xC000, 0, 0)]
    assert [(one.mlid, one.port_gid, one.join_state) for one in table(up, hosts[3], sm_key=1)] == [
        (0xC001, gid_of(hosts[1]), JoinState.FULL),
        (0xC000, gid_of(hosts[0]), JoinState.FULL),
        (0xC000, gid_of(hosts[1]), JoinState.NON),
    ]


def test_groups_are_found_by_what_they_are_like(up, hosts):
    join(up, hosts[0], sl=3)
    join(up, hosts[1], BROADCAST)

    def found(**values: int) -> list[int]:
        return [one.mlid for one in table(up, hosts[3], **values)]

    assert found(mgid=GROUP) == found(sl=3) == found(mlid=0xC001) == found(port_gid=gid_of(hosts[0])) == [0xC001]
    assert found(p_key=0x7FFF) == found(mtu_selector=GREATER, mtu=3) == [0xC001, 0xC000]
    assert found(mtu_selector=LESS, mtu=4) == found(port_gid=gid_of(hosts[2])) == found(scope=5) == []
    assert client(up, hosts[3]).ask(SaMethod.GET, RECORD, mgid=GROUP + 1).status == SaStatus.NO_RECORDS


def test_with_partitions_a_group_is_for_its_members_partition_to_create_join_and_see(parted):
    first, second, third, _fourth = host_guids(parted)
    of_a = {**CREATE, "p_key": 0x8000 | A}
    assert join(parted, first, **of_a).status == INVALID
    assert join(parted, second, **of_a).status == MadStatus.OK
    assert join(parted, third, **of_a | {"p_key": A}).status == MadStatus.OK, "a limited member"
    assert join(parted, first, **of_a).status == INVALID
    assert [len(table(parted, guid)) for guid in (first, second, third)] == [0, 1, 1]
    paths = [client(parted, guid).ask(SaMethod.GET, PATH, dgid=GROUP).status for guid in (first, third)]
    assert paths == [SaStatus.NO_RECORDS, MadStatus.OK]


def test_a_path_to_a_group_is_as_the_group_is(up, hosts):
    join(up, hosts[0], sl=2, t_class=7, flow_label=9, hop_limit=3, mtu_selector=EXACTLY, mtu=3)
    asker = client(up, hosts[1])
    (path,) = asker.ask(SaMethod.GET, PATH, dgid=GROUP, sgid=gid_of(hosts[0])).records
    assert (path.dlid, path.slid) == (0xC001, up.manager.lids[hosts[0]].first)
    assert (path.dgid, path.sgid) == (GROUP, gid_of(hosts[0]))
    assert (path.sl, path.t_class, path.flow_label, path.hop_limit, path.p_key) == (2, 7, 9, 3, 0xFFFF)
    assert (path.mtu_selector, path.mtu, path.rate_selector, path.rate) == (EXACTLY, 3, EXACTLY, RATE_10)
    for unlike in ({"sl": 3}, {"dlid": 0xC000}, {"p_key": 0x7FFF}, {"sgid": gid_of(hosts[1])}, {"slid": 1000}):
        assert asker.ask(SaMethod.GET, PATH, **{"dgid": GROUP} | unlike).status == SaStatus.NO_RECORDS
    assert asker.ask(SaMethod.GET_TABLE, PATH, dgid=GROUP, numb_path=0).records == []
    assert asker.ask(SaMethod.GET, PATH, dgid=GROUP + 1).status == SaStatus.NO_RECORDS


def test_groups_that_come_and_go_are_reported(up, hosts):
    subscriber = client(up, hosts[3])
    any_of = {"lid_range_begin": LID_PERMISSIVE, "is_generic": 1, "notice_type": 0xFFFF, "producer_type": 0xFFFFFF}
    subscriber.ask(SaMethod.SET, SaAttribute.INFORM_INFO, subscribe=1, trap_number=0xFFFF, **any_of)
    hears = up.fabric.on_gmp
    for method in (SaMethod.SET, SaMethod.DELETE):
        for guid in hosts[:2]:
            values = {"mgid": GROUP, "port_gid": gid_of(guid), "join_state": 1} | CREATE
            client(up, guid).request(method, RECORD, **values)
            up.fabric.on_gmp = hears
            up.settle()
    numbers = [report.trap_number for report in subscriber.reports]
    assert numbers == [TrapNumber.GROUP_CREATED, TrapNumber.GROUP_DELETED]
    assert {details_of(report).gid for report in subscriber.reports} == {GROUP}
