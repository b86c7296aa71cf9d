"""What the Subnet Administrator tells of nodes, ports and links, and what of it a ComponentMask means."""

import pytest

from sm.partitions import DEFAULT_PARTITION, EndPorts, Membership, Partitions
from sm.settings import SubnetSettings
from tests.sm.managed import Managed
from tests.sm.sa_client import SaClient
from tests.sm.subnets import HOST_GUID, parallel_pair, star
from wire.codes import LID_PERMISSIVE, PortState
from wire.mad import MadStatus
from wire.node_info import NodeType
from wire.port_info import CapabilityMask
from wire.sa import SA_CLASS_VERSION, SA_MAD, SaAttribute, SaMethod, SaStatus

GET, TABLE = SaMethod.GET, SaMethod.GET_TABLE
P_KEYS = SaAttribute.P_KEY_TABLE_RECORD
NODE, PORT, LINK, SM_INFO = (
    SaAttribute.NODE_RECORD,
    SaAttribute.PORT_INFO_RECORD,
    SaAttribute.LINK_RECORD,
    SaAttribute.SM_INFO_RECORD,
)
ALL_OF = 1 << 31


@pytest.fixture(scope="module")
def client() -> SaClient:
    """At the second of two hosts of a switch of 8 ports: LIDs 1 and 3, the switch has 2."""
    return SaClient(Managed(star()).bring_up(), 3)


def test_each_port_with_a_lid_has_a_node_record(client):
    found = client.ask(TABLE, NODE)
    assert found.method == SaMethod.GET_TABLE_RESP
    assert [(one.endport_lid, one.node_type) for one in found.records] == [
        (1, NodeType.CA),
        (2, NodeType.SWITCH),
        (3, NodeType.CA),
    ]
    assert len({one.port_guid for one in found.records}) == 3


def test_a_mask_chooses_the_records_with_these_values(client):
    found = client.ask(TABLE, NODE, node_type=NodeType.SWITCH, num_ports=8)
    assert [one.endport_lid for one in found.records] == [2]
    assert client.ask(TABLE, NODE, node_type=NodeType.SWITCH, num_ports=7).records == []


def test_get_brings_one_record_and_says_if_there_are_none_or_several(client):
    assert client.ask(GET, NODE, endport_lid=3).records[0].endport_lid == 3
    assert client.ask(GET, NODE, endport_lid=9).status == SaStatus.NO_RECORDS
    assert client.ask(GET, NODE, node_type=NodeType.CA).status == SaStatus.TOO_MANY_RECORDS


def test_a_table_may_be_empty(client):
    found = client.ask(TABLE, NODE, endport_lid=9)
    assert (found.status, found.records) == (MadStatus.OK, [])


def test_ports_of_a_switch_are_told_by_its_lid(client):
    found = client.ask(TABLE, PORT, endport_lid=2)
    assert [one.port_num for one in found.records] == list(range(9))
    assert [one.port_num for one in found.records if one.port_state == PortState.ACTIVE] == [0, 1, 2]
    assert {one.lid for one in found.records} == {2, 0}


def test_capabilities_are_all_of_the_mask_or_at_least_those_of_it():
    up = Managed(star()).bring_up()
    both = CapabilityMask.IS_SM | CapabilityMask.IS_TRAP_SUPPORTED
    up.manager.found.ports[up.origin] = up.manager.found.ports[up.origin].replace(capability_mask=both)
    client = SaClient(up, 3)
    at_least = client.ask(TABLE, PORT, ALL_OF, capability_mask=CapabilityMask.IS_SM)
    assert [one.endport_lid for one in at_least.records] == [1]
    assert client.ask(TABLE, PORT, capability_mask=CapabilityMask.IS_SM).records == []


def test_a_description_that_is_no_text_is_told_as_far_as_it_fits():
    up = Managed(star()).bring_up()
    up.manager.subnet.nodes[up.origin.guid].description = "\N{REPLACEMENT CHARACTER}" * 64
    (record,) = SaClient(up, 3).ask(GET, NODE, endport_lid=1).records
    assert record.node_string.to_bytes(64, "big").startswith("\N{REPLACEMENT CHARACTER}".encode())


def test_a_link_has_a_record_from_either_end():
    client = SaClient(Managed(parallel_pair(hosts=1)).bring_up(), 1)
    found = client.ask(TABLE, LINK).records
    assert len(found) == 2 * 4
    turned = {(one.to_lid, one.to_port, one.from_lid, one.from_port) for one in found}
    assert turned == {(one.from_lid, one.from_port, one.to_lid, one.to_port) for one in found}


def test_any_lid_of_a_port_stands_for_the_port():
    client = SaClient(Managed(star(), SubnetSettings(lmc=2)).bring_up(), 8)
    (record,) = client.ask(TABLE, NODE, endport_lid=6).records
    assert record.endport_lid == 4
    assert [one.from_lid for one in client.ask(TABLE, LINK, from_lid=6).records] == [4]


def test_the_subnet_manager_tells_of_itself(client):
    (record,) = client.ask(TABLE, SM_INFO).records
    assert (record.endport_lid, record.sm_state) == (1, 3)


def test_class_port_info_is_of_the_second_version(client):
    (info,) = client.ask(GET, SaAttribute.CLASS_PORT_INFO).records
    assert info.class_version == SA_CLASS_VERSION
    assert info.capability_mask == 1 << 9 | 1 << 13, "multicast groups, and CapabilityMasks matched"
    assert info.capability_mask2 == 1 << 3 | 1 << 12, "MulticastFDBTop, and members that only send"


@pytest.mark.parametrize(("method", "attribute"), [(SaMethod.SET, NODE), (SaMethod.DELETE, LINK), (GET, 0x39)])
def test_what_there_is_not_is_refused(client, method, attribute):
    mad = SA_MAD.record(method=method, attribute_id=attribute, transaction_id=99)
    client.send(mad)
    client.managed.fabric.run(lambda: client.message is not None)
    assert SA_MAD.unpack(client.message).status == MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED


def test_before_the_first_sweep_is_over_it_is_busy():
    up = Managed(star())
    up.manager.start()
    up.fabric.run(lambda: up.manager.lids != {})
    client = SaClient(up, 3)
    assert client.ask(GET, NODE, endport_lid=1).status == MadStatus.BUSY


def test_p_key_tables_are_told_to_who_knows_the_sm_key():
    memberships = Membership(DEFAULT_PARTITION, EndPorts.ALL, True), Membership(5, EndPorts.ALL_CAS, False)
    settings = SubnetSettings(partitions=Partitions(memberships))
    client = SaClient(Managed(star()).bring_up(), 3)
    client.sm_key = settings.sm_key
    assert client.ask(TABLE, P_KEYS).records == [], "without partitions none is known"
    client = SaClient(Managed(star(), settings).bring_up(), 3)
    for method in (GET, TABLE):
        assert client.ask(method, P_KEYS).status == SaStatus.REQ_INVALID
    client.sm_key = settings.sm_key
    found = client.ask(TABLE, P_KEYS).records
    assert {(one.endport_lid, one.port_num, one.p_key_0, one.p_key_1) for one in found} == {
        (1, 1, 0xFFFF, 5),
        (2, 0, 0xFFFF, 0),
        (2, 1, 0xFFFF, 5),
        (2, 2, 0xFFFF, 5),
        (3, 1, 0xFFFF, 5),
    }
    assert len(found) == 5
    assert {one.port_num for one in client.ask(TABLE, P_KEYS, endport_lid=2, block_num=0).records} == {0, 1, 2}
    assert client.ask(TABLE, P_KEYS, endport_lid=2, block_num=1).records == []


# Partitions.


@pytest.fixture(scope="module")
def parted() -> Managed:
    """All are limited members of the default partition, and that at LID 1, where the Subnet Manager is, a full one;
    LIDs 3 and 4 are full members of another. The switch has LID 2."""
    memberships = [Membership(DEFAULT_PARTITION, who, who is EndPorts.SELF) for who in (EndPorts.ALL, EndPorts.SELF)]
    memberships += [Membership(5, HOST_GUID + guid, True) for guid in (5, 9)]
    return Managed(star(4), SubnetSettings(partitions=Partitions(tuple(memberships)))).bring_up()


@pytest.mark.parametrize(
    ("asker", "told"), [(1, {1, 2, 3, 4, 5}), (2, {1, 2}), (3, {1, 3, 4}), (5, {1, 5}), (9, set())]
)
def test_who_shares_no_partition_with_a_port_hears_nothing_of_it(parted, asker, told):
    client = SaClient(parted, asker)
    client.sm_key = SubnetSettings().sm_key
    assert {one.endport_lid for one in client.ask(TABLE, NODE).records} == told
    ports = client.ask(TABLE, PORT).records
    assert {one.endport_lid for one in ports if one.endport_lid != 2} == told - {2}
    assert (2 in told) == any((one.endport_lid, one.port_num) == (2, 0) for one in ports)
    assert {one.endport_lid for one in client.ask(TABLE, P_KEYS).records if one.endport_lid != 2} == told - {2}
    assert len(client.ask(TABLE, SM_INFO).records) == len({1} & told)


def test_who_shares_no_partition_with_a_subscriber_hears_nothing_of_its_subscription(parted):
    SaClient(parted, 3).ask(SaMethod.SET, SaAttribute.INFORM_INFO, subscribe=1, lid_range_begin=LID_PERMISSIVE)
    told = {lid for lid in (1, 2, 3, 4, 5) if SaClient(parted, lid).ask(TABLE, SaAttribute.INFORM_INFO_RECORD).records}
    assert told == {1, 3, 4}


def test_a_switch_port_has_the_partitions_of_the_end_port_behind_it_and_others_are_no_secret(parted):
    ports = {one.port_num for one in SaClient(parted, 5).ask(TABLE, PORT, endport_lid=2).records}
    assert ports == {1, 5, 6, 7, 8}, "not 4, at which it is itself, for both are limited members"


def test_a_link_is_told_where_both_its_ends_and_who_asks_share_partitions_two_by_two(parted):
    def links(asker):
        return {(one.from_lid, one.to_lid) for one in SaClient(parted, asker).ask(TABLE, LINK).records}

    of_all = {(1, 2), (2, 1), (3, 2), (2, 3), (4, 2), (2, 4)}
    assert links(1) == links(3) == of_all, "that at LID 5 is of two limited members"
    assert links(5) == {(1, 2), (2, 1)}


def test_links_between_switches_are_told_to_all_and_without_partitions_everything_is():
    limited = Partitions((Membership(DEFAULT_PARTITION, EndPorts.ALL, False),))
    client = SaClient(Managed(parallel_pair(hosts=1), SubnetSettings(partitions=limited)).bring_up(), 1)
    assert len(client.ask(TABLE, LINK).records) == 2 * 2
    client = SaClient(Managed(parallel_pair(hosts=1)).bring_up(), 99)
    assert len(client.ask(TABLE, LINK).records) == 2 * 4
