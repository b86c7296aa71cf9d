"""Min-hop routing: every packet arrives, by as few links as can be, and the load is shared."""

from collections import Counter
from pathlib import Path

import pytest

from cosim.topology.topology_file import read_topology
from sm.lids import assign_lids, parse_guid2lid
from sm.routing.min_hop import min_hop
from sm.subnet import End
from tests.files import TOPOLOGIES
from tests.sm.opensm_tables import read_fdbs
from tests.sm.subnets import (
    SWITCH_GUID,
    fat_tree,
    lids_behind,
    links_from,
    random_subnet,
    ring,
    three_level_tree,
    walk,
)
from wire.forwarding_tables import LFT_NO_ROUTE

OPENSM = Path(__file__).parents[1] / "opensm"


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("lmc", [0, 2])
def test_every_lid_is_reached_by_the_fewest_links(seed, lmc):
    subnet = random_subnet(seed)
    lids = assign_lids(subnet, lmc)
    tables = min_hop(subnet, lids).tables
    homes = lids_behind(subnet, lids)
    for switch in subnet.switches:
        distance = links_from(subnet, switch.guid)
        for lid, (home, port) in homes.items():
            way = walk(subnet, tables, switch.guid, lid)
            if home not in distance:
                assert way is None
            else:
                assert way[-1] == End(home, port)
                assert len(way) == distance[home] + 1


@pytest.mark.parametrize("seed", range(50))
def test_backups_are_the_other_ports_that_lead_nearer(seed):
    subnet = random_subnet(seed)
    lids = assign_lids(subnet)
    routes = min_hop(subnet, lids)
    for lid, (home, _port) in lids_behind(subnet, lids).items():
        distance = links_from(subnet, home)
        for switch in subnet.switches:
            if switch.guid not in distance:
                assert routes.backups(switch.guid, lid) == ()
                continue
            nearer = {
                port
                for port, far in subnet.neighbours(switch.guid)
                if distance.get(far.guid, 1 << 30) < distance[switch.guid]
            }
            chosen = routes.tables[switch.guid][lid]
            assert set(routes.backups(switch.guid, lid)) == nearer - {chosen}
            assert switch.guid == home or chosen in nearer


def port_loads(subnet, tables, lids):
    """LIDs of hosts to which other hosts send by each port between switches."""
    homes = lids_behind(subnet, lids)
    leaves = {home for home, port in homes.values() if port}
    loads = {
        End(switch.guid, port): set()
        for switch in subnet.switches
        for port, far in subnet.neighbours(switch.guid)
        if subnet.nodes[far.guid].is_switch
    }
    for lid, (_home, port) in homes.items():
        for way in (walk(subnet, tables, leaf, lid) for leaf in leaves if port):
            for end in (way or [])[:-1]:
                loads[end].add(lid)
    return {end: len(found) for end, found in loads.items()}


@pytest.mark.parametrize(
    ("subnet", "up", "down"),
    [
        (fat_tree(12, 6, hosts=18, parallel=3), 11, 1),
        (fat_tree(4, 2, hosts=2), 3, 1),
    ],
)
def test_a_fat_tree_s_links_carry_the_same_number_of_lids(subnet, up, down):
    """For 216 hosts OpenSM's tables have the same numbers: 11 LIDs up a link, 1 down."""
    lids = assign_lids(subnet)
    loads = port_loads(subnet, min_hop(subnet, lids).tables, lids)
    leaves = {home for home, port in lids_behind(subnet, lids).values() if port}
    assert {load for end, load in loads.items() if end.guid in leaves} == {up}
    assert {load for end, load in loads.items() if end.guid not in leaves} == {down}


@pytest.mark.parametrize("hosts", [5, 6, 7, 12])
def test_a_leaf_s_links_up_differ_by_one_lid_at_most(hosts):
    subnet = fat_tree(5, 3, hosts, parallel=2)
    lids = assign_lids(subnet, lmc=1)
    tables = min_hop(subnet, lids).tables
    for leaf in subnet.switches[:5]:
        remote = [lid for lid, (home, port) in lids_behind(subnet, lids).items() if port and home != leaf.guid]
        loads = Counter(tables[leaf.guid][lid] for lid in remote)
        assert sum(loads.values()) == 4 * 2 * hosts
        assert set(loads) == set(range(hosts + 1, hosts + 7))
        assert max(loads.values()) - min(loads.values()) <= 1


def test_parallel_links_share_the_lids():
    subnet = fat_tree(2, 1, hosts=6, parallel=3)
    lids = assign_lids(subnet)
    assert set(port_loads(subnet, min_hop(subnet, lids).tables, lids).values()) == {2}


def test_the_lids_of_a_port_go_by_different_spines_and_then_by_different_links():
    subnet = fat_tree(2, 2, hosts=2, parallel=2)
    lids = assign_lids(subnet, lmc=2)
    tables = min_hop(subnet, lids).tables
    near, far = (switch.guid for switch in subnet.switches[:2])
    for found in (lids[guid] for guid in lids if guid < SWITCH_GUID):
        for leaf in (near, far):
            ports = [tables[leaf][lid] for lid in found.lids]
            if len(set(ports)) == 1:
                continue  # where the port is
            spines = [subnet.peer(End(leaf, port)).guid for port in ports]
            assert len(set(spines[:2])) == len(set(spines[2:])) == 2
            assert len(set(ports)) == 4


def test_a_lid_without_an_owner_has_no_way():
    subnet = ring(3)
    lids = assign_lids(subnet, lmc=2)
    used = {lid for found in lids.values() for lid in found.lids}
    for table in min_hop(subnet, lids).tables.values():
        assert len(table) == max(used) + 1
        assert {lid for lid, port in enumerate(table) if port != LFT_NO_ROUTE} == used


@pytest.mark.parametrize("name", ["parallel", "odd", "ring_5", "fat_tree"])
def test_ways_are_as_long_as_opensm_s(name):
    """OpenSM 3.3.23 routed the same fabrics under ibsim, with the same LIDs."""
    subnet = read_topology(TOPOLOGIES / f"{name}.net").subnet
    lids = parse_guid2lid((OPENSM / f"{name}.guid2lid").read_text(), name)
    ours = min_hop(subnet, lids).tables
    theirs, hops = read_fdbs(OPENSM / f"{name}.fdbs")
    homes = lids_behind(subnet, lids)
    assert ours.keys() == theirs.keys()
    for switch, links in hops.items():
        assert links.keys() == homes.keys()
        for lid, count in links.items():
            way = walk(subnet, ours, switch, lid)
            assert len(way) == len(walk(subnet, theirs, switch, lid))
            # OpenSM counts the link to a host, but none to port 0.
            assert len(way) - (homes[lid][1] == 0) == count


@pytest.mark.parametrize("levels", [2, 3])
def test_648_hosts_on_switches_of_36_ports_are_all_reached(levels):
    subnet = fat_tree(36, 18, hosts=18) if levels == 2 else three_level_tree(36, 2)
    lids = assign_lids(subnet)
    assert sum(guid < SWITCH_GUID for guid in lids) == 648
    tables = min_hop(subnet, lids).tables
    assert all(LFT_NO_ROUTE not in table[1:] for table in tables.values())
    if levels == 2:
        remote = [lid for lid, (home, port) in lids_behind(subnet, lids).items() if port and home != SWITCH_GUID]
        assert set(Counter(tables[SWITCH_GUID][lid] for lid in remote).values()) == {35}
