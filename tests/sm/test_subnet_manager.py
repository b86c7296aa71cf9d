"""Bring-up: LIDs, routes and Active ports, with few SMPs; and what holds after failures."""

from collections import Counter

import pytest

from sm.credit_loops import find_credit_loop
from sm.events import (
    CreditLoopFound,
    DuplicateGuid,
    LinkFound,
    LinkLost,
    NodeFound,
    NodeLeftOut,
    NodeLost,
    PortStateSet,
    PortStuck,
    SweepEnded,
    TablesWritten,
    Unsettled,
)
from sm.lids import LidError, LidRange, format_guid2lid, parse_guid2lid
from sm.programming import TableError
from sm.qos_options import QosOptions
from sm.routing.up_down import up_down
from sm.settings import SubnetSettings
from sm.subnet import End
from tests.campaigns import first_of
from tests.sm.managed import Managed
from tests.sm.subnets import (
    HOST_GUID,
    SWITCH_GUID,
    add_host,
    cable,
    fat_tree,
    outline,
    parallel_pair,
    random_subnet,
    ring,
    seen_from,
    star,
)
from wire.codes import PortState, operational_vls
from wire.mad import MadMethod
from wire.sma import SmaAttribute


def between_switches(subnet):
    return [
        link for link in subnet.links if subnet.nodes[link.a.guid].is_switch and subnet.nodes[link.b.guid].is_switch
    ]


def leaves_and_spines():
    return fat_tree(4, 2, hosts=2)


@pytest.mark.parametrize(
    ("subnet", "most"),
    [(star(), 40), (parallel_pair(), 100), (ring(4), 110), (leaves_and_spines(), 180)],
    ids=["1 switch 2 hosts", "2 switches 4 hosts", "4-switch ring", "fat tree of 6 switches 8 hosts"],
)
def test_a_subnet_comes_up_with_few_smps(subnet, most):
    up = Managed(subnet).bring_up()
    up.check()
    assert outline(up.manager.subnet) == outline(subnet)
    assert up.mads.sent.total() <= most
    assert up.mads.sent == up.fabric.requests
    assert len(up.told(NodeFound)) == len(subnet.nodes)
    states = Counter(event.state for event in up.told(PortStateSet))
    assert states == {PortState.ARMED: 2 * len(subnet.links), PortState.ACTIVE: 2 * len(subnet.links)}
    (ended,) = up.told(SweepEnded)
    assert (ended.complete, ended.smps) == (True, up.mads.sent)


@pytest.mark.parametrize("seed", first_of(range(50), 20))
def test_random_subnets_come_up_as_far_as_they_hang_together(seed):
    subnet = random_subnet(seed)
    up = Managed(subnet).bring_up()
    up.check()
    assert outline(up.manager.subnet) == outline(seen_from(subnet, up.origin))


@pytest.mark.parametrize("seed", range(0, 50, 7))
def test_a_subnet_comes_up_from_a_switch_too(seed):
    up = Managed(random_subnet(seed), origin=End(SWITCH_GUID, 0)).bring_up()
    up.check()


@pytest.mark.parametrize("lmc", [1, 3])
def test_hosts_have_several_lids_with_an_lmc(lmc):
    subnet = leaves_and_spines()
    up = Managed(subnet, SubnetSettings(lmc=lmc)).bring_up()
    up.check()
    for end, port in subnet.reachable_end_ports:
        lids = up.manager.lids[port.guid]
        assert len(lids.lids) == (1 if subnet.nodes[end.guid].is_switch else 1 << lmc)


@pytest.mark.parametrize("seed", first_of(range(10), 4))
@pytest.mark.parametrize("share", [0.02, 0.2])
def test_lost_datagrams_delay_but_do_not_harm(seed, share):
    up = Managed(leaves_and_spines(), lose=(seed, share)).bring_up()
    assert up.mads.retried > 0
    up.fabric.lose = lambda: False
    up.until_quiet().check()


@pytest.mark.slow
def test_18_switches_of_36_ports_and_216_hosts_come_up_with_few_smps():
    up = Managed(fat_tree(12, 6, hosts=18, parallel=3)).bring_up()
    up.check()
    assert up.mads.sent.total() <= 3700


def test_nothing_is_written_to_a_subnet_that_is_as_it_is_to_be():
    first = Managed(leaves_and_spines()).bring_up()
    tables = first.fabric.tables()
    again = Managed(first.subnet)
    again.fabric.nodes = first.fabric.nodes
    again.bring_up()
    again.check()
    assert again.fabric.tables() == tables
    assert {attribute for method, attribute in again.mads.sent if method == MadMethod.SET} == set()
    assert again.manager.lids == first.manager.lids


def test_a_switch_whose_tables_cannot_be_read_has_them_written_and_no_other_has():
    first = Managed(leaves_and_spines()).bring_up()
    again = Managed(first.subnet)
    again.fabric.nodes = first.fabric.nodes
    unread = SWITCH_GUID + 2

    def hide(arrival, smp):
        is_read = (smp.method, smp.attribute_id) == (MadMethod.GET, SmaAttribute.LINEAR_FORWARDING_TABLE)
        again.fabric.nodes[arrival.guid].silent = arrival.guid == unread and is_read

    again.fabric.on_request = hide
    again.bring_up()
    again.check()
    assert [str(event) for event in again.told(Unsettled)] == [
        "Get(LinearForwardingTable, modifier 0x0) by way of ports 1,3,3: no answer"
    ]
    assert [sweep.complete for sweep in again.told(SweepEnded)] == [True]
    assert again.fabric.lft_writes == [(unread, 0)]


def test_lids_are_those_of_the_run_before():
    first = Managed(ring(4)).bring_up()
    file = format_guid2lid(first.manager.remembered_lids)
    backwards = ring(4)
    backwards.nodes = dict(reversed(backwards.nodes.items()))
    second = Managed(backwards, origin=End(HOST_GUID + 8, 1), lids=parse_guid2lid(file, "guid2lid")).bring_up()
    second.check()
    assert second.manager.lids == first.manager.lids


def test_ports_without_a_remembered_lid_keep_the_one_they_have():
    up = Managed(star(), lids={HOST_GUID + 1: LidRange(7, 7)})
    up.fabric.nodes[HOST_GUID + 4].change(1, lid=9)
    up.fabric.nodes[SWITCH_GUID].change(0, lid=7)
    up.bring_up().check()
    assert up.manager.lids == {
        HOST_GUID + 1: LidRange(7, 7),
        SWITCH_GUID: LidRange(1, 1),
        HOST_GUID + 5: LidRange(9, 9),
    }


@pytest.mark.parametrize("link", between_switches(leaves_and_spines()), ids=lambda link: f"{link.a}-{link.b}")
def test_a_lost_link_between_switches_is_routed_around_with_as_few_writes_as_can_be(link):
    up = Managed(leaves_and_spines()).bring_up()
    before = up.fabric.tables()
    hosts_before = set(up.manager.lids)
    up.fabric.cut(link.a)
    assert [event.link for event in up.after(LinkLost)] == [link]
    up.check()
    after = up.fabric.tables()
    changed = {
        (guid, lid // 64)
        for guid in before
        for lid in range(len(before[guid]))
        if before[guid][lid] != after[guid][lid]
    }
    assert sorted(up.fabric.lft_writes) == sorted(changed), "blocks that differ, once each"
    assert set(up.manager.lids) == hosts_before
    assert up.told(NodeLost) == []
    assert len(up.told(SweepEnded)) == 1, "the traps of both ends bring one sweep"


@pytest.mark.parametrize("host", range(1, 8))
def test_a_host_whose_link_is_lost_is_told_and_keeps_its_lid_for_its_return(host):
    up = Managed(leaves_and_spines()).bring_up()
    guid = HOST_GUID + 4 * host
    lids = up.manager.lids[guid + 1]
    leaf = up.subnet.peer(End(guid, 1))
    up.fabric.cut(leaf)
    assert [event.node.guid for event in up.after(NodeLost)] == [guid]
    up.check()
    assert guid + 1 not in up.manager.lids
    up.fabric.join(leaf, End(guid, 1))
    assert [event.node.guid for event in up.after(NodeFound)] == [guid]
    up.check()
    assert up.manager.lids[guid + 1] == lids


def test_the_lid_of_a_host_that_is_gone_is_not_given_to_another():
    up = Managed(star(hosts=3)).bring_up()
    gone = up.manager.lids[HOST_GUID + 5]
    up.fabric.cut(End(SWITCH_GUID, 2))
    up.after(NodeLost)
    new = add_host(up.subnet)
    up.fabric.add(new)
    cable(up.subnet, SWITCH_GUID, new)
    up.fabric.trained(End(new, 1))
    up.after(NodeFound)
    up.check()
    assert up.manager.lids[new + 1] != gone
    assert up.manager.remembered_lids[HOST_GUID + 5] == gone


def test_an_adapter_that_was_reset_unseen_is_written_anew():
    up = Managed(star(), SubnetSettings(qos=QosOptions(max_vls=1)), vls=operational_vls(4)).bring_up()
    host = up.fabric.nodes[HOST_GUID + 4]
    assert host.sl_to_vl == {(0, 0): (0,) * 16}
    host.sl_to_vl.clear()
    host.change(1, lid=0)
    up.fabric.fall_back(End(HOST_GUID + 4, 1))
    up.after(LinkLost)
    up.check()
    assert host.sl_to_vl == {(0, 0): (0,) * 16}


def test_hosts_behind_a_lost_switch_are_told_too():
    up = Managed(fat_tree(2, 1, hosts=3)).bring_up()
    leaf, spine = SWITCH_GUID + 1, SWITCH_GUID + 2
    up.fabric.cut(End(spine, 2))
    gone = {event.node.guid for event in up.after(NodeLost)}
    assert gone == {leaf, HOST_GUID + 12, HOST_GUID + 16, HOST_GUID + 20}
    up.check()


def test_a_switch_that_comes_back_is_written_anew():
    up = Managed(leaves_and_spines()).bring_up()
    spine = SWITCH_GUID + 5
    ends = [(end, up.subnet.peer(end)) for end in (End(spine, port) for port in range(1, 5))]
    for end, _far in ends:
        up.fabric.cut(end)
    assert [event.node.guid for event in up.after(NodeLost)] == [spine]
    up.check()
    reset = Managed(leaves_and_spines()).fabric.nodes[spine]
    up.fabric.nodes[spine] = reset
    for number, info in reset.ports.items():
        reset.ports[number] = info.replace(port_state=PortState.ACTIVE if number == 0 else PortState.DOWN)
    for end, far in ends:
        up.fabric.join(end, far)
    up.after(NodeFound)
    up.check()
    assert (spine, 0) in up.fabric.lft_writes


def test_a_switch_that_lost_its_tables_unseen_is_written_anew():
    up = Managed(ring(3)).bring_up()
    reset = SWITCH_GUID + 1
    node, fresh = up.fabric.nodes[reset], Managed(ring(3)).fabric.nodes[reset]
    node.lft, node.switch_info = fresh.lft, fresh.switch_info
    node.change(0, lid=0, master_sm_lid=0)
    for port in (1, 2, 3):
        up.fabric.fall_back(End(reset, port))
    up.after(LinkLost)
    up.check()
    assert (reset, 0) in up.fabric.lft_writes


def test_up_down_routes_have_no_credit_loop_where_min_hop_routes_do():
    loop = Managed(ring(5)).bring_up()
    (told,) = loop.told(CreditLoopFound)
    assert len(told.channels) == 5
    free = Managed(ring(5), SubnetSettings(routing=up_down)).bring_up()
    free.check()
    assert free.told(CreditLoopFound) == []
    assert find_credit_loop(free.subnet, free.manager.lids, free.fabric.tables()) is None


def test_a_silent_host_keeps_nobody_from_coming_up():
    up = Managed(star(hosts=3))
    up.fabric.nodes[HOST_GUID + 4].silent = True
    up.bring_up()
    assert [event.end for event in up.told(NodeLeftOut)] == [End(SWITCH_GUID, 2)]
    assert up.fabric.state(End(SWITCH_GUID, 2)) == PortState.INITIALIZE
    up.subnet.disconnect(End(SWITCH_GUID, 2))
    up.check()


def test_a_duplicate_host_is_told_and_never_active():
    up = Managed(star(hosts=3))
    up.fabric.nodes[HOST_GUID + 8].guid = HOST_GUID + 4
    up.bring_up()
    assert up.told(DuplicateGuid) == [DuplicateGuid(HOST_GUID + 4, End(SWITCH_GUID, 3))]
    assert up.fabric.state(End(SWITCH_GUID, 3)) == PortState.INITIALIZE
    assert up.fabric.state(End(SWITCH_GUID, 2)) == PortState.ACTIVE


def test_a_subnet_manager_without_a_link_waits_for_one():
    subnet = star(hosts=1)
    host, switch = End(HOST_GUID, 1), End(SWITCH_GUID, 1)
    subnet.disconnect(host)
    up = Managed(subnet, origin=host).bring_up()
    assert set(up.manager.subnet.nodes) == {HOST_GUID}
    up.fabric.join(switch, host)
    up.after(LinkFound)
    up.check()


def test_lids_that_cannot_be_given_are_an_error_of_one_line():
    with pytest.raises(LidError, match=r"LMC 8: expected 0\.\.7"):
        Managed(star(), SubnetSettings(lmc=8)).bring_up()


def test_a_node_that_answers_no_set_keeps_nobody_else_from_coming_up():
    """As where another has set an M_Key that lets read and not write."""
    subnet = star(hosts=5)
    locked = HOST_GUID + 8
    up = Managed(subnet)

    def lock(arrival, smp):
        up.fabric.nodes[arrival.guid].silent = arrival.guid == locked and smp.method == MadMethod.SET

    up.fabric.on_request = lock
    up.bring_up()
    assert up.fabric.state(End(locked, 1)) == PortState.INITIALIZE
    assert not up.told(SweepEnded)[-1].complete
    assert {event.end for event in up.told(PortStuck)} == {End(locked, 1), End(SWITCH_GUID, 3)}
    up.fabric.on_request = lambda arrival, smp: None
    up.fabric.nodes[locked].silent = False
    up.after(SweepEnded)
    up.check()


def test_a_lid_beyond_a_switchs_table_is_an_error_of_one_line():
    up = Managed(star(hosts=3), SubnetSettings(lmc=7), lft_cap=256)
    with pytest.raises(TableError, match=r"switch 0x0000000000200000: LID 0x01ff is beyond .* expected at most 0x00ff"):
        up.bring_up()


def test_every_event_is_a_line_to_read():
    up = Managed(leaves_and_spines()).bring_up()
    up.fabric.cut(End(SWITCH_GUID, 3))
    lines = [str(event) for _cycle, event in up.story]
    up.after(TablesWritten)
    lines += [str(event) for _cycle, event in up.story]
    for line in (
        "heavy sweep: start",
        "found Switch 0x0000000000200000, 4 ports",
        "link 0x0000000000100000[1] to 0x0000000000200000[1]",
        "switch 0x0000000000200000: wrote LFT blocks 0",
        "port 0x0000000000200000[1] is Armed",
        "port 0x0000000000200000[1] is Active",
        "link 0x0000000000200000[3] to 0x0000000000200004[1] was lost",
    ):
        assert line in lines
    assert not any("\n" in line or "Event(" in line for line in lines)
    assert [cycle for cycle, _event in up.story] == sorted(cycle for cycle, _event in up.story)


def test_attributes_are_counted():
    up = Managed(star()).bring_up()
    assert up.sent(MadMethod.GET, SmaAttribute.NODE_INFO) == 3
    assert up.sent(MadMethod.SET, SmaAttribute.PORT_INFO) == 1 + 4 + 4
    assert up.sent(MadMethod.SET, SmaAttribute.LINEAR_FORWARDING_TABLE) == 1
