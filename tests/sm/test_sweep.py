"""Heavy sweeps on traps and changes, light sweeps on a timer."""

from itertools import pairwise
from random import Random

import pytest

from sm.events import (
    LinkFlapping,
    LinkFound,
    LinkLost,
    NodeFound,
    NodeLeftOut,
    NodeLost,
    PortStateSet,
    PortStuck,
    SweepEnded,
    SweepStarted,
    TrapReceived,
)
from sm.settings import SubnetSettings
from sm.subnet import End, Subnet
from sm.trap_events import WrongKeyReported
from tests.campaigns import first_of
from tests.sm.managed import Managed
from tests.sm.subnets import (
    HOST_GUID,
    SWITCH_GUID,
    add_host,
    add_switch,
    cable,
    fat_tree,
    parallel_pair,
    random_subnet,
    ring,
    star,
)
from wire.codes import PortState
from wire.mad import MadMethod
from wire.notice import ProducerType, TrapNumber, details_of, notice
from wire.sma import SmaAttribute
from wire.smp import smp_request

LEAF, SPINE = SWITCH_GUID, SWITCH_GUID + 5
UPLINK = End(LEAF, 3)
RENAMED = HOST_GUID + 4


def tree(**settings):
    return Managed(fat_tree(4, 2, hosts=2), SubnetSettings(**settings)).bring_up()


def trap_from(up, lid, number, details=None, **more):
    data = notice(number, ProducerType.CA, lid, lid=lid, **(details or {}), **more)
    smp = smp_request(MadMethod.TRAP, SmaAttribute.NOTICE, data=data.pack(), transaction_id=77)
    up.fabric.at(10, lambda: up.mads.received(smp.pack(), up.fabric.now))


def test_a_light_sweep_asks_each_switch_once_and_its_own_port():
    up = tree()
    before = up.mads.sent.copy()
    (ended,) = up.after(SweepEnded)
    assert (ended.heavy, ended.complete) == (False, True)
    assert up.mads.sent - before == {
        (MadMethod.GET, SmaAttribute.SWITCH_INFO): 6,
        (MadMethod.GET, SmaAttribute.PORT_INFO): 1,
    }


def test_light_sweeps_keep_their_period():
    up = tree(light_sweep_period=50_000)
    rest = up.fabric.now
    up.after(SweepEnded)
    assert next(cycle - rest for cycle, _event in up.story) == 50_000


def test_without_light_sweeps_a_subnet_manager_rests_until_a_trap():
    up = tree(light_sweep_period=None)
    assert up.mads.wake is None
    up.fabric.cut(UPLINK)
    up.after(LinkLost)
    up.check()


def test_a_trap_128_brings_a_heavy_sweep_and_is_repressed():
    up = tree(light_sweep_period=None)
    cut = End(SWITCH_GUID + 1, 4)
    up.fabric.cut(cut)
    (lost,) = up.after(LinkLost)
    assert cut in (lost.link.a, lost.link.b)
    assert [trap.number for trap in up.told(TrapReceived)] == [TrapNumber.LINK_STATE_CHANGE] * 2
    (sweep,) = up.told(SweepStarted)
    assert sweep.heavy
    assert sweep.cause.startswith("trap 128 from LID ")
    assert up.mads.sent[MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE] == 2
    assert up.fabric.traps == {}


def test_a_trap_that_finds_its_way_only_after_the_sweep_that_saw_its_change_brings_no_other():
    up = tree(light_sweep_period=None)
    up.fabric.cut(UPLINK)
    up.after(LinkLost)
    assert len(up.told(TrapReceived)) == len(up.fabric.traps) == 1, "the spine's has no way until it is re-routed"
    up.fabric.run(lambda: len(up.told(TrapReceived)) == 2 and len(up.told(SweepEnded)) == 2)
    assert [(sweep.heavy, sweep.complete) for sweep in up.told(SweepEnded)] == [(True, True), (False, True)]
    up.fabric.cut(End(SWITCH_GUID + 4, 4))
    up.after(LinkLost)
    assert [sweep.heavy for sweep in up.told(SweepStarted)] == [True]
    assert up.fabric.traps == {}


def test_a_second_change_at_a_switch_whose_first_was_seen_brings_a_heavy_sweep():
    up = tree(light_sweep_period=None)
    for port in (1, 2):
        up.fabric.cut(End(SWITCH_GUID + 1, port))
        up.after(NodeLost)
        assert [sweep.heavy for sweep in up.told(SweepStarted)] == [True]
    up.check()


@pytest.mark.parametrize("seed", range(5))
def test_a_trap_is_repeated_until_it_is_heard_and_repressed(seed):
    up = tree(light_sweep_period=None, subnet_timeout=2)
    random = Random(seed)
    up.fabric.lose_trap = lambda: random.random() < 0.5
    up.fabric.cut(UPLINK)
    up.after(LinkLost)
    up.fabric.run(lambda: up.manager.resting and not up.fabric.traps)
    up.check()


def test_a_change_that_no_trap_told_is_seen_by_the_next_light_sweep():
    up = tree()
    up.fabric.nodes[LEAF].change(0, master_sm_lid=0)
    up.fabric.nodes[SWITCH_GUID + 4].change(0, master_sm_lid=0)
    up.fabric.cut(UPLINK)
    up.after(LinkLost)
    assert up.told(TrapReceived) == []
    light, heavy = up.told(SweepStarted)
    assert (light.heavy, light.cause) == (False, "timer")
    assert heavy.heavy
    assert heavy.cause.startswith("port state change at switch")
    up.check()


def test_a_trap_during_a_sweep_asks_for_another_only_if_something_changed_since():
    up = Managed(ring(4))
    up.manager.start()
    up.fabric.run(lambda: bool(up.told(PortStateSet)))
    trap_from(up, 1, TrapNumber.LINK_STATE_CHANGE)
    up.settle()
    assert [(sweep.heavy, sweep.complete) for sweep in up.told(SweepEnded)] == [(True, True), (False, True)]
    up.check()


def test_a_link_lost_during_bring_up_is_routed_around():
    for when in range(500, 30_000, 1500):
        up = Managed(fat_tree(4, 2, hosts=2))
        up.fabric.at(when, lambda up=up: up.fabric.cut(UPLINK))
        up.bring_up()
        up.until_quiet().check()


def test_a_link_lost_during_activation_is_routed_around_once_the_first_node_behind_it_is_silent():
    up = Managed(fat_tree(4, 2, hosts=2))
    silent_after = 4 << 16
    up.manager.start()
    up.fabric.run(lambda: len(up.told(PortStateSet)) == 4)
    up.fabric.cut(UPLINK)
    cut = up.fabric.now
    up.settle()
    _first, second, *_light = up.told(SweepStarted)
    began = next(cycle for cycle, event in up.story if event is second)
    assert second.heavy
    assert second.cause.startswith("trap 128 from LID ")
    assert silent_after < began - cut < silent_after + 10_000
    assert up.told(PortStuck) == [], "nobody tried the rest"
    up.until_quiet().check()


def test_a_node_that_is_still_silent_after_a_trap_keeps_nobody_from_coming_up():
    up = Managed(star(hosts=5))
    mute = End(HOST_GUID + 8, 1)

    def fall_silent(arrival, smp):
        up.fabric.nodes[mute.guid].silent = (arrival, smp.method) == (mute, MadMethod.SET)

    up.fabric.on_request = fall_silent
    up.manager.start()
    up.fabric.run(lambda: bool(up.told(PortStateSet)))
    trap_from(up, 1, TrapNumber.LINK_STATE_CHANGE)
    up.settle()
    assert [sweep.complete for sweep in up.told(SweepEnded) if sweep.heavy] == [False] * 3
    stuck = {End(SWITCH_GUID, 3), mute}
    assert {event.end for event in up.told(PortStuck)} == stuck
    for link in up.subnet.links:
        for end in {link.a, link.b} - stuck:
            assert up.fabric.state(end) == PortState.ACTIVE


def test_the_subnet_managers_own_link_may_be_lost_and_come_back():
    up = tree()
    host, leaf = up.origin, up.subnet.peer(up.origin)
    up.fabric.cut(host)
    assert len(up.after(NodeLost)) == 13
    assert set(up.manager.subnet.nodes) == {HOST_GUID}
    up.fabric.join(host, leaf)
    up.after(NodeFound)
    up.check()


def test_a_silent_node_that_answers_again_is_found_by_a_light_sweep():
    up = Managed(star(hosts=3))
    node = up.fabric.nodes[HOST_GUID + 4]
    node.silent = True
    up.bring_up()
    (light,) = up.after(SweepEnded)
    assert light.complete, "still silent"
    node.silent = False
    assert [event.node.guid for event in up.after(NodeFound)] == [HOST_GUID + 4]
    assert up.told(SweepStarted)[1].cause == f"the node behind {End(SWITCH_GUID, 2)} answers"
    up.check()


def test_a_switch_that_no_longer_answers_is_lost_and_routed_around():
    up = tree()
    up.fabric.nodes[SPINE].silent = True
    assert [event.node.guid for event in up.after(NodeLost)] == [SPINE]
    for end in [End(SPINE, port) for port in range(1, 5)]:
        up.subnet.disconnect(end)
    up.check()


def named_ring():
    """A ring of switches in which every node has a description."""
    subnet = ring(4)
    for guid, node in subnet.nodes.items():
        node.description = f"node {guid:x}"
    return subnet


def rename(up, description):
    """Gives the host that RENAMED is another description, which a trap 144 reports."""
    node = up.fabric.nodes[RENAMED]
    node.node.description = description
    trap_from(up, node.ports[1].lid, TrapNumber.LOCAL_CHANGES, node_description_change=1)


def rename_once_read(up, description):
    """Renames the host when discovery already has its description: as it is asked for PortInfo."""

    def hear(arrival, smp):
        if (arrival.guid, smp.attribute_id) == (RENAMED, SmaAttribute.PORT_INFO):
            up.fabric.on_request = lambda arrival, smp: None
            rename(up, description)

    up.fabric.on_request = hear


def check_descriptions(up):
    known = {guid: node.description for guid, node in up.manager.subnet.nodes.items()}
    assert known == {guid: node.description for guid, node in up.subnet.nodes.items()}


def test_a_trap_144_of_a_new_name_reads_this_name_again_and_no_other():
    up = Managed(named_ring(), SubnetSettings(light_sweep_period=None)).bring_up()
    assert up.manager.subnet.nodes[RENAMED].description == f"node {RENAMED:x}"
    before = up.sent(MadMethod.GET, SmaAttribute.NODE_DESCRIPTION)
    rename(up, "renamed")
    up.after(SweepEnded)
    check_descriptions(up)
    assert up.subnet.nodes[RENAMED].description == "renamed"
    assert up.sent(MadMethod.GET, SmaAttribute.NODE_DESCRIPTION) == before + 1


def test_a_new_name_told_after_discovery_is_read_in_the_next_sweep():
    up = Managed(named_ring())
    up.manager.start()
    up.fabric.run(lambda: PortStateSet(End(RENAMED, 1), PortState.ARMED) in up.told(PortStateSet))
    rename(up, "renamed")
    up.until_quiet()
    check_descriptions(up)


def test_a_new_name_told_during_a_later_discovery_is_read_in_the_next_sweep():
    up = Managed(named_ring()).bring_up()
    up.fabric.cut(End(SWITCH_GUID + 2, 3))
    rename_once_read(up, "renamed")
    up.until_quiet()
    check_descriptions(up)


def test_a_new_name_told_while_the_one_before_is_read_is_read_in_the_next_sweep():
    up = Managed(named_ring()).bring_up()
    rename(up, "renamed")
    rename_once_read(up, "renamed twice")
    up.until_quiet()
    check_descriptions(up)


def test_a_new_name_told_during_the_first_discovery_is_read_in_the_next_sweep():
    """As where another Subnet Manager was at this host before, and gave LIDs."""
    first = Managed(named_ring()).bring_up()
    again = Managed(first.subnet)
    again.fabric.nodes = first.fabric.nodes
    rename_once_read(again, "renamed")
    again.bring_up().until_quiet()
    check_descriptions(again)


def test_other_traps_are_told_and_repressed():
    up = Managed(star(), SubnetSettings(light_sweep_period=None)).bring_up()
    trap_from(up, 2, TrapNumber.FLOW_CONTROL_WATCHDOG, port=1)
    up.story.clear()
    up.fabric.run(lambda: bool(up.told(TrapReceived)) and up.mads.wake is None)
    assert up.told(TrapReceived) == [TrapReceived(TrapNumber.FLOW_CONTROL_WATCHDOG, 2)]
    assert up.mads.sent[MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE] == 1
    assert up.told(SweepStarted) == []


def test_a_trap_about_a_wrong_key_is_told_and_repressed_and_asks_for_no_sweep():
    up = Managed(star(), SubnetSettings(light_sweep_period=None)).bring_up()
    details = {"lid1": 2, "lid2": 3, "key": 0x22, "qp2": 0x12}
    body = notice(TrapNumber.BAD_Q_KEY, ProducerType.CA, 3, **details)
    smp = smp_request(MadMethod.TRAP, SmaAttribute.NOTICE, data=body.pack(), transaction_id=77)
    up.story.clear()
    up.fabric.at(10, lambda: up.mads.received(smp.pack(), up.fabric.now))
    up.fabric.run(lambda: bool(up.told(WrongKeyReported)) and up.mads.wake is None)
    (told,) = up.told(WrongKeyReported)
    assert (told.number, told.lid, told.details) == (258, 3, details_of(body))
    assert up.mads.sent[MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE] == 1
    assert up.told(SweepStarted) == []


def test_a_link_that_was_reset_unseen_is_told_and_active_again():
    up = tree()
    up.fabric.fall_back(UPLINK)
    (lost,) = up.after(LinkLost)
    assert lost.back
    assert str(lost) == f"link {UPLINK} to {up.subnet.peer(UPLINK)} was lost and is back"
    assert up.told(LinkFound) == []
    assert up.fabric.lft_writes == [], "routes stay as they are"
    up.check()


def test_no_way_leads_over_a_link_that_flaps_until_it_was_quiet_for_long():
    up = Managed(parallel_pair(), SubnetSettings(flap_period=6_000_000)).bring_up()
    link = up.subnet.link(End(SWITCH_GUID, 3))

    def uses():
        return [table.count(end.port) for end in (link.a, link.b) for table in (up.manager.routes.tables[end.guid],)]

    assert all(uses())
    for losses in (1, 2, 3):
        up.fabric.cut(link.a)
        up.after(LinkLost)
        up.fabric.join(link.a, link.b)
        up.after(LinkFound)
        if losses == 1:
            up.fabric.lft_writes.clear()
    assert uses() == [0, 0]
    assert up.manager.held_links == [link]
    assert up.fabric.state(link.a) == PortState.ACTIVE, "it is brought up all the same"
    up.check()
    other = up.subnet.link(End(SWITCH_GUID, 4))
    up.fabric.cut(other.a)
    up.after(LinkLost)
    assert up.manager.held_links == [], "a link that flaps is better than none"
    assert all(uses())
    up.check()
    up.fabric.join(other.a, other.b)
    up.after(LinkFound)
    assert up.manager.held_links == [link]
    up.fabric.run(lambda: not up.manager.held_links and up.manager.resting)
    assert any("flaps no more" in sweep.cause for sweep in up.told(SweepStarted))
    up.check()


def test_a_link_that_flaps_is_told_once_a_bout():
    up = Managed(star(), SubnetSettings(flap_limit=2)).bring_up()
    host, port = End(HOST_GUID + 4, 1), End(SWITCH_GUID, 2)
    told = []
    for _turn in range(4):
        up.fabric.cut(host)
        up.after(LinkLost)
        told += up.told(LinkFlapping)
        up.fabric.join(host, port)
        up.after(LinkFound)
        told += up.told(LinkFlapping)
    assert [flap.losses for flap in told] == [2]
    up.check()


def test_a_new_host_is_found_and_reached():
    up = tree()
    up.fabric.cut(UPLINK)
    up.after(LinkLost)
    new = add_host(up.subnet)
    up.fabric.add(new)
    assert cable(up.subnet, LEAF, new)
    up.fabric.trained(End(new, 1))
    up.after(NodeFound)
    up.check()


def test_a_port_of_a_host_that_is_cut_off_and_comes_back_keeps_its_lid_and_the_other_port_stays():
    subnet = parallel_pair()
    host = add_host(subnet, 2)
    for switch in (SWITCH_GUID, SWITCH_GUID + 1):
        assert cable(subnet, host, switch)
    up = Managed(subnet).bring_up()
    second, there = End(host, 2), subnet.peer(End(host, 2))
    lids = {port: up.manager.lids[host + port] for port in (1, 2)}
    up.fabric.cut(second)
    assert [lost.link.a for lost in up.after(LinkLost)] == [second]
    assert up.told(NodeLost) == []
    assert list(up.manager.subnet.nodes[host].end_ports) == [1]
    up.fabric.join(second, there)
    assert [found.link.a for found in up.after(LinkFound)] == [second]
    assert {port: up.manager.lids[host + port] for port in (1, 2)} == lids
    up.check()


@pytest.mark.parametrize("seed", first_of(range(30), 10))
def test_a_subnet_in_which_links_come_and_go_is_right_in_the_end(seed):
    random = Random(seed)
    subnet = random_subnet(seed)
    up = Managed(subnet)
    links = [link for link in subnet.links if up.origin not in (link.a, link.b)]

    def disturb(link):
        if subnet.link(link.a):
            up.fabric.cut(link.a)
        else:
            up.fabric.join(link.a, link.b)

    for link in random.choices(links, k=10) if links else []:
        up.fabric.at(random.randrange(1_000_000), lambda link=link: disturb(link))
    up.fabric.lose = lambda: random.random() < 0.02
    up.bring_up()
    up.fabric.run(lambda: up.fabric.now >= 1_000_000)
    up.fabric.lose = lambda: False
    up.until_quiet().check()


def test_a_subnet_manager_whose_own_node_falls_silent_goes_on_trying():
    up = tree()
    own = up.fabric.nodes[HOST_GUID]
    own.silent = True
    assert {sweep.complete for sweep in up.after(SweepEnded)} == {False}
    assert up.manager.subnet.nodes, "what was known is not lost"
    own.silent = False
    up.until_quiet().check()
    assert up.told(NodeLost) == []


def test_a_node_that_cannot_be_managed_brings_no_sweep_after_sweep():
    subnet = Subnet()
    switches = [add_switch(subnet, 3) for _ in range(65)]
    cable(subnet, switches[0], add_host(subnet))
    for before, after in pairwise(switches):
        cable(subnet, before, after)
    up = Managed(subnet, lft_cap=128)
    plug = End(switches[0], 3)
    up.fabric.loops.add(plug)
    up.fabric.nodes[plug.guid].change(3, port_state=PortState.INITIALIZE)
    up.bring_up()
    assert {event.end for event in up.told(NodeLeftOut)} == {plug, End(switches[62], 2)}
    (sweep,) = up.after(SweepEnded)
    assert (sweep.heavy, sweep.complete) == (False, True)
