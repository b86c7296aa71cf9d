"""Directed-route discovery: what is found is what is there."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from sm.discovery import discover
from sm.events import DuplicateGuid, LinkFound, NodeFound, NodeLeftOut, Unsettled
from sm.mad_client import MadClient, NoAnswerError
from sm.sma_client import SmaClient
from sm.subnet import End, EndPort, Node, Speed, Subnet
from sm.tasks import start
from tests.sm.sma_fabric import SmaFabric
from tests.sm.subnets import (
    HOST_GUID,
    SWITCH_GUID,
    add_host,
    add_switch,
    cable,
    fat_tree,
    first_host_port,
    outline,
    parallel_pair,
    random_subnet,
    ring,
    seen_from,
    star,
)
from wire.codes import LinkWidth, PortState
from wire.mad import MadMethod
from wire.node_info import NodeType
from wire.port_info import PORT_INFO_MODIFIER
from wire.sma import SmaAttribute


def found_in(subnet, origin=None, former=None, prepare=lambda fabric: None, **fabric):
    """What a discovery finds, what it reported, and the fabric."""
    origin = origin or first_host_port(subnet)
    mads, found, events = MadClient(), [], []
    there = SmaFabric(subnet, origin, mads, **fabric)
    prepare(there)

    async def look():
        found.append(await discover(SmaClient(mads), former or Subnet(), events.append))

    start(look())
    there.run(lambda: bool(found))
    return found[0], events, there


def told(events, kind):
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize(
    "subnet", [star(), parallel_pair(links=3), ring(4), fat_tree(4, 2, hosts=2)], ids=["star", "pair", "ring", "tree"]
)
def test_a_subnet_is_found_as_it_is(subnet):
    found, events, _fabric = found_in(subnet)
    assert outline(found.subnet) == outline(subnet)
    assert {event.node.guid for event in told(events, NodeFound)} == set(subnet.nodes)
    assert {event.link for event in told(events, LinkFound)} == set(subnet.links)
    assert len(events) == len(subnet.nodes) + len(subnet.links)
    assert found.settled


@pytest.mark.parametrize("seed", range(50))
def test_random_subnets_with_loops_and_parallel_links_are_found_as_far_as_they_hang_together(seed):
    subnet = random_subnet(seed)
    origin = first_host_port(subnet)
    found, _events, _fabric = found_in(subnet, origin)
    assert outline(found.subnet) == outline(seen_from(subnet, origin))
    assert found.silent == []
    assert found.settled


@pytest.mark.parametrize("seed", range(10))
def test_the_subnet_manager_may_be_at_a_switch(seed):
    subnet = random_subnet(seed)
    origin = End(SWITCH_GUID, 0)
    found, _events, _fabric = found_in(subnet, origin)
    assert found.origin == origin
    assert outline(found.subnet) == outline(seen_from(subnet, origin))


def test_two_hosts_may_be_cabled_to_each_other():
    subnet = Subnet()
    cable(subnet, add_host(subnet), add_host(subnet))
    found, _events, fabric = found_in(subnet)
    assert outline(found.subnet) == outline(subnet)
    assert fabric.requests.total() == 6


def test_a_host_may_be_cabled_to_itself():
    subnet = Subnet()
    host = add_host(subnet, ports=2)
    cable(subnet, host, host)
    found, _events, _fabric = found_in(subnet)
    assert outline(found.subnet) == outline(subnet)


def test_what_nodes_say_of_themselves_is_found():
    subnet = Subnet()
    switch = Node(5, NodeType.SWITCH, 2, {0: EndPort(5)}, "spine 1", True, 0x2C9, 0xCAFE, 0x77)
    host = Node(8, NodeType.CA, 1, {1: EndPort(9)}, "höst")
    subnet.add(switch)
    subnet.add(host)
    subnet.connect(End(5, 2), End(8, 1), LinkWidth.X1, Speed.DDR)
    found, _events, _fabric = found_in(subnet)
    assert found.subnet == subnet


def test_ports_have_the_lids_that_they_come_with():
    def prepare(fabric):
        fabric.nodes[HOST_GUID + 4].change(1, lid=12, lmc=2)

    found, _events, _fabric = found_in(star(), prepare=prepare)
    assert found.subnet.nodes[HOST_GUID + 4].end_ports[1] == EndPort(HOST_GUID + 5, 12, 2)


def test_no_more_is_read_than_needed():
    subnet = fat_tree(4, 2, hosts=2)
    _found, _events, fabric = found_in(subnet)
    between_known_switches = 8 - 5
    assert fabric.requests == {
        (MadMethod.GET, SmaAttribute.NODE_INFO): 14 + 2 * between_known_switches,
        (MadMethod.GET, SmaAttribute.NODE_DESCRIPTION): 14,
        (MadMethod.GET, SmaAttribute.SWITCH_INFO): 6,
        (MadMethod.SET, SmaAttribute.SWITCH_INFO): 6,
        (MadMethod.GET, SmaAttribute.PORT_INFO): 8 + 4 * 5 + 2 * 5,
    }


def test_what_is_known_is_not_told_again_and_its_description_not_read_again():
    subnet = star()
    for node in subnet.nodes.values():
        node.description = f"node {node.guid}"
    found, _events, _fabric = found_in(subnet)
    _found, events, fabric = found_in(subnet, former=found.subnet)
    assert events == []
    assert (MadMethod.GET, SmaAttribute.NODE_DESCRIPTION) not in fabric.requests


def test_a_switch_forgets_its_changes_before_its_ports_are_read():
    seen = []

    def note(_arrival, smp):
        seen.append((MadMethod(smp.method).name, SmaAttribute(smp.attribute_id).name))

    _found, _events, fabric = found_in(star(), prepare=lambda fabric: setattr(fabric, "on_request", note))
    first_port = seen.index(("GET", "PORT_INFO"), 2 + seen.index(("GET", "SWITCH_INFO")))
    assert seen.index(("SET", "SWITCH_INFO")) < first_port
    assert not fabric.nodes[SWITCH_GUID].switch_info.port_state_change


def test_a_switch_that_is_silent_hides_what_only_it_leads_to():
    subnet = fat_tree(2, 1, hosts=1)
    leaf, spine = SWITCH_GUID + 1, SWITCH_GUID + 2
    found, events, _fabric = found_in(subnet, prepare=lambda fabric: setattr(fabric.nodes[leaf], "silent", True))
    assert set(found.subnet.nodes) == {HOST_GUID, SWITCH_GUID, spine}
    (silent,) = told(events, NodeLeftOut)
    assert (silent.end, found.silent) == (End(spine, 2), [End(spine, 2)])
    assert str(silent).endswith("Get(NodeInfo, modifier 0x0) by way of ports 1,2,2: no answer")


def test_a_silent_host_is_told_and_all_others_are_found():
    subnet = ring(4)
    found, events, _fabric = found_in(
        subnet, prepare=lambda fabric: setattr(fabric.nodes[HOST_GUID + 8], "silent", True)
    )
    assert set(subnet.nodes) - set(found.subnet.nodes) == {HOST_GUID + 8}
    assert [event.end for event in told(events, NodeLeftOut)] == [End(SWITCH_GUID + 2, 1)]


def test_a_node_that_stops_answering_while_it_is_read_is_left_out():
    subnet = parallel_pair()

    def prepare(fabric):
        def silence(arrival, smp):
            node = fabric.nodes[arrival.guid]
            if arrival.guid == SWITCH_GUID + 1 and smp.attribute_id == SmaAttribute.PORT_INFO:
                node.silent = True

        fabric.on_request = silence

    found, events, _fabric = found_in(subnet, prepare=prepare)
    assert set(found.subnet.nodes) == {HOST_GUID, HOST_GUID + 4, SWITCH_GUID}
    assert [event.end for event in told(events, NodeLeftOut)] == [End(SWITCH_GUID, 3), End(SWITCH_GUID, 4)]


def test_two_hosts_of_one_guid_are_told_and_the_first_is_kept():
    def prepare(fabric):
        fabric.nodes[HOST_GUID + 8].guid = HOST_GUID + 4

    found, events, _fabric = found_in(ring(4), prepare=prepare)
    assert told(events, DuplicateGuid) == [DuplicateGuid(HOST_GUID + 4, End(SWITCH_GUID + 2, 1))]
    assert found.subnet.peer(End(SWITCH_GUID + 1, 1)) == End(HOST_GUID + 4, 1)
    assert found.subnet.peer(End(SWITCH_GUID + 2, 1)) is None
    assert found.settled


def test_two_hosts_of_one_node_guid_and_unlike_port_guids_are_told():
    subnet = ring(4)
    subnet.nodes[HOST_GUID + 8].end_ports[1].guid += 0x1000

    def prepare(fabric):
        fabric.nodes[HOST_GUID + 8].guid = HOST_GUID + 4

    found, events, _fabric = found_in(subnet, prepare=prepare)
    assert told(events, DuplicateGuid) == [DuplicateGuid(HOST_GUID + 4, End(SWITCH_GUID + 2, 1))]
    assert found.subnet.peer(End(SWITCH_GUID + 2, 1)) is None


def test_a_host_with_the_subnet_managers_own_guid_is_told():
    def prepare(fabric):
        fabric.nodes[HOST_GUID + 4].guid = HOST_GUID

    found, events, _fabric = found_in(star(), prepare=prepare)
    assert told(events, DuplicateGuid) == [DuplicateGuid(HOST_GUID, End(SWITCH_GUID, 2))]
    assert found.subnet.peer(End(SWITCH_GUID, 1)) == End(HOST_GUID, 1)


def test_two_ports_of_one_port_guid_are_told():
    subnet = star(hosts=3)
    subnet.nodes[HOST_GUID + 8].end_ports[1].guid = HOST_GUID + 5
    found, events, _fabric = found_in(subnet)
    assert told(events, DuplicateGuid) == [DuplicateGuid(HOST_GUID + 5, End(SWITCH_GUID, 3))]
    assert HOST_GUID + 8 not in found.subnet.nodes


def test_two_switches_of_one_guid_are_told_though_they_use_the_same_ports():
    subnet = fat_tree(4, 1, hosts=1)
    one, other, spine = SWITCH_GUID + 1, SWITCH_GUID + 2, SWITCH_GUID + 4

    def prepare(fabric):
        fabric.nodes[other].guid = one

    found, events, _fabric = found_in(subnet, prepare=prepare)
    assert told(events, DuplicateGuid) == [DuplicateGuid(one, End(spine, 3))]
    assert found.subnet.peer(End(spine, 2)) == End(one, 2)
    assert {SWITCH_GUID, one, SWITCH_GUID + 3, spine} <= set(found.subnet.nodes)
    assert other not in found.subnet.nodes


def test_two_switches_of_one_guid_are_not_taken_for_one_with_parallel_links():
    subnet = Subnet()
    near, one, other = (add_switch(subnet, 4) for _ in range(3))
    for switch in (near, one, other):
        cable(subnet, switch, add_host(subnet))
    subnet.connect(End(near, 2), End(one, 2))
    subnet.connect(End(near, 3), End(other, 3))

    def prepare(fabric):
        fabric.nodes[other].guid = one

    found, events, _fabric = found_in(subnet, prepare=prepare)
    assert told(events, DuplicateGuid) == [DuplicateGuid(one, End(near, 3))]
    assert found.subnet.peer(End(near, 3)) is None


def test_switches_of_one_guid_and_unlike_sizes_are_told():
    subnet = Subnet()
    near, one, other = add_switch(subnet, 4), add_switch(subnet, 4), add_switch(subnet, 6)
    cable(subnet, near, add_host(subnet))
    cable(subnet, near, one)
    cable(subnet, near, other)

    def prepare(fabric):
        fabric.nodes[other].guid = one

    _found, events, _fabric = found_in(subnet, prepare=prepare)
    assert told(events, DuplicateGuid) == [DuplicateGuid(one, End(near, 3))]


def on_request(fabric, wanted, what):
    """Does something once, a cycle after a request came by a port for an attribute, perhaps with a modifier."""

    def look(arrival, smp):
        if (arrival, smp.attribute_id, smp.attribute_modifier)[: len(wanted)] == wanted:
            fabric.on_request = lambda end, request: None
            fabric.at(1, what)

    fabric.on_request = look


def test_a_host_that_is_moved_while_it_is_looked_for_is_no_duplicate():
    host, new = End(HOST_GUID + 4, 1), End(SWITCH_GUID + 1, 8)

    def prepare(fabric):
        def move():
            fabric.cut(host)
            fabric.join(new, host)

        on_request(fabric, (End(SWITCH_GUID + 1, 3), SmaAttribute.PORT_INFO, PORT_INFO_MODIFIER.to_int(port=1)), move)

    found, events, _fabric = found_in(parallel_pair(), prepare=prepare)
    assert told(events, DuplicateGuid) == []
    assert told(events, Unsettled) == [Unsettled(f"what is behind {new} changed while it was looked at")]
    assert not found.settled


def test_a_link_that_is_lost_while_its_ends_are_asked_leaves_the_discovery_unsettled():
    one, other = End(SWITCH_GUID + 1, 3), End(SWITCH_GUID + 2, 2)

    def prepare(fabric):
        on_request(fabric, (other, SmaAttribute.NODE_INFO), lambda: fabric.cut(other))

    found, events, _fabric = found_in(ring(4), prepare=prepare)
    assert found.subnet.link(one) is None
    assert [event.end for event in told(events, NodeLeftOut)] == [other]
    assert told(events, Unsettled) == [Unsettled(f"what is behind {one} changed while it was looked at")]
    assert not found.settled


def test_a_link_whose_one_end_came_up_late_is_found():
    one, other = End(SWITCH_GUID + 1, 3), End(SWITCH_GUID + 2, 2)

    def prepare(fabric):
        fabric.nodes[other.guid].change(other.port, port_state=PortState.DOWN)
        on_request(
            fabric,
            (other, SmaAttribute.NODE_INFO),
            lambda: fabric.nodes[other.guid].change(other.port, port_state=PortState.INITIALIZE),
        )

    found, _events, _fabric = found_in(ring(4), prepare=prepare)
    assert found.subnet.peer(one) == other
    assert found.settled


@pytest.mark.parametrize("seed", range(5))
def test_lost_datagrams_are_asked_for_again(seed):
    random = Random(seed)
    subnet = fat_tree(4, 2, hosts=2)
    found, _events, fabric = found_in(subnet, lose=lambda: random.random() < 0.05)
    assert outline(found.subnet) == outline(subnet)
    assert fabric.mads.retried > 0


def test_a_node_farther_than_a_directed_route_reaches_is_told():
    subnet = Subnet()
    switches = [add_switch(subnet, 3) for _ in range(66)]
    for before, after in pairwise(switches):
        cable(subnet, before, after)
    cable(subnet, switches[0], add_host(subnet))
    found, events, _fabric = found_in(subnet)
    assert len(found.subnet.switches) == 63
    (silent,) = told(events, NodeLeftOut)
    assert str(silent) == f"the node behind {silent.end} is left out: it is more than 63 hops away"
    assert told(events, Unsettled) == []


def test_a_port_that_is_cabled_to_itself_is_told():
    subnet = star()
    plugged = End(SWITCH_GUID, 5)

    def prepare(fabric):
        fabric.loops.add(plugged)
        fabric.nodes[SWITCH_GUID].change(5, port_state=PortState.INITIALIZE)

    found, events, _fabric = found_in(subnet, prepare=prepare)
    assert told(events, NodeLeftOut) == [NodeLeftOut(plugged, "the port is linked to itself")]
    assert found.subnet.link(plugged) is None


@pytest.mark.parametrize("wrong", [{"ports": 0}, {"ports": 255}, {"type": 7}])
def test_a_node_that_cannot_be_is_left_out(wrong):
    subnet = star(hosts=3)

    def prepare(fabric):
        node = fabric.nodes[HOST_GUID + 4]
        node.node = replace(node.node, **wrong)

    found, events, _fabric = found_in(subnet, prepare=prepare)
    assert set(found.subnet.nodes) == {HOST_GUID, SWITCH_GUID, HOST_GUID + 8}
    (silent,) = told(events, NodeLeftOut)
    assert silent.reason.startswith("its NodeInfo cannot be: NodeType ")


def test_a_subnet_manager_whose_own_node_is_silent_finds_nothing():
    with pytest.raises(NoAnswerError, match="by way of ports none: no answer"):
        found_in(star(), prepare=lambda fabric: setattr(fabric.nodes[HOST_GUID], "silent", True))
