"""Paths through a fabric: shortest, spread over equal ports, and none where there is none."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import Host, Link, Switch
from cosim.topology.topology import Port, Topology, forwarding_tables, named


def fabric(switches: dict[str, int], links: list[tuple[str, str]], hosts: str, **link) -> Topology:
    return Scenario(
        cycles=1,
        switches={name: Switch(ports=ports) for name, ports in switches.items()},
        hosts={host: Host() for host in hosts},
        links=tuple(Link(ends=ends, **link) for ends in links),
    ).topology


@pytest.fixture
def ring() -> Topology:
    cables = [("S[3]", "T[4]"), ("T[3]", "U[4]"), ("U[3]", "V[4]"), ("V[3]", "S[4]")]
    hosts = [(f"{switch}[1]", host) for switch, host in zip("STUV", "abcd", strict=True)]
    return fabric(dict.fromkeys("STUV", 4), [*cables, *hosts], "abcd")


def test_a_packet_takes_the_fewest_hops(ring):
    assert [str(port) for port in ring.path("a", "b")] == ["a[1]", "S[3]", "T[1]"]
    assert len(ring.path("a", "c")) == 4
    assert [str(port) for port in ring.path("b", "a")] == ["b[1]", "T[4]", "S[1]"]


def test_equally_short_ways_are_shared_out():
    links = [("S[1]", "a"), ("S[2]", "T[1]"), ("S[3]", "T[2]"), ("T[3]", "b"), ("T[4]", "c")]
    topology = fabric({"S": 4, "T": 4}, links, "abc")
    assert {topology.tables["S"][topology.lids[host]] for host in "bc"} == {2, 3}


def test_each_lid_of_a_host_may_have_a_way_of_its_own():
    """Its port has 2^LMC of them, by which sources choose a path (FACTS 3.1)."""
    links = [("S[1]", "a"), ("S[2]", "T[1]"), ("S[3]", "T[2]"), ("T[3]", "b")]
    plain = fabric({"S": 4, "T": 4}, links, "ab")
    lids, lmcs = {"a": 1, "b": 4}, {"b": 1}
    topology = replace(plain, lids=lids, lmcs=lmcs, tables=forwarding_tables(plain.fabric, lids, lmcs))
    assert list(topology.lids_of("b")) == [4, 5]
    assert topology.lid_top == 5
    ways = {topology.path("a", "b", lid)[1] for lid in topology.lids_of("b")}
    assert ways == {Port("S", 2), Port("S", 3)}


def test_a_packet_to_a_group_follows_its_tree(ring):
    topology = replace(ring, groups={0xC000: ("a", "b")})
    assert [str(port) for port in topology.group_path("a", 0xC000, "b")] == ["a[1]", "S[3]", "T[1]"]
    assert topology.group_path("a", 0xC000, "c") is None
    assert topology.group_path("d", 0xC000, "a") is None


def test_the_vl_at_the_end_of_a_path_may_depend_on_where_the_switch_got_the_packet():
    plain = fabric({"S": 3}, [("S[1]", "a"), ("S[2]", "b"), ("S[3]", "c")], "abc")
    topology = replace(plain, vls_at={("S", 2, 3): (7,) * 16})
    assert topology.final_vl(topology.path("a", "c"), 0) == 0
    assert topology.final_vl(topology.path("b", "c"), 0) == 7


def test_hosts_do_not_relay():
    topology = fabric({"S": 2, "T": 2}, [("S[1]", "a"), ("T[1]", "b")], "ab")
    assert topology.path("a", "b") is None
    assert topology.tables == {"S": {1: 1}, "T": {2: 1}}


def test_two_hosts_can_be_joined_by_a_cable():
    topology = fabric({}, [("a", "b")], "ab")
    assert topology.path("a", "b") == [Port("a", 1)]
    assert topology.far_end(Port("a", 1)) == Port("b", 1)


def test_an_open_port_has_no_far_end():
    topology = fabric({"S": 2}, [("S[2]", "a")], "a")
    assert topology.far_end(Port("S", 1)) is None
    with pytest.raises(ValueError, match=r"port S\[1\]: has no link"):
        topology.flight(Port("S", 1))


def test_a_link_has_the_vls_and_the_mtu_that_both_ends_have():
    scenario = Scenario(
        cycles=1,
        switches={"S": Switch(ports=2, vls=4, mtu=1024)},
        hosts={"a": Host(vls=2, mtu=2048)},
        links=(Link(ends=("a", "S[1]"), width="1X", flight_cycles=5),),
    )
    topology = scenario.topology
    port = Port("S", 1)
    assert (topology.vls(port), topology.mtu(port), topology.pace(port), topology.flight(port)) == (2, 1024, 4, 5)
    assert [topology.vl(port, sl) for sl in range(4)] == [0, 1, 0, 1]


@given(st.integers(2, 6), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_every_way_is_as_short_as_the_distance(switches, wires):
    """On random graphs of switches with one host each, against distances by repeated relaxation."""
    wires = {(a, b) for a, b in wires if a < b < switches}
    links = []
    free = dict.fromkeys(range(switches), 2)
    for a, b in sorted(wires):
        links.append((f"S{a}[{free[a]}]", f"S{b}[{free[b]}]"))
        free[a] += 1
        free[b] += 1
    links += [(f"S{number}[1]", f"h{number}") for number in range(switches)]
    topology = Scenario(
        cycles=1,
        switches={f"S{number}": Switch(ports=12) for number in range(switches)},
        hosts={f"h{number}": Host() for number in range(switches)},
        links=tuple(Link(ends=ends) for ends in links),
    ).topology
    far = 99
    hops = {(a, b): 0 if a == b else 1 if (min(a, b), max(a, b)) in wires else far for a in free for b in free}
    for via in free:
        for a, b in hops:
            hops[a, b] = min(hops[a, b], hops[a, via] + hops[via, b])
    for (a, b), distance in hops.items():
        if a == b:
            continue
        path = topology.path(f"h{a}", f"h{b}")
        assert (path is None) == (distance >= far)
        if path is not None:
            assert len(path) == distance + 2
            assert all(topology.far_end(one).node == other.node for one, other in pairwise(path))


def test_a_port_of_an_adapter_that_has_several_is_called_by_its_number():
    assert [str(Port(node, 1)) for node in ("S", "H.1", "H.12", "K")] == ["S[1]", "H[1]", "H[12]", "K[1]"]


def test_what_people_call_a_port_is_found():
    nodes = ["S", "H.1", "H.2", "K"]
    assert [named(nodes, *end) for end in (("H", None), ("H", 2), ("K", None), ("K", 1), ("S", 2))] == [
        ("H.1", 1),
        ("H.2", 1),
        ("K", None),
        ("K", 1),
        ("S", 2),
    ]
    assert named(nodes, "H", 3) == ("H", 3)
