"""Each routing engine beside that of OpenSM 3.3.23, for the same fabrics with the same LIDs: none is worse."""

import pytest

from cosim.topology.topology_file import read_topology
from ironband.up_options import ROUTING_ENGINES
from sm.credit_loops import find_credit_loop
from sm.routing.fat_tree import fat_tree, host_order
from sm.routing.figures import route_figures
from tests.files import TOPOLOGIES
from tests.sm.opensm_tables import OPENSM, OUR_ENGINES, read_engines
from tests.sm.routing.test_fat_tree import uses

RECORDED = read_engines(OPENSM / "engines.txt")


@pytest.mark.parametrize(("fabric", "engine"), RECORDED)
def test_routes_are_as_short_and_as_evenly_shared(fabric, engine):
    subnet = read_topology(TOPOLOGIES / f"{fabric}.net").subnet
    theirs = RECORDED[fabric, engine]
    routes = ROUTING_ENGINES[OUR_ENGINES[engine]](subnet, theirs.lids, previous=None)
    found = route_figures(subnet, theirs.lids, routes.tables)
    judged = route_figures(subnet, theirs.lids, theirs.tables)
    assert (found.missing, judged.missing) == (0, 0)
    assert (found.mean_hops, found.max_hops) == (judged.mean_hops, judged.max_hops)
    assert found.max_load <= judged.max_load
    assert found.load_deviation <= judged.load_deviation
    assert found.min_load >= judged.min_load
    loop = find_credit_loop(subnet, theirs.lids, routes.tables, service_level=routes.service_level)
    if engine == "minhop":
        assert (loop is None) == (find_credit_loop(subnet, theirs.lids, theirs.tables) is None)
    else:
        assert loop is None
    if engine in ("lash", "dfsssp"):
        assert routes.vls_needed <= theirs.vls


@pytest.mark.parametrize(
    ("fabric", "engine", "worst"),
    [("tree_2", "ftree", 1), ("tree_2", "minhop", 1), ("tree_3", "ftree", 1), ("tree_3", "minhop", 2)],
)
def test_a_shift_takes_a_link_as_often_or_less_often(fabric, engine, worst):
    subnet = read_topology(TOPOLOGIES / f"{fabric}.net").subnet
    theirs = RECORDED[fabric, engine]
    order = host_order(subnet, theirs.lids)

    def most(tables):
        return max(max(uses(subnet, theirs.lids, tables, order, shift).values()) for shift in range(1, len(order)))

    assert most(fat_tree(subnet, theirs.lids).tables) == 1
    assert most(theirs.tables) == worst
