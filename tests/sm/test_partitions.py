"""Which ports are members of which partitions, and who may send to whom."""

from sm.partitions import (
    DEFAULT_PARTITION,
    EndPorts,
    Enforcement,
    Membership,
    Partitions,
    PortPartitions,
    by_partition,
    enforced,
    in_opensm_order,
    partitions_of_ports,
    share_partition,
)
from sm.subnet import MANAGEMENT_PORT, End
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, star
from tests.sm.test_programming import Bench
from wire.node_info import NodeType
from wire.port_info import PORT_INFO

FIRST, SECOND, SWITCH = End(HOST_GUID, 1), End(HOST_GUID + 4, 1), End(SWITCH_GUID, MANAGEMENT_PORT)


def p_keys(*said, subnet=None):
    """By port, where the Subnet Manager is at the first."""
    memberships = tuple(Membership(*one) for one in said)
    found = Bench(subnet or star()).found
    return {end: of_port.p_keys for end, of_port in partitions_of_ports(Partitions(memberships), found).items()}


def test_ports_become_members_by_their_guid_their_kind_or_all_at_once():
    assert p_keys((5, HOST_GUID + 1, True)) == {FIRST: [0x8005], SECOND: [], SWITCH: []}
    assert p_keys((5, EndPorts.ALL, False)) == {FIRST: [5], SECOND: [5], SWITCH: [5]}
    assert p_keys((5, EndPorts.ALL_CAS, False)) == {FIRST: [5], SECOND: [5], SWITCH: []}
    assert p_keys((5, EndPorts.ALL_SWITCHES, False)) == {FIRST: [], SECOND: [], SWITCH: [5]}
    assert p_keys((5, EndPorts.SELF, False)) == {FIRST: [5], SECOND: [], SWITCH: []}


def test_a_router_is_no_channel_adapter():
    subnet = star()
    subnet.nodes[HOST_GUID + 4].type = NodeType.ROUTER
    said = (5, EndPorts.ALL_CAS, False), (6, EndPorts.ALL_ROUTERS, True)
    assert p_keys(*said, subnet=subnet) == {FIRST: [5], SECOND: [0x8006], SWITCH: []}


def test_what_is_said_last_of_a_port_counts():
    said = (5, EndPorts.ALL, True), (5, HOST_GUID + 1, False)
    assert p_keys(*said) == {FIRST: [5], SECOND: [0x8005], SWITCH: [0x8005]}
    assert p_keys(*reversed(said))[FIRST] == [0x8005]


def test_index_0_is_of_the_partition_that_asked_for_it_last_unless_it_is_named_again():
    found = Bench(star()).found

    def first(*said):
        memberships = tuple(Membership(key, EndPorts.ALL, True, is_first) for key, is_first in said)
        return partitions_of_ports(Partitions(memberships), found)[FIRST].first

    assert first((5, False)) == DEFAULT_PARTITION
    assert first((5, True), (6, True), (7, False)) == 6
    assert first((5, True), (6, True), (6, False)) == DEFAULT_PARTITION


def test_p_keys_go_by_their_lower_byte_first():
    assert in_opensm_order(dict.fromkeys((0x7FFF, 0x0102, 0x0300, 0x0001, 0x0201))) == [
        0x0300,
        0x0001,
        0x0201,
        0x0102,
        0x7FFF,
    ]


def test_where_there_is_no_room_for_all_the_first_and_the_default_partition_are_the_last_to_go():
    of_port = PortPartitions({DEFAULT_PARTITION: True, 5: False, 6: True, 7: True}, first=7)
    assert [of_port.within(room).p_keys for room in (0, 1, 2, 3)] == [
        [],
        [0x8007],
        [0x8007, 0xFFFF],
        [5, 0x8007, 0xFFFF],
    ]
    assert of_port.within(4) == of_port


def test_port_info_says_what_a_port_enforces():
    def of(inbound, outbound):
        return enforced(
            PORT_INFO.record(partition_enforcement_inbound=inbound, partition_enforcement_outbound=outbound)
        )

    assert [of(0, 0), of(1, 0), of(0, 1), of(1, 1)] == [
        Enforcement.OFF,
        Enforcement.IN,
        Enforcement.OUT,
        Enforcement.BOTH,
    ]


def test_two_ports_hear_each_other_in_partitions_of_which_one_at_least_is_a_full_member():
    def shared(one, other):
        return list(share_partition(by_partition(one), by_partition(other)))

    assert shared([0x8005], [0x0005]) == [0x8005], "by the key that the sender has"
    assert shared([0x0005], [0x8005]) == [0x0005]
    assert shared([0x0005], [0x0005]) == []
    assert shared([0x8005, 0, 0xFFFF], [0xFFFF, 0x8006]) == [0xFFFF]
    assert shared([0, 0x8000], [0, 0x8000]) == [], "0 is no P_Key"
