"""The tree of a multicast group: its packets reach each member once, from whichever member they come."""

import pytest

from cosim.topology.multicast_tables import multicast_tables
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters

G = 0xC005


def fabric(*links: str) -> FabricParameters:
    """Of links such as `s1[1]-h1`; nodes whose names begin with s are switches."""
    ends = [
        [(end.partition("[")[0], int(end.partition("[")[2][:-1] or 1)) for end in link.split("-")] for link in links
    ]
    names = sorted({name for link in ends for name, _ in link})
    nodes = {name: SwitchParameters(ports=4) if name[0] == "s" else AdapterParameters() for name in names}
    return FabricParameters(nodes, tuple(LinkParameters(*a, *b) for a, b in ends))


RING = fabric(
    *("s1[1]-h1[1]", "s2[1]-h2[1]", "s3[1]-h3[1]", "s4[1]-h4[1]"),
    *("s1[2]-s2[3]", "s2[2]-s3[3]", "s3[2]-s4[3]", "s4[2]-s1[3]", "s1[4]-s2[4]"),
)


def reached(fabric, table, source):
    """How often a packet to the group comes to each host."""
    far = {}
    for link in fabric.links:
        a, b = (link.a, link.a_port), (link.b, link.b_port)
        far |= {a: b, b: a}
    got: list[str] = []
    at = [far[source, 1]]
    while at:
        node, port = at.pop()
        if node in table:
            at += [far[node, out] for out in table[node].get(G, ()) if out != port]
        else:
            got.append(node)
        assert len(got) < 10, "goes in circles"
    return sorted(got)


@pytest.mark.parametrize("members", [("h1", "h2"), ("h1", "h3"), ("h4", "h2", "h1"), ("h1", "h2", "h3", "h4")])
def test_each_member_is_reached_once_in_a_ring_with_two_cables(members):
    table = multicast_tables(RING, {G: members})
    for source in members:
        assert reached(RING, table, source) == sorted(set(members) - {source})


def test_a_tree_has_no_more_switches_than_it_needs():
    table = multicast_tables(RING, {G: ("h1", "h2"), G + 1: ("h3",)})
    assert table == {"s1": {G: (1, 2)}, "s2": {G: (1, 3)}, "s3": {}, "s4": {}}


def test_who_cannot_be_reached_is_in_no_tree():
    table = multicast_tables(fabric("s1[1]-h1[1]", "s1[2]-h2[1]", "s2[1]-h3[1]"), {G: ("h1", "h2", "h3")})
    assert table == {"s1": {G: (1, 2)}, "s2": {}}
