"""Credit loops in the channel dependency graph."""

from itertools import pairwise
from pathlib import Path

import pytest

from cosim.topology.topology_file import read_topology
from sm.credit_loops import find_credit_loop
from sm.lids import assign_lids, parse_guid2lid
from sm.routing.lash import lash
from sm.routing.min_hop import min_hop
from sm.routing.up_down import up_down
from tests.files import TOPOLOGIES
from tests.sm.opensm_tables import read_fdbs
from tests.sm.subnets import fat_tree, lids_behind, random_subnet, ring, three_level_tree, walk

OPENSM = Path(__file__).parent / "opensm"


@pytest.mark.parametrize("switches", [5, 6, 7])
def test_shortest_ways_round_a_ring_of_five_and_more_are_a_credit_loop(switches):
    """Every packet over two links or more holds one and waits for the next, all round."""
    subnet = ring(switches)
    lids = assign_lids(subnet)
    loop = find_credit_loop(subnet, lids, min_hop(subnet, lids).tables)
    assert sorted(channel.end.guid for channel in loop) == [switch.guid for switch in subnet.switches]
    assert len({channel.end.port for channel in loop}) == 1, "one way round"
    for channel, after in pairwise([*loop, loop[0]]):
        assert subnet.peer(channel.end).guid == after.end.guid
    assert find_credit_loop(subnet, lids, up_down(subnet, lids).tables) is None


def test_no_host_s_packet_in_a_ring_of_three_crosses_two_links():
    subnet = ring(3)
    lids = assign_lids(subnet)
    assert find_credit_loop(subnet, lids, min_hop(subnet, lids).tables) is None


@pytest.mark.parametrize("subnet", [fat_tree(4, 2, hosts=2), fat_tree(6, 3, hosts=4, parallel=2)])
def test_a_fat_tree_has_none(subnet):
    lids = assign_lids(subnet)
    assert find_credit_loop(subnet, lids, min_hop(subnet, lids).tables) is None


def test_packets_from_switch_to_switch_can_close_one_where_those_of_hosts_do_not():
    """A core switch's path to another core switch goes down and up again."""
    subnet = three_level_tree(4, 4)
    lids = assign_lids(subnet)
    tables = min_hop(subnet, lids).tables
    assert find_credit_loop(subnet, lids, tables) is None
    assert find_credit_loop(subnet, lids, tables, management=True) is not None


@pytest.mark.parametrize("seed", range(60))
def test_a_loop_is_found_if_and_only_if_the_ways_of_packets_hold_one(seed):
    """Against a graph made of whole paths, on which circles are found by taking away what waits for nothing."""
    subnet = random_subnet(seed)
    lids = assign_lids(subnet, lmc=1)
    tables = min_hop(subnet, lids).tables
    sources = [
        switch.guid
        for switch in subnet.switches
        if any(not subnet.nodes[far.guid].is_switch for _port, far in subnet.neighbours(switch.guid))
    ]
    waits = set()
    for lid, (_home, port) in lids_behind(subnet, lids).items():
        for way in (walk(subnet, tables, source, lid) for source in sources):
            if port and way:
                waits |= set(pairwise(way[:-1]))
    found = find_credit_loop(subnet, lids, tables)
    if found is not None:
        assert set(pairwise([channel.end for channel in [*found, found[0]]])) <= waits
    left = waits
    while any(left - (kept := {(one, other) for one, other in left if other in {first for first, _ in left}})):
        left = kept
    assert (found is None) == (not left)


def test_each_vl_is_a_channel_of_its_own():
    """Routes on two VLs without a circle have one where links have a VL only, or packets an SL."""
    subnet = ring(6)
    lids = assign_lids(subnet)
    routes = lash(subnet, lids)
    found = lids, routes.tables
    assert routes.vls_needed == 2
    assert find_credit_loop(subnet, *found, service_level=routes.service_level) is None
    one_vl = find_credit_loop(subnet, *found, service_level=routes.service_level, vl=lambda _end, _sl: 3)
    assert {channel.vl for channel in one_vl} == {3}
    assert len(find_credit_loop(subnet, *found)) == 6


@pytest.mark.parametrize(("name", "loop"), [("ring_5", True), ("ring_5_up_down", False), ("fat_tree", False)])
def test_opensm_s_tables_are_judged_as_ibdmchk_judges_them(name, loop):
    """Tables of OpenSM 3.3.23, min-hop and up/down; the verdicts are those of ibdmchk 1.5.7."""
    fabric = name.removesuffix("_up_down")
    subnet = read_topology(TOPOLOGIES / f"{fabric}.net").subnet
    lids = parse_guid2lid((OPENSM / f"{fabric}.guid2lid").read_text(), fabric)
    tables, _hops = read_fdbs(OPENSM / f"{name}.fdbs")
    assert (find_credit_loop(subnet, lids, tables) is not None) == loop
