"""Congestion control: who is told what, once, and who is left alone."""

from dataclasses import replace

import pytest

from sm.congestion_options import parse_congestion_options
from sm.events import CongestionControlSet, CongestionControlUnavailable, LinkLost, NodeFound, NodeLost, SweepEnded
from sm.routing.min_hop import min_hop
from sm.settings import SubnetSettings
from sm.subnet import MANAGEMENT_PORT, End
from tests.sm.cc_agents import CcAgents
from tests.sm.managed import Managed
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, fat_tree, ring, star
from wire.congestion_control import CC_ATTRIBUTES, CC_CLASS_PORT_INFO, CcAttribute
from wire.mad import MadStatus
from wire.node_info import NodeType

TEXT = f"""
congestion_control TRUE
cc_key 0x17
cc_sw_cong_setting_control_map 0x14
cc_sw_cong_setting_threshold 8
cc_ca_cong_setting_control_map 1
cc_ca_cong_setting_ccti_increase 0 1
cc_cct {",".join(f"0:{entry}" for entry in range(65))}
"""
OPTIONS = parse_congestion_options(TEXT, "opensm.conf")

FIRST, SECOND, SWITCH = End(HOST_GUID, 1), End(HOST_GUID + 4, 1), End(SWITCH_GUID, MANAGEMENT_PORT)
AT_SECOND = End(SWITCH_GUID, 2)
TRAPS = (CcAttribute.CLASS_PORT_INFO, 0)
ADAPTER_SETS = [
    TRAPS,
    (CcAttribute.CA_CONGESTION_SETTING, 0),
    (CcAttribute.CONGESTION_CONTROL_TABLE, 0),
    (CcAttribute.CONGESTION_CONTROL_TABLE, 1),
]


def managed(subnet, options=OPTIONS, **more):
    up = Managed(subnet, SubnetSettings(congestion_control=options), **more)
    return up, CcAgents(up.fabric)


def asked(agents, end):
    return [(held.attribute, held.modifier) for held in agents.of(end)]


def test_switches_and_ports_of_adapters_are_told_what_the_options_say():
    up, agents = managed(star())
    up.bring_up()
    assert asked(agents, SWITCH) == [TRAPS, (CcAttribute.SWITCH_CONGESTION_SETTING, 0)]
    assert agents.of(SWITCH)[1].data.startswith(OPTIONS.switch.pack())
    for end in (FIRST, SECOND):
        assert asked(agents, end) == ADAPTER_SETS
        _traps, setting, *blocks = agents.of(end)
        assert setting.data.startswith(OPTIONS.adapter.pack())
        assert [block.data[: len(one.pack())] for block, one in zip(blocks, OPTIONS.table, strict=True)] == [
            one.pack() for one in OPTIONS.table
        ]
    assert agents.keys == {0x17}
    (told,) = up.told(CongestionControlSet)
    assert str(told) == "sets congestion control of 1 switch and 2 ports of adapters"
    up.check()


def two_layers(subnet, lids, *, previous):
    """Paths between two of the switches have SL 1."""
    return replace(min_hop(subnet, lids, previous=previous), layers={(0, 1): 1})


def test_traps_are_to_come_to_the_manager_on_the_sl_of_the_path():
    up = Managed(ring(4), SubnetSettings(congestion_control=OPTIONS, routing=two_layers), vls=4)
    agents = CcAgents(up.fabric)
    up.bring_up()
    own = up.manager.lids[up.origin.guid + 1].first
    sls = set()
    for end in {held.end for held in agents.sets}:
        port = up.manager.subnet.nodes[end.guid].end_ports[end.port]
        info = CC_CLASS_PORT_INFO.unpack(agents.of(end)[0].data)
        assert (info.trap_lid, info.trap_qp, info.trap_q_key, info.trap_p_key) == (own, 1, 0x80010000, 0xFFFF)
        assert info.trap_sl == up.manager.routes.service_level(port.lid, own)
        sls.add(info.trap_sl)
    assert sls == {0, 1}


def test_a_node_that_sends_no_traps_gets_the_rest_and_nothing_is_said():
    up, agents = managed(star())
    agents.status = lambda held: 0x0C if held.attribute is CcAttribute.CLASS_PORT_INFO else 0
    up.bring_up()
    assert up.told(CongestionControlUnavailable) == []
    assert asked(agents, SECOND) == ADAPTER_SETS
    assert [(told.switches, told.ports) for told in up.told(CongestionControlSet)] == [(1, 2)]


def test_without_options_nobody_is_told_anything():
    up, agents = managed(star(), None)
    up.bring_up()
    assert agents.sets == []
    assert up.told(CongestionControlSet) == []


def test_across_switches_all_are_told():
    up, agents = managed(fat_tree(2, 1, hosts=2))
    up.bring_up()
    (told,) = up.told(CongestionControlSet)
    assert (told.switches, told.ports) == (3, 4)
    assert len(agents.sets) == 3 * 2 + 4 * 4


def test_who_was_told_is_not_told_again():
    up, agents = managed(star(3))
    up.bring_up()
    agents.sets.clear()
    up.fabric.cut(End(SWITCH_GUID, 3))
    up.after(LinkLost)
    assert agents.sets == []
    assert up.told(CongestionControlSet) == []


def test_who_comes_again_is_told_again():
    up, agents = managed(star(3))
    up.bring_up()
    third, at_third = End(HOST_GUID + 8, 1), End(SWITCH_GUID, 3)
    up.fabric.cut(at_third)
    up.after(NodeLost)
    agents.sets.clear()
    up.fabric.add(third.guid)
    up.fabric.join(third, at_third)
    up.after(NodeFound)
    assert {held.end for held in agents.sets} == {third}
    assert asked(agents, third) == ADAPTER_SETS


def test_who_was_reset_is_told_again():
    up, agents = managed(star())
    up.bring_up()
    agents.sets.clear()
    up.fabric.add(SECOND.guid)
    up.fabric.trained(SECOND)
    up.after(SweepEnded)
    assert {held.end for held in agents.sets} == {SECOND}


@pytest.mark.parametrize(
    ("status", "what", "reason"),
    [
        (MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED, "CACongestionSetting", "MethodAttributeNotSupported"),
        (None, "ClassPortInfo", "no answer"),
    ],
)
def test_who_refuses_or_says_nothing_is_told_of_and_left_alone(status, what, reason):
    up, agents = managed(star(3))
    agents.status = lambda held: status if held.end == SECOND else 0
    up.bring_up()
    (event,) = up.told(CongestionControlUnavailable)
    lid = up.manager.lids[SECOND.guid + 1].first
    request = f"Set({what}, modifier 0x0) to LID {lid}"
    assert str(event) == f"leaves port {SECOND} without congestion control: {request}: {reason}"
    assert CC_ATTRIBUTES[asked(agents, SECOND)[-1][0]].name == what, "no more after it"
    assert [(told.switches, told.ports) for told in up.told(CongestionControlSet)] == [(1, 2)]
    assert [sweep.complete for sweep in up.told(SweepEnded) if sweep.heavy] == [True]
    agents.sets.clear()
    up.fabric.cut(End(SWITCH_GUID, 3))
    up.after(LinkLost)
    assert agents.sets == []


def test_routers_have_none():
    subnet = star()
    subnet.nodes[SECOND.guid].type = NodeType.ROUTER
    up, agents = managed(subnet)
    up.bring_up()
    assert agents.of(SECOND) == []
    assert up.told(CongestionControlUnavailable) == []


@pytest.mark.parametrize("seed", range(4))
def test_under_loss_all_are_told(seed):
    print(f"seed {seed}")
    up, agents = managed(star(3), lose=(seed, 0.05))
    up.bring_up()
    assert up.told(CongestionControlUnavailable) == []
    up.fabric.lose = lambda: False
    up.until_quiet()
    assert {held.end for held in agents.sets} == {SWITCH, FIRST, SECOND, End(HOST_GUID + 8, 1)}
