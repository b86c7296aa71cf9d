"""What a Subnet Manager knows of nodes and links."""

import pytest

from sm.subnet import End, EndPort, Node, Subnet, SubnetError
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, fat_tree, ring
from wire.node_info import NodeType


def test_the_far_end_of_a_link_is_known_at_both_ends():
    subnet = ring(3)
    one, other = End(SWITCH_GUID, 3), End(SWITCH_GUID + 1, 2)
    assert subnet.peer(one) == other
    assert subnet.peer(other) == one
    assert subnet.link(one) is subnet.link(other)
    subnet.disconnect(other)
    assert subnet.peer(one) is None
    assert len(subnet.links) == 5


def test_parallel_links_are_several_neighbours():
    subnet = fat_tree(2, 1, hosts=1, parallel=2)
    spine = SWITCH_GUID + 2
    assert [far.guid for _port, far in subnet.neighbours(spine)] == [SWITCH_GUID] * 2 + [SWITCH_GUID + 1] * 2


def test_a_switch_may_be_cabled_to_itself_but_a_port_may_not():
    subnet = Subnet()
    subnet.add(Node(7, NodeType.SWITCH, 2, {0: EndPort(7)}))
    with pytest.raises(SubnetError, match=r"port 0x0000000000000007\[1\] is linked to itself, expected another port"):
        subnet.connect(End(7, 1), End(7, 1))
    subnet.connect(End(7, 2), End(7, 1))
    assert list(subnet.neighbours(7)) == [(1, End(7, 2)), (2, End(7, 1))]
    assert len(subnet.links) == 1


def test_a_node_that_goes_takes_its_links_along():
    subnet = ring(3)
    subnet.remove(SWITCH_GUID)
    assert [end.guid for end, _port in subnet.reachable_end_ports] == [
        SWITCH_GUID + 1,
        SWITCH_GUID + 2,
        HOST_GUID + 4,
        HOST_GUID + 8,
    ]
    assert len(subnet.links) == 3


def test_subnets_are_equal_in_whatever_order_they_were_found():
    one, other = ring(4), Subnet()
    for node in reversed(one.nodes.values()):
        other.add(node)
    for link in reversed(one.links):
        other.connect(link.b, link.a)
    assert one == other
    other.disconnect(other.links[0].a)
    assert one != other


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda s: s.add(Node(SWITCH_GUID, NodeType.SWITCH, 2, {})), "GUID 0x0000000000200000 belongs to two nodes"),
        (lambda s: s.add(Node(1, NodeType.SWITCH, 255, {})), "has 255 ports, expected 1..254"),
        (lambda s: s.connect(End(1, 1), End(SWITCH_GUID, 1)), r"0x0000000000000001\[1\]: there is no such node"),
        (lambda s: s.connect(End(SWITCH_GUID, 4), End(SWITCH_GUID, 1)), r"\[4\]: expected a port of 1..3"),
        (lambda s: s.connect(End(SWITCH_GUID, 1), End(SWITCH_GUID + 1, 1)), r"\[1\] is in two links, expected one"),
    ],
)
def test_what_cannot_be_is_refused(wrong, text):
    with pytest.raises(SubnetError, match=text):
        wrong(ring(3))


def test_a_subnet_without_a_link_leaves_the_subnet_itself_whole():
    subnet = ring(3)
    link = subnet.links[-1]
    without = subnet.without(link)
    assert without.links == subnet.links[:-1]
    assert (without.peer(link.a), subnet.peer(link.a)) == (None, link.b)
