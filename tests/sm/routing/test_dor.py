"""Dimension order routing: one dimension after the other, by the fewest links, and no credit loop."""

import pytest

from sm.credit_loops import find_credit_loop
from sm.lids import assign_lids
from sm.routing.dor import dor
from sm.routing.figures import route_figures
from tests.sm.subnets import grid, hypercube, lids_behind, links_from, random_subnet, walk

MESHES = [(4, 4), (5, 3), (3, 3, 3)]


def dimensions(way):
    """Of the ports between switches on a way: 1 and 2 are the first dimension, 3 and 4 the second."""
    return [(end.port - 1) // 2 for end in way[:-1]]


def check(subnet, lids, routes):
    for switch in subnet.switches:
        distance = links_from(subnet, switch.guid)
        for lid, (home, _port) in lids_behind(subnet, lids).items():
            assert len(walk(subnet, routes.tables, switch.guid, lid)) == distance[home] + 1
    assert find_credit_loop(subnet, lids, routes.tables, service_level=routes.service_level) is None


@pytest.mark.parametrize("sizes", MESHES)
@pytest.mark.parametrize("torus", [False, True])
def test_a_packet_goes_all_its_way_in_one_dimension_then_in_the_next(sizes, torus):
    subnet = grid(*sizes, torus=torus)
    lids = assign_lids(subnet)
    routes = dor(subnet, lids)
    check(subnet, lids, routes)
    for switch in subnet.switches:
        for lid in lids_behind(subnet, lids):
            way = dimensions(walk(subnet, routes.tables, switch.guid, lid))
            assert way == sorted(way)


@pytest.mark.parametrize("sizes", MESHES)
def test_a_mesh_needs_one_vl_and_a_torus_more(sizes):
    for torus, least, most in ((False, 1, 1), (True, 2, 4) if max(sizes) > 3 else (True, 1, 4)):
        subnet = grid(*sizes, torus=torus)
        assert least <= dor(subnet, assign_lids(subnet)).vls_needed <= most


def test_a_hypercube_needs_one_vl_and_its_links_carry_the_same():
    subnet = hypercube(4)
    lids = assign_lids(subnet)
    routes = dor(subnet, lids)
    check(subnet, lids, routes)
    assert routes.vls_needed == 1
    figures = route_figures(subnet, lids, routes.tables)
    assert (figures.min_load, figures.max_load) == (8, 8)


@pytest.mark.parametrize("size", [4, 5])
def test_a_torus_s_links_carry_the_same(size):
    """Half way round an even ring there are two ways, and half of the packets take each."""
    subnet = grid(size, size, torus=True)
    lids = assign_lids(subnet)
    figures = route_figures(subnet, lids, dor(subnet, lids).tables)
    assert figures.min_load == figures.max_load


@pytest.mark.parametrize("seed", range(20))
def test_any_fabric_is_routed_by_the_fewest_links(seed):
    subnet = random_subnet(seed)
    lids = assign_lids(subnet)
    routes = dor(subnet, lids)
    assert route_figures(subnet, lids, routes.tables).missing == 0
    assert find_credit_loop(subnet, lids, routes.tables, service_level=routes.service_level) is None
