"""Fat tree routing: up and then down by the fewest links, and a shift of any length is free of conflicts."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from sm.credit_loops import find_credit_loop
from sm.lids import assign_lids
from sm.routing.fat_tree import fat_tree, host_order
from sm.routing.up_down import up_down
from sm.subnet import Subnet
from tests.sm import subnets
from tests.sm.subnets import lids_behind, links_from, ring, star, three_level_tree, walk

TREES = {
    "2 levels": subnets.fat_tree(6, 4, hosts=4),
    "parallel links": subnets.fat_tree(4, 2, hosts=4, parallel=2),
    "fewer hosts than links up": subnets.fat_tree(8, 4, hosts=2),
    "3 levels": three_level_tree(4, 4),
    "3 levels of 6 ports": three_level_tree(6, 3),
}
FULL = [pytest.param(tree, id=name) for name, tree in TREES.items()]


def shuffled(subnet, seed):
    """The same subnet, its nodes found in another order."""
    random = Random(seed)
    nodes = list(subnet.nodes.items())
    random.shuffle(nodes)
    return Subnet(dict(nodes), {end: link for link in subnet.links for end in (link.a, link.b)})


def uses(subnet, lids, tables, order, shift):
    """How many packets take each link in one direction as each host sends to the one `shift` places on."""
    homes = lids_behind(subnet, lids)
    return Counter(
        end
        for place, source in enumerate(order)
        for end in walk(subnet, tables, homes[source][0], order[(place + shift) % len(order)])[:-1]
    )


@pytest.mark.parametrize("tree", FULL)
@pytest.mark.parametrize("seed", [None, 1])
def test_each_shift_takes_a_link_once_at_most(tree, seed):
    subnet = tree if seed is None else shuffled(tree, seed)
    lids = assign_lids(subnet)
    routes = fat_tree(subnet, lids)
    order = host_order(subnet, lids)
    assert not routes.remark
    for shift in range(1, len(order)):
        assert max(uses(subnet, lids, routes.tables, order, shift).values()) == 1


@pytest.mark.parametrize("tree", FULL)
@pytest.mark.parametrize("lost", [0, 1, 3])
@pytest.mark.parametrize("lmc", [0, 1])
def test_every_lid_is_reached_by_the_fewest_links_up_and_down_without_a_credit_loop(tree, lost, lmc):
    subnet = replace(tree)
    between = [link for link in tree.links if tree.nodes[link.a.guid].is_switch and tree.nodes[link.b.guid].is_switch]
    for link in Random(lost).sample(between, lost):
        subnet = subnet.without(link)
    lids = assign_lids(subnet, lmc)
    routes = fat_tree(subnet, lids)
    assert not routes.remark
    assert find_credit_loop(subnet, lids, routes.tables) is None
    homes = lids_behind(subnet, lids)
    hosts = {home for home, port in homes.values() if port}
    for switch in subnet.switches:
        distance = links_from(subnet, switch.guid)
        for lid, (home, _port) in homes.items():
            way = walk(subnet, routes.tables, switch.guid, lid)
            assert way is not None
            if not lost and {switch.guid, home} <= hosts:
                assert len(way) == distance[home] + 1


def test_a_lost_link_moves_only_what_took_it():
    subnet = subnets.fat_tree(6, 4, hosts=4)
    lids = assign_lids(subnet)
    before = fat_tree(subnet, lids).tables
    link = next(link for link in subnet.links if subnet.nodes[link.a.guid].is_switch)
    after = fat_tree(subnet.without(link), lids).tables
    homes = lids_behind(subnet, lids)
    leaf, spine = sorted((link.a.guid, link.b.guid))
    moved = {(guid, lid) for guid, table in before.items() for lid in homes if after[guid][lid] != table[lid]}
    hosts = {lid for lid, (_home, port) in homes.items() if port}
    for guid, lid in moved:
        if lid in hosts:
            assert spine in {end.guid for end in walk(subnet, before, guid, lid)}
            assert leaf in {guid, homes[lid][0]} or guid == spine


def test_the_lids_of_a_port_go_by_different_spines():
    subnet = subnets.fat_tree(4, 2, hosts=2, parallel=2)
    lids = assign_lids(subnet, lmc=2)
    tables = fat_tree(subnet, lids).tables
    leaf = subnet.switches[0].guid
    for found in lids.values():
        ports = [tables[leaf][lid] for lid in found.lids]
        if lids_behind(subnet, lids)[found.first][0] != leaf and len(ports) == 4:
            assert len(set(ports)) == 4


@pytest.mark.parametrize(
    ("subnet", "why"),
    [
        (ring(5), "switches 0x0000000000200000 and 0x0000000000200004 are on one level"),
        (star(3), ""),
    ],
)
def test_what_is_no_fat_tree_is_routed_up_and_down_and_told(subnet, why):
    lids = assign_lids(subnet)
    routes = fat_tree(subnet, lids)
    assert routes.remark == (f"no fat tree, routed up/down: {why}" if why else "")
    if why:
        assert routes.tables == up_down(subnet, lids).tables
