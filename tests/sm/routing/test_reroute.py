"""Routing around a failure: what need not change stays."""

from collections import Counter

import pytest

from sm.lids import assign_lids
from sm.routing.min_hop import min_hop
from sm.routing.up_down import choose_roots, up_down
from sm.subnet import End
from tests.sm.subnets import fat_tree, lids_behind, links_from, random_subnet, walk
from wire.forwarding_tables import LFT_NO_ROUTE


def between_switches(subnet):
    return [
        link for link in subnet.links if subnet.nodes[link.a.guid].is_switch and subnet.nodes[link.b.guid].is_switch
    ]


@pytest.mark.parametrize("seed", [seed for seed in range(70) if between_switches(random_subnet(seed))])
@pytest.mark.parametrize("lmc", [0, 1])
def test_only_entries_change_that_no_longer_begin_a_shortest_way(seed, lmc):
    subnet = random_subnet(seed)
    lids = assign_lids(subnet, lmc)
    before = min_hop(subnet, lids)
    links = between_switches(subnet)
    link = links[seed % len(links)]
    subnet.disconnect(link.a)
    after = min_hop(subnet, lids, before.tables)
    for lid, (home, _port) in lids_behind(subnet, lids).items():
        distance = links_from(subnet, home)
        for switch in subnet.switches:
            old, new = before.tables[switch.guid][lid], after.tables[switch.guid][lid]
            if switch.guid not in distance:
                assert new == LFT_NO_ROUTE
                continue
            assert len(walk(subnet, after.tables, switch.guid, lid)) == distance[switch.guid] + 1
            if old != new:
                still_shortest = {
                    port
                    for port, far in subnet.neighbours(switch.guid)
                    if distance.get(far.guid, 1 << 30) < distance[switch.guid]
                }
                assert old not in still_shortest


@pytest.mark.parametrize("engine", [min_hop, up_down])
def test_a_lost_link_of_a_fat_tree_moves_its_own_lids_only(engine):
    subnet = fat_tree(12, 6, hosts=18, parallel=3)
    lids = assign_lids(subnet)
    before = engine(subnet, lids).tables
    link = between_switches(subnet)[0]
    subnet.disconnect(link.a)
    after = engine(subnet, lids, previous=before).tables
    moved = {(guid, lid) for guid in before for lid, port in enumerate(before[guid]) if after[guid][lid] != port}
    on_link = {
        (end.guid, lid) for end in (link.a, link.b) for lid, port in enumerate(before[end.guid]) if port == end.port
    }
    assert moved == on_link
    hosts = {lid for lid, (_home, port) in lids_behind(subnet, lids).items() if port}
    assert len([lid for _guid, lid in moved if lid in hosts]) == 11 + 6
    leaf = link.a.guid
    far = {port: end for port, end in subnet.neighbours(leaf) if subnet.nodes[end.guid].is_switch}
    loads = Counter(after[leaf][lid] for lid in hosts if after[leaf][lid] in far)
    assert sorted(loads.values()) == [11] * 6 + [12] * 11, "the 11 LIDs go by as many other links"


def test_an_up_down_re_route_keeps_to_the_rule():
    subnet = fat_tree(4, 2, hosts=2)
    lids = assign_lids(subnet)
    before = up_down(subnet, lids)
    for link in between_switches(subnet):
        subnet.disconnect(link.a)
        after = up_down(subnet, lids, choose_roots(subnet), before.tables)
        for lid, (_home, port) in lids_behind(subnet, lids).items():
            if port:
                assert all(walk(subnet, after.tables, switch.guid, lid) for switch in subnet.switches)
        subnet.connect(link.a, link.b, link.width, link.speed)


def test_a_host_that_is_gone_has_no_ways_left():
    subnet = fat_tree(2, 2, hosts=2)
    lids = assign_lids(subnet)
    before = min_hop(subnet, lids)
    gone = next(node.guid for node in subnet.nodes.values() if not node.is_switch)
    lid = lids.pop(gone + 1).first
    subnet.remove(gone)
    after = min_hop(subnet, lids, before.tables)
    for guid, table in before.tables.items():
        changed = {
            number
            for number, port in enumerate(table)
            if number >= len(after.tables[guid]) or after.tables[guid][number] != port
        }
        assert changed == {lid}


def test_a_link_that_comes_back_changes_nothing_that_is_still_shortest():
    subnet = fat_tree(4, 2, hosts=2)
    lids = assign_lids(subnet)
    before = min_hop(subnet, lids)
    link = between_switches(subnet)[0]
    subnet.disconnect(link.a)
    without = min_hop(subnet, lids, before.tables)
    subnet.connect(link.a, link.b, link.width, link.speed)
    again = min_hop(subnet, lids, without.tables)
    for lid, (home, port) in lids_behind(subnet, lids).items():
        if port:
            for switch in subnet.switches:
                way = walk(subnet, again.tables, switch.guid, lid)
                assert len(way) == links_from(subnet, home)[switch.guid] + 1


def test_a_new_host_s_lid_takes_the_link_that_has_the_fewest():
    whole, subnet = fat_tree(2, 2, hosts=4), fat_tree(2, 2, hosts=4)
    near, far = (switch.guid for switch in subnet.switches[:2])
    new = subnet.peer(End(far, 4)).guid
    subnet.remove(new)
    before = min_hop(subnet, assign_lids(subnet))
    hosts = {lid for lid, (home, port) in lids_behind(subnet, assign_lids(subnet)).items() if home == far and port}
    loads = Counter(before.tables[near][lid] for lid in hosts)
    assert sorted(loads.values()) == [1, 2]
    lids = assign_lids(whole, previous=assign_lids(subnet))
    after = min_hop(whole, lids, before.tables)
    assert after.tables[near][lids[new + 1].first] == min(loads, key=loads.__getitem__)
