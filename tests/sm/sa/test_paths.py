"""PathRecords: between which ports, by which LIDs, and what passes on the way."""

import pytest

from sm.partitions import DEFAULT_PARTITION, EndPorts, Membership, Partitions
from sm.routing.lash import lash
from sm.settings import SubnetSettings
from sm.subnet import Speed
from tests.sm.managed import Managed
from tests.sm.sa_client import Answer, SaClient
from tests.sm.subnets import HOST_GUID, fat_tree, parallel_pair, ring, star
from wire.codes import MTU, LinkWidth, operational_vls
from wire.mad import MadStatus
from wire.path_record import EXACTLY, GREATER, LARGEST, LESS
from wire.sa import SaAttribute, SaMethod, SaStatus

GET, TABLE, PATH = SaMethod.GET, SaMethod.GET_TABLE, SaAttribute.PATH_RECORD
MBPS_2500, MBPS_10000, MBPS_20000 = 2, 3, 6


@pytest.fixture(scope="module")
def client() -> SaClient:
    """At LID 3; hosts have LIDs 1 and 3, their switch 2, all MTUs are 2048 bytes."""
    return SaClient(Managed(star()).bring_up(), 3)


def gid(client: SaClient, lid: int) -> int:
    (record,) = client.ask(GET, SaAttribute.NODE_RECORD, endport_lid=lid).records
    return 0xFE80 << 112 | record.port_guid


def path(client: SaClient, **more: int) -> Answer:
    return client.ask(TABLE, PATH, slid=3, dlid=1, **more)


def test_a_path_by_gids_tells_the_lids(client):
    (found,) = client.ask(GET, PATH, sgid=gid(client, 3), dgid=gid(client, 1), numb_path=1, reversible=1).records
    assert (found.slid, found.dlid, found.p_key, found.sl, found.reversible) == (3, 1, 0xFFFF, 0, 1)
    assert (found.mtu, found.rate) == (MTU.MTU_2048, MBPS_10000)
    assert found.packet_life_time == SubnetSettings().subnet_timeout


def test_a_path_by_lids_tells_the_gids(client):
    (found,) = path(client).records
    assert (found.sgid, found.dgid) == (gid(client, 3), gid(client, 1))


def test_without_ends_all_paths_are_told_also_of_ports_to_themselves(client):
    found = client.ask(TABLE, PATH).records
    assert {(one.slid, one.dlid) for one in found} == {(a, b) for a in (1, 2, 3) for b in (1, 2, 3)}
    assert [one.packet_life_time for one in found if one.slid == one.dlid] == [0, 0, 0]


def test_a_gid_of_nobody_is_invalid_and_a_lid_of_nobody_has_no_path(client):
    assert client.ask(GET, PATH, sgid=gid(client, 3), dgid=5).status == SaStatus.REQ_INVALID_GID
    assert client.ask(GET, PATH, slid=3, dlid=9).status == SaStatus.NO_RECORDS
    assert client.ask(TABLE, PATH, slid=3, dlid=9).status == MadStatus.OK


@pytest.mark.parametrize(
    ("selector", "mtu", "told"),
    [
        (GREATER, MTU.MTU_1024, MTU.MTU_2048),
        (GREATER, MTU.MTU_2048, None),
        (LESS, MTU.MTU_2048, MTU.MTU_1024),
        (LESS, MTU.MTU_4096, MTU.MTU_2048),
        (LESS, MTU.MTU_256, None),
        (EXACTLY, MTU.MTU_1024, MTU.MTU_1024),
        (EXACTLY, MTU.MTU_4096, None),
        (LARGEST, MTU.MTU_256, MTU.MTU_2048),
    ],
)
def test_an_mtu_may_be_asked_for(client, selector, mtu, told):
    found = path(client, mtu_selector=selector, mtu=mtu).records
    assert [one.mtu for one in found] == ([] if told is None else [told])


def test_a_rate_is_compared_by_what_it_is_not_by_its_code(client):
    five = 5  # Gbit/s, and its code
    assert [one.rate for one in path(client, rate_selector=GREATER, rate=five).records] == [MBPS_10000]
    assert path(client, rate_selector=EXACTLY, rate=MBPS_20000).records == []


def test_the_other_partition_has_no_paths(client):
    assert path(client, p_key=0x7FFF).records
    assert path(client, p_key=0x8001).records == []


A, B = 5, 6


@pytest.fixture(scope="module")
def parted() -> Managed:
    """Hosts with LIDs 1, 3 and 4, of which 4 is a limited member of the default partition, like the switch, and of A,
    and the others of A in full; 3 is not in the default partition, and 1 and 4 are limited members of B."""
    memberships = [Membership(DEFAULT_PARTITION, who, who == HOST_GUID + 1) for who in (HOST_GUID + 1, HOST_GUID + 9)]
    memberships += [Membership(DEFAULT_PARTITION, EndPorts.ALL_SWITCHES, False)]
    memberships += [Membership(A, HOST_GUID + 4 * host + 1, host < 2) for host in range(3)]
    memberships += [Membership(B, HOST_GUID + guid, False) for guid in (1, 9)]
    return Managed(star(3), SubnetSettings(partitions=Partitions(tuple(memberships)))).bring_up()


def p_keys(parted: Managed, asker: int, **query: int) -> dict[tuple[int, int], int]:
    """P_Keys of paths by their LIDs."""
    found = SaClient(parted, asker).ask(TABLE, PATH, **query).records
    return {(one.slid, one.dlid): one.p_key for one in found}


def test_a_path_has_a_p_key_of_its_source_by_which_the_destination_hears_it(parted):
    of_all = p_keys(parted, 1)
    assert of_all[1, 3] == of_all[3, 1] == of_all[3, 4] == 0x8000 | A
    assert of_all[4, 1] == of_all[4, 3] == A, "both are in A, and it comes before the default partition"
    assert (of_all[1, 2], of_all[2, 1]) == (0xFFFF, 0x7FFF)
    assert of_all[1, 1] == 0x8000 | A


def test_a_path_has_the_sl_of_its_partition_or_the_one_that_was_asked_for():
    memberships = tuple(Membership(partition, EndPorts.ALL, True) for partition in (A, B))
    partitions = Partitions(memberships, service_levels={A: 3})
    client = SaClient(Managed(star(), SubnetSettings(partitions=partitions)).bring_up(), 3)
    assert [one.sl for one in path(client).records] == [3]
    assert [one.sl for one in path(client, p_key=B).records] == [0]
    assert [one.sl for one in path(client, sl=7).records] == [7], "as OpenSM has it"


def test_between_limited_members_and_between_strangers_there_is_no_path(parted):
    of_all = p_keys(parted, 1)
    assert not {(2, 4), (4, 2), (2, 3), (3, 2), (4, 4), (2, 2)} & of_all.keys()
    assert p_keys(parted, 1, p_key=B) == {}


def test_a_path_of_a_p_key_that_was_asked_for_has_it_as_it_was_asked_for(parted):
    assert p_keys(parted, 1, p_key=0xFFFF, slid=4) == {(4, 1): 0xFFFF}
    assert p_keys(parted, 1, p_key=0x7FFF, dlid=1) == {(1, 1): 0x7FFF, (2, 1): 0x7FFF, (4, 1): 0x7FFF}
    assert p_keys(parted, 1, p_key=7) == {}


def test_who_shares_no_partition_with_a_port_hears_nothing_of_its_paths(parted):
    assert {lid for path in p_keys(parted, 3) for lid in path} == {1, 3, 4}
    assert p_keys(parted, 3, slid=1, dlid=2) == {}
    assert p_keys(parted, 2) == {(1, 1): 0x8000 | A, (1, 2): 0xFFFF, (2, 1): 0x7FFF}


def test_the_narrowest_and_smallest_of_a_way_counts():
    subnet = star()
    near = next(end for link in subnet.links for end in (link.a, link.b) if end.port == 2)
    far = subnet.peer(near)
    subnet.disconnect(near)
    subnet.connect(near, far, LinkWidth.X1, Speed.SDR)
    up = Managed(subnet)
    up.fabric.nodes[far.guid].change(1, mtu_cap=MTU.MTU_512)
    client = SaClient(up.bring_up(), 3)
    (found,) = path(client).records
    assert (found.rate, found.mtu) == (MBPS_2500, MTU.MTU_512)


def test_as_many_paths_as_lids_or_as_are_asked_for():
    client = SaClient(Managed(parallel_pair(), SubnetSettings(lmc=1)).bring_up(), 2)
    nodes = client.ask(TABLE, SaAttribute.NODE_RECORD, node_type=1).records
    ends = {"sgid": 0xFE80 << 112 | nodes[0].port_guid, "dgid": 0xFE80 << 112 | nodes[-1].port_guid}
    found = client.ask(TABLE, PATH, **ends).records
    assert [(one.slid, one.dlid) for one in found] == [
        (nodes[0].endport_lid + i, nodes[-1].endport_lid + i) for i in range(2)
    ]
    assert len(client.ask(TABLE, PATH, numb_path=1, **ends).records) == 1


def test_where_no_packet_arrives_there_is_no_path():
    up = Managed(star()).bring_up()
    client = SaClient(up, 3)
    before = len(client.ask(TABLE, PATH).records)
    up.fabric.cut(next(end for link in up.subnet.links for end in (link.a, link.b) if end.port == 2))
    up.until_quiet()
    assert len(client.ask(TABLE, PATH).records) < before


def test_the_paths_of_a_fat_tree_come_in_many_segments():
    up = Managed(fat_tree(4, 2, 4)).bring_up()
    client = SaClient(up, 1)
    found = client.ask(TABLE, PATH).records
    ends = len(up.manager.lids)
    assert len(found) == len({(one.slid, one.dlid) for one in found}) == ends * ends
    assert all(one.reversible for one in found)
    assert client.segments == -(-64 * ends * ends // 200)


def test_where_layers_keep_circles_apart_a_path_has_its_sl_and_no_other():
    partitions = Partitions((Membership(A, EndPorts.ALL, True),), service_levels={A: 3})
    settings = SubnetSettings(routing=lash, partitions=partitions)
    up = Managed(ring(5), settings, vls=operational_vls(2)).bring_up()
    client = SaClient(up, 1)
    found = client.ask(TABLE, PATH).records
    assert {one.sl for one in found} == {0, 1}
    assert all(one.sl == up.manager.routes.service_level(one.slid, one.dlid) for one in found)
    assert {one.sl for one in client.ask(TABLE, PATH, sl=1).records} == {1}
    assert client.ask(TABLE, PATH, sl=3).records == [], "nor that of its partition"
