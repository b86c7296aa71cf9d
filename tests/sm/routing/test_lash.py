"""LASH: the fewest links, SLs by which no VL has a credit loop, few VLs; and all engines beside OpenSM's."""

import pytest

from cosim.topology.topology_file import read_topology
from sm.credit_loops import find_credit_loop
from sm.errors import RoutingError
from sm.events import CreditLoopFound, RoutingRemark
from sm.lids import assign_lids
from sm.qos_options import QosOptions
from sm.routing.figures import route_figures
from sm.routing.lash import lash
from sm.settings import SubnetSettings
from tests.files import TOPOLOGIES
from tests.sm.managed import Managed
from tests.sm.subnets import fat_tree, grid, lids_behind, links_from, random_subnet, ring, three_level_tree, walk


def loop_by_whole_paths(subnet, lids, routes):
    """Whether any SL has a circle, of all packets from and to hosts, by taking away what waits for nothing."""
    homes = lids_behind(subnet, lids)
    waits = set()
    for slid, (source, port) in homes.items():
        for dlid, (_home, place) in homes.items():
            way = walk(subnet, routes.tables, source, dlid) if port or place else None
            sl = routes.service_level(slid, dlid)
            waits |= {(sl, one, other) for one, other in zip(way or (), (way or ())[1:-1], strict=False)}
    while any(left := {(sl, one, other) for sl, one, other in waits if (sl, other) in {wait[:2] for wait in waits}}):
        if left == waits:
            return True
        waits = left
    return False


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("lmc", [0, 1])
def test_every_lid_is_reached_by_the_fewest_links_and_no_sl_has_a_credit_loop(seed, lmc):
    subnet = random_subnet(seed)
    lids = assign_lids(subnet, lmc)
    routes = lash(subnet, lids)
    assert find_credit_loop(subnet, lids, routes.tables, service_level=routes.service_level) is None
    assert not loop_by_whole_paths(subnet, lids, routes)
    for switch in subnet.switches:
        distance = links_from(subnet, switch.guid)
        for lid, (home, _port) in lids_behind(subnet, lids).items():
            way = walk(subnet, routes.tables, switch.guid, lid)
            assert (way is None) if home not in distance else len(way) == distance[home] + 1


@pytest.mark.parametrize(
    ("subnet", "vls"),
    [
        (fat_tree(6, 4, hosts=4), 1),
        (three_level_tree(4, 4), 1),
        (ring(4), 1),
        (ring(8), 2),
        (grid(4, 4, torus=False), 1),
        (grid(4, 4, torus=True), 2),
    ],
    ids=["fat tree", "fat tree of 3 levels", "ring of 4", "ring of 8", "mesh", "torus"],
)
def test_few_vls_are_needed(subnet, vls):
    assert lash(subnet, assign_lids(subnet)).vls_needed == vls


def test_a_path_and_its_way_back_have_one_sl():
    subnet = ring(8)
    lids = assign_lids(subnet)
    routes = lash(subnet, lids)
    found = {
        (one, other): routes.service_level(one, other)
        for one in lids_behind(subnet, lids)
        for other in lids_behind(subnet, lids)
    }
    assert set(found.values()) == {0, 1}
    assert all(sl == found[other, one] for (one, other), sl in found.items())


@pytest.mark.parametrize("vls", [2, 4])
def test_a_ring_comes_up_without_a_credit_loop(vls):
    up = Managed(ring(8), SubnetSettings(routing=lash), vls=vls).bring_up()
    up.check()
    assert up.told(CreditLoopFound) == []
    assert up.manager.routes.vls_needed == 2


def test_links_of_too_few_vls_are_an_error():
    line = (
        r"^routes without credit loops need 2 data VLs, and link 0x\w{16}\[\d\] to 0x\w{16}\[\d\] has 1: "
        "expected more, or up/down routing, which needs 1$"
    )
    with pytest.raises(RoutingError, match=line):
        Managed(ring(8), SubnetSettings(routing=lash, qos=QosOptions(max_vls=1))).bring_up()


def test_what_needs_more_vls_only_when_a_link_is_lost_is_routed_up_and_down_then():
    """A mesh without a link in its middle has circles of shortest paths that the whole mesh has not."""
    subnet = grid(4, 4, torus=False)
    lids = assign_lids(subnet)
    between = [
        link for link in subnet.links if subnet.nodes[link.b.guid].is_switch and subnet.nodes[link.a.guid].is_switch
    ]
    link = next(link for link in between if lash(subnet.without(link), lids, lash(subnet, lids).tables).vls_needed > 1)
    up = Managed(subnet, SubnetSettings(routing=lash, qos=QosOptions(max_vls=1))).bring_up()
    assert up.told(RoutingRemark) == []
    up.fabric.cut(link.a)
    (told,) = up.after(RoutingRemark)
    assert told.text.startswith("routed up/down: routes without credit loops need ")
    up.check()
    assert up.told(CreditLoopFound) == []


def test_after_a_lost_link_there_is_no_credit_loop_either():
    subnet = read_topology(TOPOLOGIES / "torus_4x4.net").subnet
    lids = assign_lids(subnet)
    before = lash(subnet, lids)
    link = next(link for link in subnet.links if subnet.nodes[link.a.guid].is_switch)
    after = lash(subnet.without(link), lids, before.tables)
    figures = route_figures(subnet.without(link), lids, after.tables)
    assert figures.missing == 0
    assert find_credit_loop(subnet, lids, after.tables, service_level=after.service_level) is None
