"""The fabrics that `ironband check` draws."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.experiments.check_shape import RANDOM_FABRIC, Shape, one_switch, random_shape, shape_of_topology
from cosim.topology.topology import parse_end
from cosim.topology.topology_file import TopologyError

SHAPES = [random_shape(Random(seed)) for seed in range(200)]


def nodes_of(shape: Shape) -> list[tuple[str, str]]:
    """The two nodes of each link."""
    return [(parse_end(a)[0], parse_end(b)[0]) for a, b in shape.links]


def test_every_port_of_a_random_fabric_has_one_cable_at_most():
    for shape in SHAPES:
        ends = Counter(map(parse_end, (end for link in shape.links for end in link)))
        assert set(ends.values()) == {1}
        ports = shape.switches | shape.hosts
        assert all(1 <= number <= ports[name] for name, number in ends)


def test_all_nodes_of_a_random_fabric_are_in_reach_of_each_other():
    for shape in SHAPES:
        reached = {next(iter(shape.switches))}
        for _ in shape.links:
            reached |= {node for link in nodes_of(shape) if reached & set(link) for node in link}
        assert reached == {*shape.switches, *shape.hosts}


def test_random_fabrics_have_links_of_all_kinds():
    seen = set()
    for shape in SHAPES:
        links = nodes_of(shape)
        between = Counter(frozenset(link) for link in links if set(link) <= set(shape.switches))
        pairs = [pair for pair in between if len(pair) == 2]
        plugs = Counter(node for link in links for node in link)
        kinds = {
            "from a switch back to itself": len(pairs) < len(between),
            "side by side": any(between[pair] > 1 for pair in pairs),
            "in a circle": len(pairs) >= len(shape.switches) > 2,
            "a host with two": 2 in shape.hosts.values(),
            "a port without": any(plugs[name] < ports for name, ports in shape.switches.items()),
        }
        seen |= {kind for kind, is_there in kinds.items() if is_there}
    assert seen == set(kinds)
    assert {len(shape.switches) for shape in SHAPES} == {1, 2, 3, 4}


def test_a_switch_has_a_host_at_each_port():
    assert one_switch(2) == Shape({"S": 2}, {"H1": 1, "H2": 1}, (("S[1]", "H1"), ("S[2]", "H2")))


def test_a_topology_has_its_nodes_and_links():
    shape = shape_of_topology("ring_4")
    assert len(shape.switches) == 4
    with pytest.raises(TopologyError, match="no_such"):
        shape_of_topology("no_such")


def test_the_line_of_a_random_fabric_replays_it():
    options = CheckOptions(fabric=RANDOM_FABRIC, seed=5)
    assert "--fabric random" in options.command
    assert "--seed 5" in options.command
    first, second = (check_experiment(options).topology for _ in range(2))
    assert first == second
