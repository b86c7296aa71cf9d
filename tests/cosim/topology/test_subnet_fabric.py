"""Fabrics built after topology files."""

import pytest

from cosim.topology.subnet_fabric import fabric_of, out_of_reach
from cosim.topology.topology_file import TopologyError, packaged_topologies, parse_topology, read_topology
from tests.files import TOPOLOGIES
from wire.codes import LinkWidth
from wire.node_info import NodeType
from wire.parameters import AdapterParameters, LinkParameters, NodeIdentity, SwitchParameters

PACKAGED = packaged_topologies()


def test_switches_have_the_file_s_ports_and_links_its_ends():
    made = fabric_of(read_topology(PACKAGED["parallel"]), SwitchParameters(vls=2), AdapterParameters(vls=2))
    assert made.fabric.nodes["SW1"] == SwitchParameters(ports=8, vls=2)
    assert list(made.fabric.nodes) == ["SW1", "SW2", "H1", "H2", "H3", "H4"]
    assert LinkParameters("SW1", 7, "SW2", 7) in made.fabric.links
    assert LinkParameters("SW1", 8, "SW2", 8) in made.fabric.links
    assert LinkParameters("H3", 1, "SW2", 1) in made.fabric.links
    assert len(made.fabric.links) == len(made.widths) == 6
    assert set(made.widths) == {LinkWidth.X4}


@pytest.mark.parametrize("name", ["star", "parallel", "ring_4", "fat_tree", "back_to_back"])
def test_both_formats_make_the_same_fabric(name):
    hand_written, discovered = (
        fabric_of(read_topology(path))
        for path in (PACKAGED.get(name, TOPOLOGIES / f"{name}.net"), TOPOLOGIES / f"{name}.ibnetdiscover")
    )
    assert hand_written.fabric.nodes == discovered.fabric.nodes
    assert hand_written.fabric.links == discovered.fabric.links
    assert hand_written.names == discovered.names


def test_nodes_have_the_file_s_guids_and_descriptions():
    text = 'switchguid=0x77(78)\nSwitch 2 "S" # "the switch"\n[1] "H"[1]\ncaguid=0x90\nCa 1 "H"\n[1](99) "S"[1]'
    made = fabric_of(parse_topology(text, "net"))
    assert made.fabric.identity("the_switch") == NodeIdentity(0x77, 0x78, "the switch")
    assert made.fabric.identity("H") == NodeIdentity(0x90, 0x99, "H")


TWO_PORTS = """
Switch 4 "S"
[1] "H"[1]
[3] "H"[3]
[4] "R"[2]
caguid=0x90
Ca 3 "H"
[1](99) "S"[1]
[3] "S"[3]
rtguid=0x50
Rt 2 "R"
[2] "S"[4]
"""


def test_each_port_of_an_adapter_is_a_node_and_all_are_one_by_their_identity():
    made = fabric_of(parse_topology(TWO_PORTS, "net"))
    assert list(made.fabric.nodes) == ["S", "H.1", "H.2", "H.3", "R.1", "R.2"]
    assert set(made.names.values()) == {"S", "H", "R"}
    assert made.fabric.links == (
        LinkParameters("R.2", 1, "S", 4),
        LinkParameters("H.1", 1, "S", 1),
        LinkParameters("H.3", 1, "S", 3),
    )
    assert [made.fabric.identity(f"H.{port}") for port in (1, 2, 3)] == [
        NodeIdentity(0x90, guid, "H", ports=3, port=port) for port, guid in ((1, 0x99), (2, 0x92), (3, 0x93))
    ]


def test_a_router_is_an_end_node_that_says_it_is_one():
    made = fabric_of(parse_topology(TWO_PORTS, "net"))
    assert made.fabric.identity("R.2") == NodeIdentity(0x50, 0x52, "R", ports=2, port=2, type=NodeType.ROUTER)


def test_a_port_without_a_link_is_in_reach_if_another_port_of_its_adapter_is():
    made = fabric_of(parse_topology(TWO_PORTS + 'caguid=0x60\nCa 2 "K"\nCa 2 "L"\n[1] "L"[2]\n[2] "L"[1]', "net"))
    assert out_of_reach(made.fabric, "H.1") == ["K.1", "K.2", "L.1", "L.2"]
    assert out_of_reach(made.fabric, "L.2") == ["S", "H.1", "H.2", "H.3", "R.1", "R.2", "K.1", "K.2"]


def test_names_become_plain_and_stay_different():
    text = "\n".join(
        f'Switch 2 "S-{number}" # "{description}"'
        for number, description in enumerate(["a b", "a-b", "same", "same", "7th", "x" * 40, "x" * 41])
    )
    assert list(fabric_of(parse_topology(text, "net")).names.values()) == [
        "a_b",
        "a_b_2",
        "S_2",
        "S_3",
        "N7th",
        "x" * 31,
        "x" * 29 + "_2",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('Switch 1 "S"', 'net:1: "S" cannot be built: ports 1: expected 2..64'),
        ('Switch 65 "S"', 'net:1: "S" cannot be built: ports 65: expected 2..64'),
        ('switchguid=0\nSwitch 2 "S"', 'net:2: "S" cannot be built: node_guid 0: expected 1..18446744073709551615'),
        ('\nCa 65 "H"', 'net:2: "H" cannot be built: ports 65: expected 1..64'),
    ],
)
def test_what_ironband_does_not_have_is_told(text, error):
    with pytest.raises(TopologyError) as caught:
        fabric_of(parse_topology(text, "net"))
    assert str(caught.value) == error


@pytest.mark.parametrize(("lanes", "built"), [(1, "X1"), (2, "X1"), (4, "X4"), (8, "X4"), (12, "X4")])
def test_a_link_is_built_as_wide_as_it_can_be_and_not_wider_than_the_file_has_it(lanes, built):
    text = f'Switch 2 "S"\n[1] "S"[2] # "" lid 1 {lanes}xHDR\n[2] "S"[1] # "" lid 1 {lanes}xHDR'
    assert fabric_of(parse_topology(text, "net")).widths == (LinkWidth[built],)


def test_hosts_relay_nothing_so_what_is_behind_none_of_the_own_switches_is_out_of_reach():
    apart = """
    Switch 2 "S"
    [1] "A"
    Ca 1 "A"
    [1] "S"[1]
    Ca 1 "B"
    [1] "C"
    Ca 1 "C"
    [1] "B"
    """
    topology = parse_topology(apart, "apart")
    made = fabric_of(topology)
    assert out_of_reach(made.fabric, "A") == ["B", "C"]
    assert out_of_reach(made.fabric, "C") == ["S", "A"]
