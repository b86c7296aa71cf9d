"""Tables follow the members and the links: who joins is reached, who leaves is not, and a cut link is gone round."""

from __future__ import annotations

from random import Random

import pytest

from sm.subnet import Subnet
from tests.sm.managed import Managed
from tests.sm.multicast.members import BROADCAST, GROUP, ends_of, host_guids, join, leave, masks, reached, recorded
from tests.sm.multicast.packets import copies
from tests.sm.subnets import fat_tree, grid, random_subnet, ring, star
from wire.mad import MadMethod
from wire.mc_member_record import JoinState
from wire.sma import SmaAttribute

MFT = SmaAttribute.MULTICAST_FORWARDING_TABLE
SUBNETS = {"star": lambda: star(5), "ring": lambda: ring(5), "fat tree": lambda: fat_tree(3, 2, 2)}


def brought_up(subnet: Subnet, cap: int = 64) -> Managed:
    return Managed(subnet, mft_cap=cap).bring_up()


def check(up: Managed, members: set[int], mlid: int = 0xC000) -> None:
    for sender in members:
        assert reached(up, sender, mlid) == sorted(members - {sender})


@pytest.mark.parametrize("kind", SUBNETS)
def test_members_reach_each_other_as_they_join_and_leave(kind):
    up, random = brought_up(SUBNETS[kind]()), Random(kind)
    members: set[int] = set()
    for _time in range(12):
        guid = random.choice(host_guids(up))
        if guid in members:
            leave(up, guid, BROADCAST)
        else:
            join(up, guid, BROADCAST)
        members ^= {guid}
        check(up, members)


def test_a_bring_up_without_members_writes_no_tables():
    up = brought_up(fat_tree(3, 2, 2))
    assert up.sent(MadMethod.SET, MFT) == up.sent(MadMethod.GET, MFT) == 0


def test_only_switches_with_other_masks_are_written():
    up = brought_up(fat_tree(3, 2, 2))
    hosts = host_guids(up)
    join(up, hosts[0], BROADCAST)
    assert recorded(up) == [], "a member alone needs no tree"
    join(up, hosts[1], BROADCAST)
    assert len(recorded(up)) == 1, "both are at one leaf"
    up.story.clear()
    join(up, hosts[1], BROADCAST, JoinState.NON)
    assert recorded(up) == []


def test_a_member_that_only_sends_reaches_the_others_and_is_not_reached():
    up = brought_up(ring(5))
    first, second, third, *_ = host_guids(up)
    join(up, first, BROADCAST)
    join(up, second, BROADCAST, JoinState.NON)
    join(up, third, BROADCAST, JoinState.SEND_ONLY_NON)
    assert reached(up, third) == [first, second]
    assert reached(up, first) == [second]


def test_each_group_has_its_own_tree():
    up = brought_up(ring(5))
    first, second, third, fourth, _fifth = host_guids(up)
    for guid in (first, second):
        join(up, guid, BROADCAST)
    for guid in (second, third, fourth):
        join(up, guid, GROUP)
    check(up, {first, second})
    check(up, {second, third, fourth}, 0xC001)


@pytest.mark.parametrize("kind", ["ring", "fat tree"])
def test_a_cut_link_is_gone_round_and_comes_back(kind):
    up = brought_up(SUBNETS[kind]())
    members = set(host_guids(up))
    for guid in members:
        join(up, guid, BROADCAST)
    for link in [link for link in up.subnet.links if up.subnet.nodes[link.b.guid].is_switch][:3]:
        if not (up.subnet.nodes[link.a.guid].is_switch and link in up.subnet.links):
            continue
        up.fabric.cut(link.a)
        up.until_quiet()
        check(up, members)
        up.fabric.join(link.a, link.b)
        up.until_quiet()
        check(up, members)


def test_a_port_that_goes_away_leaves_its_groups():
    up = brought_up(star(4))
    first, second, third, _fourth = host_guids(up)
    for guid in (first, second, third):
        join(up, guid, GROUP)
    end = next(end for end, guid in ends_of(up) if guid == third)
    far = up.subnet.peer(end)
    up.fabric.cut(end)
    up.until_quiet()
    check(up, {first, second}, 0xC001)
    up.fabric.join(far, end)
    up.until_quiet()
    assert third not in up.manager.groups.by_mgid[GROUP].members


@pytest.mark.parametrize("seed", range(6))
def test_no_packet_ever_goes_in_circles_while_tables_are_written(seed):
    print(f"seed {seed}")
    random = Random(seed)
    subnet = [grid(3, 3, torus=True), ring(6), random_subnet(seed)][seed % 3]
    up = brought_up(subnet)
    looked = 0

    def look() -> None:
        nonlocal looked
        looked += 1
        for end, _guid in ends_of(up):
            if not up.subnet.nodes[end.guid].is_switch and up.subnet.nodes[up.subnet.peer(end).guid].is_switch:
                copies(up.subnet, masks(up, 0xC000), end)

    up.fabric.on_mft = look
    members: set[int] = set()
    for step in range(20):
        guid = random.choice(host_guids(up))
        if guid in members:
            leave(up, guid, BROADCAST)
        else:
            join(up, guid, BROADCAST)
        members ^= {guid}
        links = [link for link in up.subnet.links if up.subnet.nodes[link.a.guid].is_switch]
        links = [link for link in links if up.subnet.nodes[link.b.guid].is_switch and link.a != link.b]
        if step % 5 == 4 and len(links) > 4:
            link = random.choice(links)
            up.fabric.cut(link.a)
            up.until_quiet()
            up.fabric.join(link.a, link.b)
            up.until_quiet()
            members &= set(up.manager.groups.by_mgid[BROADCAST].members)
    assert looked or len(host_guids(up)) < 2


def test_what_a_switch_that_does_not_answer_holds_up_follows_when_it_does():
    up = brought_up(ring(4))
    hosts = host_guids(up)
    join(up, hosts[1], BROADCAST)
    silent = up.subnet.peer(next(end for end, guid in ends_of(up) if guid == hosts[2])).guid
    up.fabric.refuses = lambda end, smp: 0x1C if smp.attribute_id == MFT and end.guid == silent else 0
    join(up, hosts[2], BROADCAST)
    up.fabric.refuses = lambda end, smp: 0
    up.until_quiet()
    check(up, set(hosts[1:3]))


def test_switches_without_a_multicast_table_are_asked_for_none():
    up = brought_up(ring(4), cap=0)
    hosts = host_guids(up)
    for guid in hosts:
        assert not join(up, guid, BROADCAST).status
    assert reached(up, hosts[0]) == []
    assert up.sent(MadMethod.SET, MFT) == up.sent(MadMethod.GET, MFT) == 0
