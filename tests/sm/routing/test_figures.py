"""What is said of routes: their lengths, and how many a link carries."""

import pytest

from sm.lids import assign_lids
from sm.routing.figures import route_figures
from sm.routing.min_hop import min_hop
from tests.sm.subnets import lids_behind, parallel_pair, ring, star
from wire.forwarding_tables import LFT_NO_ROUTE


def test_a_star_s_routes_take_two_links_and_none_between_switches():
    subnet = star(hosts=3)
    lids = assign_lids(subnet)
    figures = route_figures(subnet, lids, min_hop(subnet, lids).tables)
    assert (figures.missing, figures.mean_hops, figures.max_hops, figures.max_load) == (0, 2, 2, 0)


def test_routes_are_counted_from_every_host_to_every_lid_of_another():
    """4 hosts with 2 LIDs: of 24 routes 8 are of two links, 16 of three, 4 on each of two links each way."""
    subnet = parallel_pair(hosts=2, links=2)
    lids = assign_lids(subnet, lmc=1)
    figures = route_figures(subnet, lids, min_hop(subnet, lids).tables)
    assert (figures.mean_hops, figures.max_hops) == ((8 * 2 + 16 * 3) / 24, 3)
    assert (figures.min_load, figures.max_load, figures.load_deviation) == (4, 4, 0)


@pytest.mark.parametrize("port", [3, LFT_NO_ROUTE], ids=["round in circles", "nowhere"])
def test_routes_that_do_not_arrive_are_missing(port):
    """The second and third switch of a ring send a LID of the first on to the third and back."""
    subnet = ring(3)
    lids = assign_lids(subnet)
    tables = min_hop(subnet, lids).tables
    first, second, third = (switch.guid for switch in subnet.switches)
    lid = next(lid for lid, home in lids_behind(subnet, lids).items() if home == (first, 1))
    tables[second][lid], tables[third][lid] = port, {3: 2}.get(port, port)
    assert route_figures(subnet, lids, tables).missing == 2
