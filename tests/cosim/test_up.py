"""Fabrics brought up by the Subnet Manager over VL15, with nothing but SMPs."""

from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from cosim.engines.base import RunSpec
from cosim.ibnetdiscover import format_topology
from cosim.mad_carrier import REACTION_CYCLES
from cosim.simulation import run
from cosim.subnet_differences import differences, in_reach
from cosim.subnet_fabric import fabric_of
from cosim.topology_file import TopologyFile, parse_topology, read_topology
from cosim.up import LinkFailure, Up, UpResult, bring_up
from sm.events import NodeLost, PortStateSet, SweepEnded, TablesWritten
from sm.lids import LidRange
from sm.subnet import End, Subnet
from tests.sm.subnets import random_subnet
from wire.codes import LinkWidth, PortState
from wire.stimulus import Control, Operation

FOLDER = Path(__file__).parent / "topology_files"
FABRICS = ["back_to_back", "star", "parallel", "ring_4", "ring_5", "fat_tree"]
FAT_TREE_LINKS = 16
WHEN = datetime(2026, 11, 7, 6, 5, 4)


def brought_up(topology: TopologyFile, tmp_path: Path, **options: object) -> UpResult:
    made = fabric_of(topology)
    host = next(made.names[node.guid] for node in topology.subnet.nodes.values() if not node.is_switch)
    return bring_up(Up(made.fabric, made.widths, **{"host": host, **options}), tmp_path)


def check_is_up(topology: TopologyFile, result: UpResult, without: int | None = None) -> None:
    """Complete, as the file has it, and both ends of every link Active."""
    assert result.complete
    found = result.manager.found
    subnet = topology.subnet if without is None else topology.subnet.without(topology.subnet.links[without])
    assert differences(subnet, found.subnet, found.origin) == []
    for link in found.subnet.links:
        assert [found.state(end) for end in (link.a, link.b)] == [PortState.ACTIVE, PortState.ACTIVE], link


@pytest.mark.parametrize("name", FABRICS)
def test_a_fabric_comes_up_as_its_file_has_it(name: str, tmp_path: Path) -> None:
    topology = read_topology(FOLDER / f"{name}.net")
    check_is_up(topology, brought_up(topology, tmp_path))


@pytest.mark.parametrize(("name", "most"), [("star", 40), ("parallel", 100)])
def test_bring_up_takes_few_smps(name: str, most: int, tmp_path: Path) -> None:
    result = brought_up(read_topology(FOLDER / f"{name}.net"), tmp_path)
    assert result.manager.mads.sent.total() <= most
    assert result.manager.mads.retried == 0


@pytest.mark.parametrize("name", FABRICS)
def test_what_is_discovered_is_the_input_s_topology(name: str, tmp_path: Path) -> None:
    topology = read_topology(FOLDER / f"{name}.net")
    found = brought_up(topology, tmp_path).manager.found
    written = parse_topology(format_topology(found.subnet, found.origin, WHEN), "discovered")
    assert differences(topology.subnet, written.subnet, found.origin) == []


def random_fabric(seed: int) -> Subnet:
    """A random subnet, without hosts that have no link, which cannot be built."""
    subnet = random_subnet(seed, host_ports=(1,))
    for guid, node in list(subnet.nodes.items()):
        node.description = f"node {guid:x}"
        if not node.is_switch and not any(subnet.neighbours(guid)):
            subnet.remove(guid)
    return subnet


@pytest.mark.slow
@pytest.mark.parametrize("tens", range(5))
def test_random_topologies_are_discovered_as_they_are(tens: int, tmp_path: Path) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        subnet = random_fabric(seed)
        hosts = [node for node in subnet.nodes.values() if not node.is_switch]
        if not hosts:
            continue
        print(f"seed {seed}")
        origin = End(Random(seed).choice(hosts).guid, 1)
        topology = parse_topology(format_topology(subnet, origin, WHEN), "random")
        made = fabric_of(topology)
        result = brought_up(topology, tmp_path, host=made.names[origin.guid], seed=seed)
        check_is_up(topology, result)
        written = parse_topology(format_topology(result.manager.subnet, origin, WHEN), "discovered")
        assert differences(subnet, written.subnet, origin) == []
        assert set(written.subnet.nodes) == in_reach(subnet, origin)


def test_the_same_posts_make_the_same_trace(tmp_path: Path) -> None:
    """The Subnet Manager's packets are stimulus like any other."""
    topology = read_topology(FOLDER / "star.net")
    made = fabric_of(topology)
    result = brought_up(topology, tmp_path)
    host = list(made.fabric.nodes).index("H1")
    says = [Control(0, Operation.HOST_SM, host, (1, 0, 0, 0))]
    with run("model", RunSpec(made.fabric, says, result.posts, result.cycles), tmp_path) as records:
        assert sum(1 for _record in records) == result.records


def test_the_subnet_manager_takes_its_time(tmp_path: Path) -> None:
    result = brought_up(read_topology(FOLDER / "star.net"), tmp_path)
    assert result.posts[0].cycle == 1_000 + REACTION_CYCLES
    assert [post.cycle for post in result.posts] == sorted(post.cycle for post in result.posts)
    assert len(result.posts) == result.manager.mads.sent.total()


def test_the_seed_moves_the_beginning(tmp_path: Path) -> None:
    topology = read_topology(FOLDER / "star.net")
    result = brought_up(topology, tmp_path, seed=7)
    assert result.posts[0].cycle > 1_000 + REACTION_CYCLES
    check_is_up(topology, result)


def test_a_narrow_link_is_found_narrow(tmp_path: Path) -> None:
    text = (FOLDER / "star.net").read_text().replace('"SW1"[2]', '"SW1"[2] w=1').replace('[2] "H2"', '[2] "H2" w=1')
    topology = parse_topology(text, "narrow")
    assert [link.width for link in topology.subnet.links] == [LinkWidth.X4, LinkWidth.X1]
    check_is_up(topology, brought_up(topology, tmp_path))


def test_ports_keep_the_lids_of_an_earlier_run(tmp_path: Path) -> None:
    topology = read_topology(FOLDER / "star.net")
    lids = {0x100003: LidRange(40, 40), 0x200000: LidRange(7, 7)}
    result = brought_up(topology, tmp_path, lids=lids)
    check_is_up(topology, result)
    assert {guid: given.first for guid, given in result.manager.lids.items()} == {
        0x100001: 1,
        0x200000: 7,
        0x100003: 40,
    }


@pytest.mark.parametrize("link", range(FAT_TREE_LINKS))
def test_the_fat_tree_is_routed_anew_around_any_link(link: int, tmp_path: Path) -> None:
    topology = read_topology(FOLDER / "fat_tree.net")
    failed = topology.subnet.links[link]
    hosts = [end.guid for end in (failed.a, failed.b) if not topology.subnet.nodes[end.guid].is_switch]
    # The Subnet Manager is not behind the link.
    host = "H1" if topology.subnet.nodes[0x100000].guid not in hosts else "H8"
    result = brought_up(topology, tmp_path, host=host, failure=LinkFailure(link, 400_000, 5_000))
    check_is_up(topology, result, without=link)
    lost = [event.node.guid for cycle, event in result.events if isinstance(event, NodeLost)]
    assert lost == hosts
    ways = {switch: bytes(table) for switch, table in result.manager.routes.tables.items()}
    assert all(table[given.first] != 0xFF for table in ways.values() for given in result.manager.lids.values())


def test_a_failure_is_answered_with_as_few_writes_as_it_needs(tmp_path: Path) -> None:
    """A link between a leaf and a spine: of each switch only the block that changes."""
    topology = read_topology(FOLDER / "fat_tree.net")
    link = next(i for i, one in enumerate(topology.subnet.links) if one.a.guid == 0x200000 and one.a.port == 3)
    result = brought_up(topology, tmp_path, failure=LinkFailure(link, 400_000, 5_000))
    written = [event for cycle, event in result.events if isinstance(event, TablesWritten) and cycle > 400_000]
    assert len(written) <= 6
    ports = [event for cycle, event in result.events if isinstance(event, PortStateSet) and cycle > 400_000]
    assert ports == []


def test_a_failure_under_way_is_dealt_with(tmp_path: Path) -> None:
    topology = read_topology(FOLDER / "fat_tree.net")
    quiet = brought_up(topology, tmp_path)
    (first,) = [cycle for cycle, event in quiet.events if isinstance(event, SweepEnded)][:1]
    result = brought_up(topology, tmp_path, failure=LinkFailure(FAT_TREE_LINKS - 1, first // 2, 5_000))
    check_is_up(topology, result, without=FAT_TREE_LINKS - 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["star", "parallel", "ring_4", "fat_tree"])
def test_rtl_and_model_agree_through_the_whole_bring_up(name: str, tmp_path: Path) -> None:
    topology = read_topology(FOLDER / f"{name}.net")
    result = brought_up(topology, tmp_path, engine="verilator")
    check_is_up(topology, result)
    assert result.comparison.difference is None
    assert result.comparison.records == result.records > 400
    # The Subnet Manager cannot tell one from the other.
    alone = brought_up(topology, tmp_path)
    assert (alone.posts, alone.events, alone.cycles) == (result.posts, result.events, result.cycles)


@pytest.mark.slow
def test_rtl_and_model_agree_through_a_failure(tmp_path: Path) -> None:
    topology = read_topology(FOLDER / "fat_tree.net")
    result = brought_up(topology, tmp_path, engine="verilator", failure=LinkFailure(4, 260_000, 5_000))
    check_is_up(topology, result, without=4)
    assert result.comparison.difference is None
