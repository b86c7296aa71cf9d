"""QoS levels: which paths a policy is about, and what it makes of them."""

import pytest

from sm.partitions import EndPorts, Membership, Partitions
from sm.qos_policy import MatchRule, PortGroup, QosLevel, QosPolicy
from sm.routing.lash import lash
from sm.settings import SubnetSettings
from tests.sm.managed import Managed
from tests.sm.sa_client import SaClient
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, ring, star
from wire.codes import MTU, operational_vls
from wire.node_info import NodeType
from wire.path_record import EXACTLY
from wire.sa import SaAttribute, SaMethod

DEFAULT = QosLevel(1)
A, B = 5, 6
PARTITIONS = Partitions(
    (Membership(A, EndPorts.ALL, True), Membership(B, HOST_GUID + 5, True), Membership(B, SWITCH_GUID, False)),
    {A: "A", B: "B"},
    service_levels={A: 7},
)


def paths(*rules, default=DEFAULT, partitions=None, **query):
    """SLs by the LIDs of paths; hosts have LIDs 1, 3 and 4, their switch 2, and the Subnet Manager is at 1."""
    return {ends: one.sl for ends, one in records(*rules, default=default, partitions=partitions, **query).items()}


def records(*rules, default=DEFAULT, partitions=None, **query):
    settings = SubnetSettings(qos_policy=QosPolicy(rules, default), partitions=partitions)
    subnet = star(3)
    for number, node in enumerate(subnet.nodes.values()):
        node.description = f"N{number}"
    found = SaClient(Managed(subnet, settings).bring_up(), 1).ask(SaMethod.GET_TABLE, SaAttribute.PATH_RECORD, **query)
    return {(one.slid, one.dlid): one for one in found.records}


@pytest.mark.parametrize(
    ("group", "lids"),
    [
        (PortGroup(guids=((HOST_GUID + 1, HOST_GUID + 5),)), {1, 3}),
        (PortGroup(ports=(("N2", 1), ("N3", 2), ("N0", 8), ("N9", 1))), {3, 2}),
        (PortGroup(node_types=frozenset({NodeType.SWITCH})), {2}),
        (PortGroup(node_types=frozenset({NodeType.CA})), {1, 3, 4}),
        (PortGroup(has_own=True), {1}),
        (PortGroup(p_keys=((B, B + 1),)), {2, 3}),
        (PortGroup(partitions=("B", "C")), {2, 3}),
        (PortGroup(has_own=True, partitions=("B",)), {1, 2, 3}),
        (PortGroup(), set()),
    ],
)
def test_a_rule_is_about_paths_from_or_to_the_ports_of_its_groups(group, lids):
    from_there = paths(MatchRule(QosLevel(9), sources=(PortGroup(), group)), partitions=PARTITIONS)
    assert {slid for (slid, _dlid), sl in from_there.items() if sl == 9} == lids
    there = paths(MatchRule(QosLevel(9), destinations=(group,)), partitions=PARTITIONS)
    assert {dlid for (_slid, dlid), sl in there.items() if sl == 9} == lids
    assert {sl for sl in from_there.values() if sl != 9} <= {1}


def test_all_that_a_rule_says_is_asked_for_and_the_first_such_rule_counts():
    first = MatchRule(QosLevel(2), qos_classes=((0, 5),), service_ids=((7, 7), (9, 9)))
    second = MatchRule(QosLevel(4), p_keys=((0x7FFF, 0x7FFF),))
    for query, sl in (
        ({}, 1),
        ({"qos_class": 3}, 1),
        ({"service_id": 9}, 1),
        ({"p_key": 0xFFFF}, 4),
        ({"qos_class": 3, "service_id": 9}, 2),
        ({"qos_class": 3, "service_id": 8}, 1),
        ({"qos_class": 6, "service_id": 9}, 1),
        ({"qos_class": 5, "service_id": 7, "p_key": 0xFFFF}, 2),
        ({"qos_class": 2, "p_key": 0x7FFF}, 4),
    ):
        assert set(paths(first, second, **query).values()) == {sl}, query


def test_a_path_has_the_sl_of_its_level_whatever_that_of_its_partition_is_and_no_other():
    assert paths(partitions=PARTITIONS)[1, 3] == 1
    assert paths(partitions=PARTITIONS, sl=1)[1, 3] == 1
    assert paths(partitions=PARTITIONS, sl=7) == {}


def test_a_level_limits_mtu_and_rate_and_says_the_packet_life_time_but_of_a_port_to_itself():
    found = records(default=QosLevel(1, MTU.MTU_1024, 2, 6))
    assert (found[1, 3].mtu, found[1, 3].rate, found[1, 3].packet_life_time) == (MTU.MTU_1024, 2, 6)
    assert found[1, 1].packet_life_time == 0
    within = records(default=QosLevel(1, MTU.MTU_4096, 7))[1, 3]
    assert (within.mtu, within.rate) == (MTU.MTU_2048, 3), "what the way has"
    limited = {"default": QosLevel(1, MTU.MTU_1024), "mtu_selector": EXACTLY}
    assert records(mtu=MTU.MTU_1024, **limited)
    assert not records(mtu=MTU.MTU_2048, **limited)


def test_a_path_has_a_p_key_of_its_level_without_the_bit_of_full_members():
    level = QosLevel(1, p_keys=((1, B),))
    assert records(default=level, partitions=PARTITIONS)[2, 3].p_key == A, "the lowest"
    level = QosLevel(1, p_keys=((B, 9),))
    found = records(default=level, partitions=PARTITIONS)
    assert {ends: one.p_key for ends, one in found.items()} == {(2, 3): B, (3, 2): B, (3, 3): B}
    assert records(default=level, partitions=PARTITIONS, p_key=0x8000 | B).keys() == found.keys()
    assert not records(default=level, partitions=PARTITIONS, p_key=A)


def test_a_path_is_reversible_if_there_is_one_back_by_the_level_that_has():
    there = MatchRule(QosLevel(2), sources=(PortGroup(has_own=True),))
    found = records(there, sl=2)
    assert {ends: one.reversible for ends, one in found.items()} == {(1, 1): 1, (1, 2): 0, (1, 3): 0, (1, 4): 0}
    assert records(there, sl=2, reversible=1).keys() == {(1, 1)}


def test_the_sl_of_layers_comes_before_that_of_a_level():
    policy = QosPolicy((MatchRule(QosLevel(9), qos_classes=((1, 1),)),), DEFAULT)
    up = Managed(ring(5), SubnetSettings(routing=lash, qos_policy=policy), vls=operational_vls(2)).bring_up()
    client = SaClient(up, 1)
    for query in ({}, {"qos_class": 1}):
        found = client.ask(SaMethod.GET_TABLE, SaAttribute.PATH_RECORD, **query).records
        assert {one.sl for one in found} == {0, 1}
    assert client.ask(SaMethod.GET_TABLE, SaAttribute.PATH_RECORD, sl=0).records == [], "not that of the level"
