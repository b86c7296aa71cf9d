"""Up/down routing: every packet arrives, none goes up after it went down, and no credit loop can form."""

import itertools
from pathlib import Path

import pytest

from cosim.topology.topology_file import read_topology
from sm.credit_loops import find_credit_loop
from sm.errors import RoutingError
from sm.lids import assign_lids, parse_guid2lid
from sm.routing.min_hop import min_hop
from sm.routing.up_down import choose_roots, up_down
from sm.subnet import End, Subnet
from tests.files import TOPOLOGIES
from tests.sm.opensm_tables import read_fdbs
from tests.sm.subnets import (
    SWITCH_GUID,
    add_host,
    add_switch,
    cable,
    fat_tree,
    lids_behind,
    links_from,
    random_subnet,
    ring,
    three_level_tree,
    walk,
)

OPENSM = Path(__file__).parents[1] / "opensm"


def ranks(subnet, roots):
    """Of each switch: links to the nearest root, then the GUID. A link goes up to the lower rank."""
    hops = [links_from(subnet, root) for root in roots]
    return {
        switch.guid: (min(links[switch.guid] for links in hops if switch.guid in links), switch.guid)
        for switch in subnet.switches
    }


def goes_up(subnet, rank, end):
    far = subnet.peer(end)
    return rank[far.guid] < rank[end.guid]


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("given", [False, True])
def test_no_packet_goes_up_again_and_hosts_reach_all(seed, given):
    subnet = random_subnet(seed)
    lids = assign_lids(subnet, lmc=1)
    # One root for each island of switches, any of them.
    islands = {frozenset(links_from(subnet, switch.guid)) for switch in subnet.switches}
    roots = [max(island) for island in islands] if given else choose_roots(subnet)
    routes = up_down(subnet, lids, roots if given else None)
    rank = ranks(subnet, roots)
    hosts = {home for home, port in lids_behind(subnet, lids).values() if port}
    for switch in subnet.switches:
        distance = links_from(subnet, switch.guid)
        for lid, (home, port) in lids_behind(subnet, lids).items():
            way = walk(subnet, routes.tables, switch.guid, lid)
            if way is None:
                assert home not in distance
                continue
            assert way[-1] == End(home, port)
            assert len(way) > distance[home]
            directions = [goes_up(subnet, rank, end) for end in way[:-1]]
            if given or {home, switch.guid} <= hosts:
                assert directions == sorted(directions, reverse=True)
    assert find_credit_loop(subnet, lids, routes.tables, management=given) is None


@pytest.mark.parametrize(
    ("subnet", "roots"),
    [
        (fat_tree(4, 2, hosts=2), 2),
        (fat_tree(12, 6, hosts=3, parallel=3), 6),
        (three_level_tree(4, 4), 4),
    ],
)
def test_a_fat_tree_s_roots_are_its_spines_and_its_ways_are_shortest(subnet, roots):
    lids = assign_lids(subnet)
    found = choose_roots(subnet)
    distances = [
        min(links_from(subnet, home)[root] for home, port in lids_behind(subnet, lids).values() if port)
        for root in found
    ]
    assert len(found) == roots
    assert len(set(distances)) == 1
    shortest, tables = min_hop(subnet, lids).tables, up_down(subnet, lids).tables
    for lid in (lid for lid, (_home, port) in lids_behind(subnet, lids).items() if port):
        for switch in subnet.switches:
            assert len(walk(subnet, tables, switch.guid, lid)) == len(walk(subnet, shortest, switch.guid, lid))


def test_a_spine_that_lost_a_link_stays_a_root():
    subnet = fat_tree(4, 2, hosts=2)
    subnet.disconnect(End(SWITCH_GUID + 4, 1))
    assert choose_roots(subnet) == [SWITCH_GUID + 4, SWITCH_GUID + 5]
    lids = assign_lids(subnet)
    tables = up_down(subnet, lids).tables
    for lid in lids_behind(subnet, lids):
        assert all(walk(subnet, tables, switch.guid, lid) for switch in subnet.switches)
    assert find_credit_loop(subnet, lids, tables) is None


def test_where_spines_cannot_serve_all_there_is_one_root_in_the_middle():
    """Hosts at A and E of A-B-C-D-E, and at C: B and D are the farthest from hosts, but A to E would go down and up."""
    subnet = Subnet()
    line = [add_switch(subnet, 3) for _ in range(5)]
    for before, after in itertools.pairwise(line):
        cable(subnet, before, after)
    for switch in line[::2]:
        cable(subnet, switch, add_host(subnet))
    assert choose_roots(subnet) == [line[2]]


def test_a_ring_s_packets_do_not_cross_the_bottom():
    subnet = ring(6)
    lids = assign_lids(subnet)
    routes = up_down(subnet, lids, [SWITCH_GUID])
    bottom = [End(SWITCH_GUID + 2, 3), End(SWITCH_GUID + 3, 2), End(SWITCH_GUID + 3, 3), End(SWITCH_GUID + 4, 2)]
    ways = [
        walk(subnet, routes.tables, SWITCH_GUID + start, lid)
        for start, goal in ((2, 4), (4, 2))
        for lid, home in lids_behind(subnet, lids).items()
        if home[0] == SWITCH_GUID + goal
    ]
    assert len(ways) == 4
    assert not any(end in way for way in ways for end in bottom)


def test_ways_in_a_ring_are_as_long_as_opensm_s():
    """OpenSM 3.3.23 with -R updn and switch R1 as root."""
    subnet = read_topology(TOPOLOGIES / "ring_5.net").subnet
    lids = parse_guid2lid((OPENSM / "ring_5.guid2lid").read_text(), "guid2lid")
    ours = up_down(subnet, lids, [0x200000]).tables
    theirs, _hops = read_fdbs(OPENSM / "ring_5_up_down.fdbs")
    for lid in lids_behind(subnet, lids):
        for switch in ours:
            assert len(walk(subnet, ours, switch, lid)) == len(walk(subnet, theirs, switch, lid))


def test_a_root_that_is_no_switch_is_an_error():
    subnet = ring(3)
    with pytest.raises(RoutingError, match=r"^root 0x0000000000100000: no switch has this GUID$"):
        up_down(subnet, assign_lids(subnet), [0x100000])


def test_roots_by_which_hosts_cannot_meet_are_an_error():
    subnet = ring(4)
    with pytest.raises(RoutingError, match=r"^roots leave switch 0x\w{16} no way up and down to switch 0x\w{16}$"):
        up_down(subnet, assign_lids(subnet), [SWITCH_GUID, SWITCH_GUID + 2])
