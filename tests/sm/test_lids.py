"""LIDs: unique, aligned to the LMC, and the same from run to run."""

from pathlib import Path

import pytest

from cosim.topology.topology_file import read_topology
from sm.lids import (
    Guid2LidError,
    LidError,
    LidRange,
    assign_lids,
    format_guid2lid,
    parse_guid2lid,
    remembered_lids,
    with_lids_in_force,
)
from sm.subnet import EndPort, Node, Subnet
from tests.files import TOPOLOGIES
from tests.sm.subnets import SWITCH_GUID, add_host, add_switch, cable, fat_tree, random_subnet, ring
from wire.node_info import NodeType

OPENSM = Path(__file__).parent / "opensm"


@pytest.mark.parametrize("lmc", range(8))
def test_adapters_have_aligned_ranges_and_switches_one_lid(lmc):
    subnet = fat_tree(3, 2, hosts=3)
    lids = assign_lids(subnet, lmc)
    taken = [lid for found in lids.values() for lid in found.lids]
    assert len(taken) == len(set(taken)) == 5 + 9 * 2**lmc
    for end, port in subnet.reachable_end_ports:
        count = 1 if subnet.nodes[end.guid].is_switch else 2**lmc
        assert lids[port.guid].first % count == 0
        assert len(lids[port.guid].lids) == count
        assert 1 << lids[port.guid].lmc == count
    assert min(taken) == 1


def test_a_port_without_a_link_has_no_lid():
    subnet = Subnet()
    switch, host = add_switch(subnet, 2), add_host(subnet, ports=2)
    cable(subnet, switch, host)
    assert set(assign_lids(subnet)) == {switch, host + 1}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("lmc", [0, 2])
def test_lids_stay_when_nodes_go_come_and_are_found_in_another_order(seed, lmc):
    subnet = random_subnet(seed)
    before = parse_guid2lid(format_guid2lid(assign_lids(subnet, lmc)), "guid2lid")
    gone = subnet.switches[seed % len(subnet.switches)].guid
    changed = Subnet()
    for node in reversed(subnet.nodes.values()):
        changed.add(node)
    for link in subnet.links:
        changed.connect(link.a, link.b)
    changed.remove(gone)
    new = 0x300000
    changed.add(Node(new, NodeType.SWITCH, 2, {0: EndPort(new)}))
    after = assign_lids(changed, lmc, before)
    assert after[new] not in before.values(), "the LID of a node that may come back"
    assert all(before[guid] == lids for guid, lids in after.items() if guid != new)


def test_lids_of_absent_nodes_are_given_away_when_no_others_are_left():
    before = {guid: LidRange(guid, guid) for guid in range(1, 0xBFFF)}
    subnet = ring(3)
    lids = assign_lids(subnet, previous=before)
    assert len(set(lids.values())) == 6


def test_a_smaller_lmc_keeps_the_base_lid_and_a_greater_one_makes_room():
    subnet = ring(3)
    wide = assign_lids(subnet, 2)
    narrow = assign_lids(subnet, 0, wide)
    assert {guid: lids.first for guid, lids in wide.items()} == {guid: lids.first for guid, lids in narrow.items()}
    assert all(lids.first % 4 == 0 for guid, lids in assign_lids(subnet, 2, narrow).items() if guid < SWITCH_GUID)


def test_a_range_that_an_lmc_cannot_express_is_not_kept():
    subnet = ring(3)
    host = min(assign_lids(subnet))
    lids = assign_lids(subnet, 2, {host: LidRange(5, 8)})
    assert lids[host].first % 4 == 0


def test_more_lids_than_there_are_is_an_error():
    subnet = Subnet()
    for guid in range(1, 0xC000):
        subnet.add(Node(guid, NodeType.SWITCH, 1, {0: EndPort(guid)}))
    assert {lids.first for lids in assign_lids(subnet).values()} == set(range(1, 0xC000))
    subnet.add(Node(0xC000, NodeType.SWITCH, 1, {0: EndPort(0xC000)}))
    with pytest.raises(
        LidError, match=r"^49152 LIDs for 49152 ports with LMC 0: there are 49151 \(0x0001\.\.0xbfff\)$"
    ):
        assign_lids(subnet)


def test_an_lmc_has_three_bits():
    with pytest.raises(LidError, match=r"LMC 8: expected 0\.\.7"):
        assign_lids(ring(3), 8)


def test_two_ports_of_one_guid_are_told():
    subnet = ring(3)
    subnet.nodes[SWITCH_GUID].end_ports[0].guid = SWITCH_GUID + 1
    with pytest.raises(LidError, match=r"port GUID 0x0000000000200001 belongs to two ports"):
        assign_lids(subnet)


@pytest.mark.parametrize("name", ["parallel", "odd", "ring_5", "fat_tree"])
def test_opensm_s_guid2lid_is_kept(name):
    """Files that OpenSM 3.3.23 wrote for the same fabrics under ibsim."""
    text = (OPENSM / f"{name}.guid2lid").read_text()
    theirs = parse_guid2lid(text, name)
    assert assign_lids(read_topology(TOPOLOGIES / f"{name}.net").subnet, previous=theirs) == theirs
    assert format_guid2lid(theirs) == text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("0x1 0x1 0x1\n\n0x2 one two", "'0x2 one two': expected 0xGUID 0xLID 0xLID"),
        ("# none\n\n0x2 0x1", "'0x2 0x1': expected"),
        ("0x1 0x1 0x1\n\n0x2 0x0 0x0", "LIDs 0x0000 to 0x0000: expected 0x0001..0xbfff, the lower one first"),
        ("0x1 0x1 0x1\n\n0x2 0xc000 0xc000", "LIDs 0xc000 to 0xc000: expected"),
        ("0x1 0x1 0x1\n\n0x2 7 6", "LIDs 0x0007 to 0x0006: expected"),
        ("0x1 0x1 0x1\n\n0x1 0x2 0x2", "GUID 0x0000000000000001 stands twice, expected once"),
        ("0x1 0x4 0x7\n\n0x2 0x6 0x6", "LID 0x0006 is given out in line 1 already"),
    ],
)
def test_a_wrong_guid2lid_line_is_named(text, error):
    with pytest.raises(Guid2LidError) as caught:
        parse_guid2lid(text, "guid2lid")
    assert str(caught.value).startswith(f"guid2lid:3: {error}")


def test_lids_in_force_are_taken_up_unless_they_are_anothers():
    subnet = ring(3)
    ports = [port for _end, port in subnet.reachable_end_ports]
    for port, lid in zip(ports, (4, 5, 5, 9, 0, 0xC000), strict=True):
        port.lid = lid
    ports[3].lmc = 1
    known = with_lids_in_force(subnet, {0xAB: LidRange(4, 4), ports[4].guid: LidRange(20, 20)})
    assert known == {
        0xAB: LidRange(4, 4),
        ports[4].guid: LidRange(20, 20),
        ports[1].guid: LidRange(5, 5),
        ports[3].guid: LidRange(8, 9),
    }


def test_the_lids_of_absent_ports_are_remembered_while_nobody_else_has_them():
    assigned = {1: LidRange(1, 1), 2: LidRange(4, 5)}
    previous = {1: LidRange(9, 9), 3: LidRange(5, 5), 4: LidRange(2, 3)}
    assert remembered_lids(assigned, previous) == {**assigned, 4: LidRange(2, 3)}
