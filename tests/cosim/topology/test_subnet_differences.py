"""What a Subnet Manager found against what a topology file describes."""

from copy import deepcopy

import pytest

from cosim.topology.subnet_differences import differences, in_reach
from sm.subnet import End, Speed, Subnet
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, add_host, cable, fat_tree, star
from wire.codes import LinkWidth

ORIGIN = End(HOST_GUID, 1)


@pytest.fixture
def subnet() -> Subnet:
    return fat_tree(leaves=2, spines=2, hosts=1)


def test_a_subnet_is_itself(subnet):
    assert differences(subnet, deepcopy(subnet), ORIGIN) == []


def test_lids_speeds_and_vendors_do_not_count(subnet):
    found = deepcopy(subnet)
    node = found.nodes[SWITCH_GUID]
    node.end_ports[0].lid, node.vendor_id, node.device_id, node.system_image_guid = 7, 8, 9, 10
    link = found.links[0]
    found.disconnect(link.a)
    found.connect(link.a, link.b, link.width, Speed.QDR)
    assert differences(subnet, found, ORIGIN) == []


def test_a_node_or_link_that_is_missing_is_told(subnet):
    found = deepcopy(subnet)
    found.remove(HOST_GUID + 4)
    assert differences(subnet, found, ORIGIN) == [
        'not found: CA 0x0000000000100004 ""',
        "not found: link 0x0000000000100004[1] to 0x0000000000200001[1]",
    ]
    assert differences(found, subnet, ORIGIN) == [
        'found, and not in the file: CA 0x0000000000100004 ""',
        "found, and not in the file: link 0x0000000000100004[1] to 0x0000000000200001[1]",
    ]


@pytest.mark.parametrize(("name", "value"), [("ports", 9), ("description", "another")])
def test_a_node_that_is_another_is_told(subnet, name, value):
    found = deepcopy(subnet)
    setattr(found.nodes[SWITCH_GUID], name, value)
    (said,) = differences(subnet, found, ORIGIN)
    assert said.startswith("found to be another than in the file: Switch 0x0000000000200000")


def test_a_link_of_another_width_is_told(subnet):
    found = deepcopy(subnet)
    link = found.links[0]
    found.disconnect(link.a)
    found.connect(link.a, link.b, LinkWidth.X1)
    assert differences(subnet, found, ORIGIN) == [f"found to be 1X: link {link.a} to {link.b}"]


@pytest.mark.parametrize(
    ("width", "built"), [(LinkWidth.X12, LinkWidth.X4), (LinkWidth.X8, LinkWidth.X4), (LinkWidth.X2, LinkWidth.X1)]
)
def test_a_link_is_as_wide_as_it_is_built(subnet, width, built):
    found = deepcopy(subnet)
    link = found.links[0]
    for its, other in ((subnet, width), (found, built)):
        its.disconnect(link.a)
        its.connect(link.a, link.b, other)
    assert differences(subnet, found, ORIGIN) == []


def test_what_is_out_of_reach_need_not_be_found(subnet):
    island = deepcopy(subnet)
    for link in list(island.links):
        if SWITCH_GUID + 1 in (link.a.guid, link.b.guid) and not island.nodes[link.a.guid].is_switch:
            island.disconnect(link.a)
    found = deepcopy(island)
    found.remove(HOST_GUID + 4)
    assert differences(island, found, ORIGIN) == []


def test_channel_adapters_relay_nothing():
    subnet = star(hosts=2)
    two_ports = add_host(subnet, 2)
    cable(subnet, SWITCH_GUID, two_ports)
    other = add_host(subnet)
    cable(subnet, two_ports, other)
    assert {end.guid for end in in_reach(subnet, ORIGIN)} == set(subnet.nodes) - {other}


def test_of_an_end_node_the_ports_in_reach_count():
    subnet = star(hosts=1)
    two_ports = add_host(subnet, 2)
    cable(subnet, SWITCH_GUID, two_ports)
    found = deepcopy(subnet)
    del found.nodes[two_ports].end_ports[2]
    assert differences(subnet, found, ORIGIN) == []
    found.nodes[two_ports].end_ports[1].guid += 7
    (said,) = differences(subnet, found, ORIGIN)
    assert said.startswith(f"found to be another than in the file: CA 0x{two_ports:016x}")
