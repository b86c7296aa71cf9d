"""Ports from Initialize over Armed to Active, and those that do not go straight."""

import pytest

from sm.events import LinkLost, PortStateSet, PortStuck, SetRefused, SweepEnded, Unsettled
from sm.settings import SubnetSettings
from sm.subnet import End
from tests.sm.managed import Managed
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, fat_tree, parallel_pair, star
from wire.codes import PortState
from wire.mad import MadMethod, MadStatus, mad_data
from wire.port_info import NO_CHANGE, PORT_INFO, PORT_INFO_MODIFIER
from wire.sma import SmaAttribute

HOST, SWITCH = End(HOST_GUID + 4, 1), End(SWITCH_GUID, 2)


def port_sets(up):
    """(port, PortState) of every Set(PortInfo) as they arrive."""
    sets = []

    def note(arrival, smp):
        if (smp.method, smp.attribute_id) == (MadMethod.SET, SmaAttribute.PORT_INFO):
            end = End(arrival.guid, PORT_INFO_MODIFIER.from_int(smp.attribute_modifier).port)
            sets.append((end, PortState(PORT_INFO.unpack(mad_data(smp)).port_state)))

    up.fabric.on_request = note
    return sets


def test_both_ends_of_a_link_are_armed_before_either_is_active():
    up = Managed(parallel_pair())
    sets = port_sets(up)
    up.bring_up()
    for link in up.subnet.links:
        states = [state for end, state in sets if end in (link.a, link.b)]
        assert states == [PortState.ARMED] * 2 + [PortState.ACTIVE] * 2


def test_port_0_of_a_switch_has_its_settings_and_no_state_set():
    up = Managed(star())
    sets = port_sets(up)
    up.bring_up()
    assert [state for end, state in sets if end == End(SWITCH_GUID, 0)] == [PortState.NO_CHANGE]


def test_what_a_port_is_set_to_leaves_alone_what_is_not_the_subnet_managers():
    up = Managed(star())
    sets = []
    up.fabric.on_request = lambda arrival, smp: sets.append(smp)
    up.fabric.nodes[HOST.guid].change(1, m_key=77, m_key_lease_period=5, link_width_enabled=1, q_key_violations=3)
    up.bring_up()
    info = up.fabric.nodes[HOST.guid].ports[1]
    assert (info.m_key, info.m_key_lease_period, info.link_width_enabled, info.q_key_violations) == (77, 5, 1, 3)
    for smp in sets:
        if (smp.method, smp.attribute_id) == (MadMethod.SET, SmaAttribute.PORT_INFO):
            wanted = PORT_INFO.unpack(mad_data(smp))
            assert (wanted.link_width_enabled, wanted.link_speed_enabled, wanted.port_physical_state) == (
                NO_CHANGE,
            ) * 3


@pytest.mark.parametrize("end", [HOST, SWITCH])
def test_a_port_that_falls_back_between_armed_and_active_is_armed_again(end):
    up = Managed(star())

    def fall_back(arrival, smp):
        if up.fabric.state(HOST) == up.fabric.state(SWITCH) == PortState.ARMED:
            up.fabric.on_request = lambda arrival, smp: None
            up.fabric.nodes[end.guid].change(end.port, port_state=PortState.INITIALIZE)

    up.fabric.on_request = fall_back
    up.bring_up()
    up.check()
    assert up.told(PortStuck) == []
    assert up.told(PortStateSet).count(PortStateSet(end, PortState.ARMED)) == 2


def test_of_a_switch_that_falls_silent_no_more_ports_are_waited_for_than_smps_are_outstanding():
    up = Managed(fat_tree(12, 2, hosts=1), SubnetSettings(attempts=1))
    spine = SWITCH_GUID + 13

    def fall_silent(arrival, smp):
        is_port_set = (smp.method, smp.attribute_id) == (MadMethod.SET, SmaAttribute.PORT_INFO)
        up.fabric.nodes[spine].silent = is_port_set and arrival.guid == spine

    up.fabric.on_request = fall_silent
    up.bring_up()
    assert 0 < len(up.told(Unsettled)) <= up.mads.window
    assert {event.end.guid for event in up.told(PortStuck)} == {spine, *range(SWITCH_GUID, SWITCH_GUID + 12)}


def test_an_active_port_whose_peer_fell_back_is_looked_at_again():
    up = Managed(star())

    def reset_link(arrival, smp):
        """Both ends; the Subnet Manager hears of one."""
        if up.fabric.state(HOST) == PortState.ACTIVE or up.fabric.state(SWITCH) == PortState.ACTIVE:
            up.fabric.on_request = lambda arrival, smp: None
            for one in (HOST, SWITCH):
                up.fabric.nodes[one.guid].change(one.port, port_state=PortState.INITIALIZE)

    up.fabric.on_request = reset_link
    up.bring_up()
    up.check()
    assert len(up.told(SweepEnded)) == 1


def test_a_port_that_is_not_yet_ready_for_active_is_set_again_later():
    up = Managed(star(), SubnetSettings(activation_wait=5000))
    up.fabric.refuses_state = lambda end, wanted: (end, wanted) == (HOST, PortState.ACTIVE) and up.fabric.now < 6000
    up.bring_up()
    up.check()
    assert up.told(SetRefused) == []
    assert len(up.told(SweepEnded)) == 1
    assert up.mads.sent.total() <= 32


def test_a_port_that_never_becomes_active_is_told_and_tried_again_later():
    up = Managed(star(), SubnetSettings(activation_wait=5000, light_sweep_period=100_000))
    up.fabric.refuses_state = lambda end, wanted: (end, wanted) == (HOST, PortState.ACTIVE)
    up.bring_up()
    assert up.told(PortStuck) == [PortStuck(HOST, PortState.ARMED)] * 3
    assert [sweep.complete for sweep in up.told(SweepEnded)] == [False] * 3
    assert up.fabric.state(End(HOST_GUID, 1)) == PortState.ACTIVE, "others are not held up"
    assert up.told(LinkLost) == [], "what never was Active was not lost"
    up.fabric.refuses_state = lambda end, wanted: False
    up.after(SweepEnded)
    up.check()


def test_a_setting_that_a_port_refuses_is_told_once_and_the_rest_holds():
    up = Managed(star())

    def refuses(end, smp):
        refused = end == HOST and (smp.method, smp.attribute_id) == (MadMethod.SET, SmaAttribute.PORT_INFO)
        return MadStatus.INVALID_ATTRIBUTE_VALUE if refused else 0

    up.fabric.refuses = refuses
    up.bring_up()
    up.check()
    (refused,) = up.told(SetRefused)
    assert str(refused) == "Set(PortInfo, modifier 0x1) by way of ports 1,2: InvalidAttributeValue"
