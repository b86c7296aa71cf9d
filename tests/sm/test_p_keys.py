"""P_Key tables: what they hold, that they are corrected, and that no partition that stays is without its P_Key."""

from random import Random

import pytest

from sm.events import NodeFound, NodeLost, NotEnforced, PKeysLeftOut, PKeysWritten, SetRefused
from sm.mad_client import MadClient
from sm.p_keys import arranged
from sm.partitions import DEFAULT_PARTITION, P_KEY_BASE, EndPorts, Enforcement, Membership, PartitionError, Partitions
from sm.partitions import PortPartitions as Of
from sm.settings import SubnetSettings
from sm.subnet import MANAGEMENT_PORT, End
from sm.subnet_manager import SubnetManager
from tests.sm.managed import Managed
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, fat_tree, parallel_pair, star
from wire.codes import P_KEY_DEFAULT
from wire.mad import MadMethod, MadStatus, mad_data
from wire.port_info import PORT_INFO, PORT_INFO_MODIFIER
from wire.port_tables import P_KEY_TABLE, P_KEY_TABLE_MODIFIER
from wire.sma import SmaAttribute

DEFAULT = Membership(DEFAULT_PARTITION, EndPorts.ALL, True)
FIRST, SECOND, SWITCH = End(HOST_GUID, 1), End(HOST_GUID + 4, 1), End(SWITCH_GUID, MANAGEMENT_PORT)
AT_FIRST, AT_SECOND = End(SWITCH_GUID, 1), End(SWITCH_GUID, 2)


def settings(*said, enforcement=Enforcement.BOTH, **more):
    """Memberships as (P_Key, who, whether it is a full member), beside that of all in the default partition."""
    memberships = tuple(Membership(*one) for one in said)
    return SubnetSettings(partitions=Partitions((DEFAULT, *memberships)), enforcement=enforcement, **more)


def table(up, end):
    """What a port holds, without the empty entries at the end."""
    held = list(up.fabric.nodes[end.guid].p_keys[end.port])
    while held and not held[-1]:
        held.pop()
    return held


def checked(up, end):
    info = up.fabric.nodes[end.guid].ports[end.port]
    return info.partition_enforcement_inbound, info.partition_enforcement_outbound


def block(*keys):
    return (*keys, *[0] * (32 - len(keys)))


# How a table is arranged.


def test_the_default_partition_is_first_and_others_follow():
    of = Of({0x300: True, 5: False, DEFAULT_PARTITION: False})
    assert arranged(of, 32, ()) == block(0x7FFF, 0x8300, 5)


def test_what_a_port_holds_stays_where_it_is_and_others_go_behind_it():
    of = Of({5: True, 6: True, 7: False, DEFAULT_PARTITION: True})
    assert arranged(of, 32, block(0xFFFF, 0, 9, 6, 7)) == block(0xFFFF, 0, 0, 0x8006, 7, 0x8005)
    assert arranged(of, 32, block(6, 0xFFFF, 0x8006)) == block(0xFFFF, 0, 0x8006, 0x8005, 7), (
        "the full member's, of two"
    )


def test_what_a_port_has_lost_goes_where_it_was():
    of = Of({5: True, 6: True, DEFAULT_PARTITION: True})
    assert arranged(of, 32, block(0xFFFF), block(0xFFFF, 0, 0x8006, 0, 0x8005)) == block(0xFFFF, 0, 0x8006, 0, 0x8005)


def test_gaps_are_filled_where_there_is_no_room_behind():
    of = Of({5: True, 6: True, DEFAULT_PARTITION: True})
    assert arranged(of, 32, (0xFFFF, *[0] * 30, 6)) == (0xFFFF, 0x8005, *[0] * 29, 0x8006)


def test_another_partition_may_have_index_0():
    of = Of({5: True, 6: False, DEFAULT_PARTITION: True}, first=5)
    assert arranged(of, 32, block(0xFFFF)) == block(0x8005, 6, 0xFFFF)


@pytest.mark.parametrize("room", [1, 2, 16])
def test_no_p_key_goes_where_the_port_has_no_entry(room):
    of = Of({DEFAULT_PARTITION: True} | dict.fromkeys(range(1, room), True))
    keys = {0xFFFF, *(0x8000 | key for key in range(1, room))}
    at_the_end = tuple(0x8001 if index == room - 1 else 0 for index in range(32))
    for held in ((), at_the_end, block(0xFFFF, *[0] * (room - 1), 0x8001), block(*range(1, 32))):
        for table in (arranged(of, room, held), arranged(of, room, (), held)):
            assert set(table[:room]) == keys
            assert not any(table[room:])


def test_a_p_key_after_one_at_the_last_index_goes_into_a_gap():
    of = Of({5: True, 6: True, DEFAULT_PARTITION: True})
    assert arranged(of, 16, block(0xFFFF, *[0] * 14, 0x8005)) == block(0xFFFF, 0x8006, *[0] * 13, 0x8005)


def test_index_0_is_used_where_all_others_are():
    assert arranged(Of({5: True, 6: True}), 2, ()) == block(0x8006, 0x8005)


# What is written.


def test_end_ports_have_their_p_keys_and_switch_ports_those_of_the_end_port_behind_them():
    up = Managed(star(), settings((5, HOST_GUID + 1, True), (6, EndPorts.ALL, False))).bring_up()
    assert table(up, FIRST) == table(up, AT_FIRST) == [0xFFFF, 0x8005, 6]
    assert table(up, SECOND) == table(up, AT_SECOND) == [0xFFFF, 6]
    assert table(up, SWITCH) == [0xFFFF, 6]
    assert checked(up, AT_FIRST) == checked(up, AT_SECOND) == (1, 1)
    up.check()


def test_ports_that_hold_what_they_should_are_not_written():
    up = Managed(star(), settings()).bring_up()
    assert up.sent(MadMethod.SET, SmaAttribute.P_KEY_TABLE) == 0
    assert up.sent(MadMethod.GET, SmaAttribute.P_KEY_TABLE) == 5, "three end ports, two ports at hosts"


@pytest.mark.parametrize("subnet", [star(), parallel_pair()])
def test_without_partitions_no_p_key_is_read_or_written_and_nothing_is_checked(subnet):
    up = Managed(subnet)
    ends = [End(SWITCH_GUID, port) for port in range(1, 3)]
    for end in ends:
        up.fabric.nodes[SWITCH_GUID].change(end.port, partition_enforcement_inbound=1)
    up.bring_up()
    assert not any(attribute is SmaAttribute.P_KEY_TABLE for _method, attribute in up.mads.sent)
    assert {checked(up, end) for end in ends} == {(0, 0)}


@pytest.mark.parametrize(
    ("enforcement", "bits"),
    [
        (Enforcement.BOTH, (1, 1)),
        (Enforcement.IN, (1, 0)),
        (Enforcement.OUT, (0, 1)),
        (Enforcement.OFF, (0, 0)),
    ],
)
def test_switch_ports_check_what_they_are_told_to(enforcement, bits):
    up = Managed(star(), settings((5, EndPorts.ALL, True), enforcement=enforcement)).bring_up()
    assert checked(up, AT_FIRST) == bits
    assert table(up, AT_FIRST) == ([0xFFFF, 0x8005] if any(bits) else [0xFFFF])
    assert table(up, FIRST) == [0xFFFF, 0x8005]


def test_ports_between_switches_check_nothing():
    up = Managed(fat_tree(2, 1, hosts=1), settings((5, EndPorts.ALL, True)))
    up.fabric.nodes[SWITCH_GUID].change(2, partition_enforcement_inbound=1, partition_enforcement_outbound=1)
    up.bring_up()
    assert checked(up, End(SWITCH_GUID, 1)) == (1, 1)
    assert checked(up, End(SWITCH_GUID, 2)) == (0, 0)
    assert table(up, End(SWITCH_GUID, 2)) == [0xFFFF]


def test_a_switch_that_cannot_check_is_left_alone():
    up = Managed(star(), settings((5, EndPorts.ALL, True)))
    switch = up.fabric.nodes[SWITCH_GUID]
    switch.switch_info = switch.switch_info.replace(partition_enforcement_cap=0)
    up.bring_up()
    assert (table(up, AT_FIRST), checked(up, AT_FIRST)) == ([0xFFFF], (0, 0))
    assert table(up, SWITCH) == [0xFFFF, 0x8005]


def test_a_switch_that_can_check_one_way_checks_that_way():
    up = Managed(star(), settings((5, EndPorts.ALL, True)))
    switch = up.fabric.nodes[SWITCH_GUID]
    switch.switch_info = switch.switch_info.replace(outbound_enforcement_cap=0)
    up.bring_up()
    assert checked(up, AT_FIRST) == (1, 0)


def test_a_switch_port_without_room_checks_nothing_and_that_is_told():
    up = Managed(star(), settings((5, HOST_GUID + 1, True), (6, HOST_GUID + 1, True)))
    switch = up.fabric.nodes[SWITCH_GUID]
    switch.switch_info = switch.switch_info.replace(partition_enforcement_cap=2)
    up.bring_up()
    assert (table(up, AT_FIRST), checked(up, AT_FIRST), checked(up, AT_SECOND)) == ([0xFFFF], (0, 0), (1, 1))
    (told,) = up.told(NotEnforced)
    assert str(told) == f"port {AT_FIRST} checks no P_Keys: it has room for 2 of 3"


def test_more_p_keys_than_an_end_port_has_room_for_are_an_error_that_names_it():
    said = [(key, HOST_GUID + 5, True) for key in range(1, 33)]
    with pytest.raises(PartitionError) as error:
        Managed(star(), settings(*said)).bring_up()
    name = f"0x{HOST_GUID + 5:016x}"
    assert str(error.value) == f"port {name} is in 33 partitions, and its P_Key table has room for 32"
    assert table(Managed(star(), settings(*said[1:])).bring_up(), SECOND)[31] == 0x8020


@pytest.mark.parametrize("cap", [1, 2, 16])
def test_ports_and_switch_ports_with_small_tables_have_all_their_p_keys_in_them(cap):
    others = [(key, EndPorts.ALL, True) for key in range(1, cap)]
    up = Managed(star(), settings(*others))
    switch = up.fabric.nodes[SWITCH_GUID]
    switch.switch_info = switch.switch_info.replace(partition_enforcement_cap=cap)
    at_the_end = block(*[0] * (cap - 1), 0xFFFF if cap == 1 else 0x8001)
    for node in up.fabric.nodes.values():
        node.partition_cap = cap
    up.fabric.nodes[SECOND.guid].p_keys[1] = switch.p_keys[2] = at_the_end
    switch.change(2, partition_enforcement_inbound=1)
    up.bring_up()
    for end in (FIRST, SECOND, SWITCH, AT_FIRST, AT_SECOND):
        assert set(table(up, end)) == {0xFFFF, *(0x8000 | key for key in range(1, cap))}
        assert len(table(up, end)) == cap
    assert table(up, AT_SECOND)[-1] == at_the_end[cap - 1], "it is checked by, and not moved"
    assert checked(up, AT_FIRST) == checked(up, AT_SECOND) == (1, 1)
    up.check()


@pytest.mark.parametrize("cap", [1, 2, 16])
def test_what_a_port_tells_of_entries_that_it_does_not_have_says_nothing(cap):
    up = Managed(star(), settings(*((key, EndPorts.ALL, True) for key in range(1, cap))))
    switch = up.fabric.nodes[SWITCH_GUID]
    switch.switch_info = switch.switch_info.replace(partition_enforcement_cap=cap)
    up.fabric.nodes[SECOND.guid].partition_cap = cap
    up.fabric.nodes[SECOND.guid].p_keys[1] = switch.p_keys[2] = block(*[0] * cap, 0xFFFF, *range(0x8001, 0x8000 + cap))
    switch.change(2, partition_enforcement_inbound=1)
    up.bring_up()
    for end in (SECOND, AT_SECOND):
        assert set(table(up, end)) == {0xFFFF, *(0x8000 | key for key in range(1, cap))}
        assert len(table(up, end)) == cap


THIRD, AT_THIRD = End(HOST_GUID + 8, 1), End(SWITCH_GUID, 3)


def without_third(*said):
    """A star of three, of which the third is away; it is in these partitions."""
    up = Managed(star(3), settings(*((key, HOST_GUID + 9, True) for key in said)))
    up.fabric.cut(AT_THIRD)
    return up.bring_up()


def third_comes(up, cap):
    up.fabric.add(THIRD.guid)
    up.fabric.nodes[THIRD.guid].partition_cap = cap
    up.fabric.join(THIRD, AT_THIRD)
    up.after(NodeFound)


def test_a_port_that_comes_later_without_room_for_its_p_keys_goes_without_the_last():
    up = without_third(5, 6, 7)
    third_comes(up, 3)
    assert table(up, THIRD) == table(up, AT_THIRD) == [0xFFFF, 0x8005, 0x8006]
    assert checked(up, AT_THIRD) == (1, 1)
    (told,) = up.told(PKeysLeftOut)
    assert str(told) == f"port {THIRD} goes without P_Keys 0x8007: its table has room for 3"
    up.check()


@pytest.mark.parametrize("cap", [1, 0])
def test_a_port_with_room_for_one_p_key_has_that_of_the_default_partition_even_if_it_says_for_none(cap):
    up = without_third(5)
    third_comes(up, cap)
    assert table(up, THIRD) == [0xFFFF]
    assert len(up.told(PKeysLeftOut)) == 1
    up.check()


def test_a_table_that_is_refused_is_told_and_its_port_checks_nothing():
    up = Managed(star(), settings((5, EndPorts.ALL, True)))
    refused = MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED

    def refuses(end, smp):
        is_ours = smp.attribute_id == SmaAttribute.P_KEY_TABLE and smp.method == MadMethod.SET
        which = P_KEY_TABLE_MODIFIER.from_int(smp.attribute_modifier)
        return refused if is_ours and (end.guid, which.port) == AT_FIRST else 0

    up.fabric.refuses = refuses
    up.bring_up()
    assert (checked(up, AT_FIRST), checked(up, AT_SECOND)) == ((0, 0), (1, 1))
    assert len(up.told(SetRefused)) == 1
    up.check()


# Sweeps.


def test_what_was_changed_behind_its_back_is_put_right_in_a_heavy_sweep():
    up = Managed(star(3), settings((5, EndPorts.ALL, True), (6, EndPorts.ALL, False))).bring_up()
    before = {end: table(up, end) for end in (FIRST, SECOND, SWITCH, AT_FIRST, AT_SECOND)}
    nodes = up.fabric.nodes
    nodes[SECOND.guid].p_keys[1] = block(0xFFFF, 0, 6, 9)
    nodes[SWITCH_GUID].p_keys[1] = block(0x8005)
    nodes[SWITCH_GUID].p_keys[0] = block()
    nodes[SWITCH_GUID].change(2, partition_enforcement_outbound=0)
    up.fabric.cut(End(SWITCH_GUID, 3))
    up.after(PKeysWritten)
    written = {event.end for event in up.told(PKeysWritten)}
    assert written == {SECOND, AT_FIRST, SWITCH}
    assert {end: table(up, end) for end in before if end != AT_FIRST} == {
        end: keys for end, keys in before.items() if end != AT_FIRST
    }
    assert sorted(table(up, AT_FIRST)) == sorted(before[AT_FIRST])
    assert table(up, AT_FIRST)[0] == 0x8005, "what it held and checks by stays"
    assert checked(up, AT_SECOND) == (1, 1)


def test_a_node_that_was_reset_gets_its_p_keys_in_the_same_places():
    up = Managed(star(), settings((5, EndPorts.ALL, True)))
    up.fabric.nodes[SECOND.guid].p_keys[1] = block(0xFFFF, 0, 0, 0x8005)
    up.bring_up()
    assert table(up, SECOND) == [0xFFFF, 0, 0, 0x8005]
    assert table(up, AT_SECOND) == [0xFFFF, 0x8005], "without gaps"
    up.fabric.nodes[SECOND.guid].p_keys[1] = block(P_KEY_DEFAULT)
    up.fabric.fall_back(SECOND)
    up.after(PKeysWritten)
    assert table(up, SECOND) == [0xFFFF, 0, 0, 0x8005]
    up.check()


def test_a_node_that_was_gone_gets_its_p_keys_in_the_same_places():
    up = Managed(star(3), settings((5, EndPorts.ALL, True)))
    third, at_third = End(HOST_GUID + 8, 1), End(SWITCH_GUID, 3)
    up.fabric.nodes[third.guid].p_keys[1] = block(0xFFFF, 0, 0, 0x8005)
    up.bring_up()
    up.fabric.cut(at_third)
    up.after(NodeLost)
    up.fabric.add(third.guid)
    up.fabric.join(third, at_third)
    up.after(NodeFound)
    assert table(up, third) == [0xFFFF, 0, 0, 0x8005]
    up.check()


@pytest.mark.parametrize("seed", range(6))
def test_under_loss_all_tables_are_written_in_the_end(seed):
    print(f"seed {seed}")
    up = Managed(star(3), settings((5, EndPorts.ALL, True)), lose=(seed, 0.1)).bring_up()
    up.fabric.lose = lambda: False
    up.until_quiet()
    for port in range(1, 4):
        end = End(SWITCH_GUID, port)
        assert (table(up, end), checked(up, end)) == ([0xFFFF, 0x8005], (1, 1))


def random_settings(random):
    """Some partitions with some of the hosts of a star of four."""
    guids = [HOST_GUID + 4 * host + 1 for host in range(4)]
    said = [
        (key, guid, random.random() < 0.5)
        for key in [*random.sample(range(8, 0x7FFF), random.randrange(12)), 5, 6, 7]
        for guid in guids
        if random.random() < 0.6
    ]
    random.shuffle(said)
    return settings(*said, enforcement=random.choice([Enforcement.BOTH, Enforcement.IN, Enforcement.OUT]))


@pytest.mark.parametrize("seed", range(20))
def test_no_partition_that_stays_is_without_its_p_key_for_a_moment_where_it_is_checked(seed):
    """Another Subnet Manager comes with other partitions; a switch takes a table entry by entry."""
    print(f"seed {seed}")
    random = Random(seed)
    up = Managed(star(4), random_settings(random)).bring_up()
    fabric, switch = up.fabric, up.fabric.nodes[SWITCH_GUID]
    for port in range(1, 5):
        held = [key for key in switch.p_keys[port] if key]
        switch.p_keys[port] = tuple(random.sample(held + [0] * (32 - len(held)), 32))
    after = random_settings(random)
    mads = MadClient()
    manager = SubnetManager(mads, after)
    stays = {
        end.port: {key & P_KEY_BASE for key in switch.p_keys[end.port] if key}
        & {one.partition for one in after.partitions.memberships if one.who in (EndPorts.ALL, guid)}
        for end, guid in ((End(SWITCH_GUID, port), HOST_GUID + 4 * (port - 1) + 1) for port in range(1, 5))
    }
    steps = []

    def watch(arrival, smp):
        if smp.method != MadMethod.SET or arrival.guid != SWITCH_GUID:
            return
        if smp.attribute_id == SmaAttribute.P_KEY_TABLE:
            port = P_KEY_TABLE_MODIFIER.from_int(smp.attribute_modifier).port
            old, new = switch.p_keys[port], P_KEY_TABLE.unpack(mad_data(smp))
            if port and any(checked(up, End(SWITCH_GUID, port))):
                for entry in range(33):
                    now = {key & P_KEY_BASE for key in (*new[:entry], *old[entry:])}
                    assert now >= stays[port]
                    steps.append(entry)
        elif smp.attribute_id == SmaAttribute.PORT_INFO:
            port = PORT_INFO_MODIFIER.from_int(smp.attribute_modifier).port
            info = PORT_INFO.unpack(mad_data(smp))
            if info.partition_enforcement_inbound or info.partition_enforcement_outbound:
                host = HOST_GUID + 4 * (port - 1)
                assert set(switch.p_keys[port]) == set(fabric.nodes[host].p_keys[1])

    fabric.on_request = watch
    fabric.managers = {up.origin: mads}
    manager.start()
    fabric.run(lambda: manager.resting)
    assert steps
