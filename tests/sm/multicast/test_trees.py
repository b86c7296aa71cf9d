"""A tree leads a packet of any member to each other one that receives, once, on every kind of subnet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from sm.multicast.trees import MulticastTrees
from sm.subnet import End, Subnet
from tests.sm.multicast.packets import copies, ports_of
from tests.sm.subnets import (
    HOST_GUID,
    fat_tree,
    grid,
    hypercube,
    parallel_pair,
    random_subnet,
    ring,
    seen_from,
    star,
    three_level_tree,
)

MLID = 0xC003

SUBNETS = {
    "star": lambda: star(6),
    "parallel links": lambda: parallel_pair(3, 3),
    "line": lambda: grid(6, torus=False),
    "ring": lambda: ring(7),
    "ring of two": lambda: ring(2),
    "fat tree": lambda: fat_tree(4, 2, 3),
    "three levels": lambda: three_level_tree(4, 3),
    "torus": lambda: grid(3, 4, torus=True),
    "hypercube": lambda: hypercube(4),
    **{f"random {seed}": lambda seed=seed: random_subnet(seed) for seed in range(40)},
}


def hosts(subnet: Subnet) -> dict[int, End]:
    """Ports of hosts at switches, by PortGUID."""
    return {
        port.guid: end
        for end, port in subnet.reachable_end_ports
        if not subnet.nodes[end.guid].is_switch and subnet.nodes[subnet.peer(end).guid].is_switch
    }


def tree(subnet: Subnet, members: Mapping[int, bool], small: Mapping[int, int] | None = None) -> dict[int, set[int]]:
    """The masks as ports; `small` has the tables that have no room for 64 MLIDs."""
    caps = {switch.guid: 64 for switch in subnet.switches} | dict(small or {})
    return {guid: ports_of(mask) for guid, mask in MulticastTrees(subnet, caps).masks(MLID, members).items()}


def check(subnet: Subnet, members: Mapping[int, bool], small: Mapping[int, int] | None = None) -> dict[int, set[int]]:
    """Each member sends: one copy gets to every other that receives and that links and switches lead to."""
    masks, at = tree(subnet, members, small), hosts(subnet)
    passed = Subnet(dict(subnet.nodes))
    for link in subnet.links:
        if not {link.a.guid, link.b.guid} & {guid for guid, cap in (small or {}).items() if cap <= MLID - 0xC000}:
            passed.connect(link.a, link.b)
    for sender in members:
        reached = hosts(seen_from(passed, at[sender])) if passed.link(at[sender]) else {}
        wanted = {at[guid]: 1 for guid, receives in members.items() if receives and guid != sender and guid in reached}
        assert copies(subnet, masks, at[sender]) == wanted
    return masks


@pytest.mark.parametrize("kind", SUBNETS)
def test_a_tree_reaches_exactly_the_members_once_each(kind):
    subnet, random = SUBNETS[kind](), Random(kind)
    at = sorted(hosts(subnet))
    check(subnet, dict.fromkeys(at, True))
    for _time in range(4):
        chosen = random.sample(at, random.randint(0, len(at)))
        check(subnet, {guid: random.random() < 0.7 for guid in chosen})


@pytest.mark.parametrize("kind", ["ring", "fat tree", "torus", *(f"random {seed}" for seed in range(20))])
def test_a_switch_without_room_for_the_group_is_left_out_and_others_go_round_it(kind):
    subnet, random = SUBNETS[kind](), Random(kind)
    without = random.choice(subnet.switches).guid
    members = dict.fromkeys(hosts(subnet), True)
    for cap in (0, MLID - 0xC000):
        assert without not in check(subnet, members, {without: cap})
    assert tree(subnet, members, {without: MLID - 0xC000 + 1}) == tree(subnet, members)


def test_switches_without_members_behind_them_have_no_part_in_a_tree():
    subnet = grid(6, torus=False)
    first, second = sorted(hosts(subnet))[1:3]
    at = {subnet.peer(end).guid for guid, end in hosts(subnet).items() if guid in (first, second)}
    assert tree(subnet, {first: True, second: True}).keys() == at


def test_to_a_member_that_only_sends_nothing_leads():
    subnet = ring(5)
    first, second, third = sorted(hosts(subnet))[:3]
    masks = tree(subnet, {first: True, second: False, third: True})
    assert not any(
        subnet.peer(End(guid, port)) == hosts(subnet)[second] for guid, ports in masks.items() for port in ports
    )


def test_a_member_alone_needs_no_tree():
    assert tree(star(3), {HOST_GUID + 1: True}) == {}
    assert tree(star(3), {}) == {}


def test_of_parallel_links_a_tree_has_one():
    subnet = parallel_pair(2, 3)
    masks = tree(subnet, dict.fromkeys(hosts(subnet), True))
    assert list(masks.values()) == [{1, 2, 3}, {1, 2, 3}]


OPENSM = {
    "ring": lambda: ring(5),
    "fat_tree": lambda: fat_tree(4, 2, 3),
    "torus": lambda: grid(3, 3, torus=True),
    "parallel": lambda: parallel_pair(3, 2),
    "three": lambda: three_level_tree(4, 3),
    "cube": lambda: hypercube(3),
}


def opensm_trees() -> dict[str, tuple[list[int], dict[int, set[int]]]]:
    """Members and trees by the subnet's name."""
    trees: dict[str, tuple[list[int], dict[int, set[int]]]] = {}
    name = ""
    for line in (Path(__file__).parents[1] / "opensm" / "multicast.txt").read_text().splitlines():
        words = line.split()
        if words[0] in OPENSM:
            name = words[0]
            trees[name] = [int(word, 16) for word in words[1:]], {}
        elif words[0] != "#":
            guid, mask = (int(word, 16) for word in words)
            trees[name][1][guid] = ports_of(mask)
    return trees


@pytest.mark.parametrize("name", OPENSM)
def test_trees_are_those_that_opensm_builds(name):
    members, masks = opensm_trees()[name]
    assert tree(OPENSM[name](), dict.fromkeys(members, True)) == masks
