"""Fabrics brought up by the Subnet Manager over VL15, with nothing but SMPs."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import count, islice, pairwise
from pathlib import Path
from random import Random

import pytest

from cosim.analysis.observer import Observer
from cosim.engines.simulation import run
from cosim.experiments.subnet_bring_up import SubnetBringUpResult, bring_up_subnet
from cosim.experiments.subnet_task import LinkFailure, SubnetTask
from cosim.hosts.mad_carrier import REACTION_CYCLES
from cosim.hosts.manager_host import ACTIVATION_WAIT, ManagerHost, first_controls
from cosim.stimulus.run_spec import RunSpec
from cosim.topology.subnet_differences import differences, in_reach
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.subnet_text import format_topology
from cosim.topology.topology_file import TopologyFile, parse_topology, read_topology
from sm.congestion_options import parse_congestion_options
from sm.events import (
    CongestionControlSet,
    CongestionControlUnavailable,
    NodeLost,
    PortStateSet,
    SweepEnded,
    TablesWritten,
    TrapReceived,
)
from sm.lids import LidRange
from sm.settings import SubnetSettings
from sm.subnet import End, Subnet
from sm.subnet_manager import SubnetManager
from tests.campaigns import FAT_TREE_LINKS, first_of, some_of
from tests.cosim.recorder import Recorder
from tests.files import TOPOLOGIES
from tests.sm.subnets import HOST_GUID, add_host, add_switch, cable, fat_tree, random_subnet
from wire.codes import LinkWidth, PortState
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE
from wire.parameters import AdapterParameters
from wire.stimulus import Control, Operation
from wire.trace import Kind, port_of_source

FABRICS = ["back_to_back", "star", "parallel", "ring_4", "ring_5", "fat_tree"]
BLOCK = LINEAR_FORWARDING_TABLE.count
WHEN = datetime(2026, 11, 7, 6, 5, 4)


BroughtUp = Callable[[str], SubnetBringUpResult]


def brought_up(
    topology: TopologyFile, tmp_path: Path, observers: Sequence[Observer] = (), **options: object
) -> SubnetBringUpResult:
    made = fabric_of(topology)
    host = next(name for name, node in made.fabric.nodes.items() if isinstance(node, AdapterParameters))
    return bring_up_subnet(SubnetTask(made.fabric, made.widths, **{"host": host, **options}), tmp_path, observers)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> BroughtUp:
    """A fabric of a file in the golden model, brought up as it is, once for all tests that look at that."""

    @cache
    def once(name: str) -> SubnetBringUpResult:
        return brought_up(read_topology(TOPOLOGIES / f"{name}.net"), tmp_path_factory.mktemp(name))

    return once


def check_is_up(topology: TopologyFile, result: SubnetBringUpResult, without: int | None = None) -> None:
    """Complete, as the file has it, and both ends of every link Active."""
    assert result.complete
    found = result.manager.found
    subnet = topology.subnet if without is None else topology.subnet.without(topology.subnet.links[without])
    assert differences(subnet, found.subnet, found.origin) == []
    for link in found.subnet.links:
        assert [found.state(end) for end in (link.a, link.b)] == [PortState.ACTIVE, PortState.ACTIVE], link


@pytest.mark.parametrize("name", FABRICS)
def test_a_fabric_comes_up_as_its_file_has_it(name: str, up: BroughtUp) -> None:
    check_is_up(read_topology(TOPOLOGIES / f"{name}.net"), up(name))


@pytest.mark.parametrize(("name", "most"), [("star", 40), ("parallel", 100)])
def test_bring_up_takes_few_smps(name: str, most: int, up: BroughtUp) -> None:
    result = up(name)
    assert result.manager.mads.sent.total() <= most
    assert result.manager.mads.retried == 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), some_of([("star", 40), ("parallel", 100)], {("star", 40)}))
def test_bring_up_takes_few_smps_whenever_it_begins(name: str, most: int, tmp_path: Path) -> None:
    """At any point of the ports' flow control periods."""
    topology = read_topology(TOPOLOGIES / f"{name}.net")
    for seed in range(50):
        print(f"seed {seed}")
        result = brought_up(topology, tmp_path, seed=seed)
        check_is_up(topology, result)
        assert result.manager.mads.sent.total() <= most
        assert result.manager.mads.retried == 0


def chain(switches: int) -> TopologyFile:
    """Switches one after the other, a host at either end."""
    subnet = Subnet()
    guids = [add_switch(subnet, 2) for _ in range(switches)]
    cable(subnet, guids[0], add_host(subnet))
    for before, after in pairwise(guids):
        cable(subnet, before, after)
    cable(subnet, guids[-1], add_host(subnet))
    for guid, node in subnet.nodes.items():
        node.description = f"node {guid:x}"
    return parse_topology(format_topology(subnet, End(HOST_GUID, 1), WHEN), "chain")


@pytest.mark.slow
def test_the_longer_the_way_the_longer_an_smp_is_waited_for(tmp_path: Path) -> None:
    topology = chain(24)
    result = brought_up(topology, tmp_path)
    check_is_up(topology, result)
    assert result.manager.mads.retried == 0


@pytest.mark.slow
def test_eighteen_switches_of_36_ports_and_216_hosts_come_up_in_one_sweep(tmp_path: Path) -> None:
    subnet = fat_tree(12, 6, hosts=18, parallel=3)
    topology = parse_topology(format_topology(subnet, End(HOST_GUID, 1), WHEN), "large")
    assert {node.ports for node in topology.subnet.switches} == {36}
    result = brought_up(topology, tmp_path)
    check_is_up(topology, result)
    assert len(result.manager.found.subnet.nodes) == 18 + 216
    assert sum(isinstance(event, SweepEnded) for _, event in result.events) == 1
    assert result.manager.mads.retried == 0


@pytest.mark.parametrize("name", FABRICS)
def test_what_is_discovered_is_the_input_s_topology(name: str, up: BroughtUp) -> None:
    topology = read_topology(TOPOLOGIES / f"{name}.net")
    found = up(name).manager.found
    written = parse_topology(format_topology(found.subnet, found.origin, WHEN), "discovered")
    assert differences(topology.subnet, written.subnet, found.origin) == []


def random_fabric(seed: int) -> Subnet:
    """A random subnet, with hosts of one and two ports, of which some have no link."""
    subnet = random_subnet(seed)
    for guid, node in subnet.nodes.items():
        node.description = f"node {guid:x}"
    return subnet


def seeds_with_hosts(number: int) -> list[int]:
    """The first seeds of random fabrics that have a host, at which a Subnet Manager may run."""

    def has_host(seed: int) -> bool:
        subnet = random_fabric(seed)
        return len(subnet.switches) < len(subnet.nodes)

    return list(islice(filter(has_host, count()), number))


@pytest.mark.slow
@pytest.mark.parametrize("tens", first_of(range(5), 2))
def test_random_topologies_are_discovered_as_they_are(tens: int, tmp_path: Path) -> None:
    for seed in seeds_with_hosts(50)[10 * tens : 10 * tens + 10]:
        print(f"seed {seed}")
        subnet = random_fabric(seed)
        ends = [End(node.guid, port) for node in subnet.nodes.values() if not node.is_switch for port in node.end_ports]
        origin = Random(seed).choice(ends)
        topology = parse_topology(format_topology(subnet, origin, WHEN), "random")
        fabric = fabric_of(topology).fabric
        port_guid = topology.subnet.nodes[origin.guid].end_ports[origin.port].guid
        host = next(name for name in fabric.nodes if fabric.identity(name).port_guid == port_guid)
        result = brought_up(topology, tmp_path, host=host, seed=seed)
        check_is_up(topology, result)
        written = parse_topology(format_topology(result.manager.subnet, origin, WHEN), "discovered")
        assert differences(subnet, written.subnet, origin) == []
        assert set(written.subnet.nodes) == {end.guid for end in in_reach(subnet, origin)}


def two_ports(first: str, second: str) -> TopologyFile:
    """Two switches, and an adapter H whose ports are at ports 1 and 2 of what is said."""
    hosts = {first: "1", second: "2"} if first != second else {first: "12"}
    lines = [f'Switch 4 "{name}"\n[4] "{other}"[4]' for name, other in (("S", "T"), ("T", "S"))]
    for index, name in enumerate(("S", "T")):
        lines[index] += "".join(f'\n[{port}] "H"[{port}]' for port in hosts.get(name, ""))
    lines += ['Ca 2 "H"'] + [f'[{port}] "{name}"[{port}]' for port, name in ((1, first), (2, second))]
    return parse_topology("\n".join(lines), "two")


LOOP = 'Ca 2 "H"\n[1] "H"[2]\n[2] "H"[1]'


@pytest.mark.parametrize(
    "topology",
    [two_ports("S", "T"), two_ports("S", "S"), parse_topology(LOOP, "loop")],
    ids=["at two switches", "at one switch", "joined"],
)
def test_each_port_of_an_adapter_is_found_by_its_own_way_and_has_a_lid(topology: TopologyFile, tmp_path: Path) -> None:
    result = brought_up(topology, tmp_path, settings=SubnetSettings(activation_wait=ACTIVATION_WAIT, lmc=1))
    check_is_up(topology, result)
    guid = named(topology, "H")
    node, paths = result.manager.found.subnet.nodes[guid], result.manager.found.paths
    assert [(port, end.guid, end.lmc) for port, end in sorted(node.end_ports.items())] == [
        (1, guid + 1, 1),
        (2, guid + 2, 1),
    ]
    lids = [set(result.manager.lids[guid + port].lids) for port in (1, 2)]
    assert [len(of_port) for of_port in lids] == [2, 2]
    assert not lids[0] & lids[1]
    assert (paths[End(guid, 1)], paths[End(guid, 2)][0]) == ((), 1)


def test_a_port_without_a_link_stays_down_and_has_no_lid(tmp_path: Path) -> None:
    topology = parse_topology('Ca 2 "H"\n[2] "S"[1]\nSwitch 2 "S"\n[1] "H"[2]', "half")
    seen = Recorder()
    result = brought_up(topology, tmp_path, [seen], host="H.2")
    check_is_up(topology, result)
    assert set(result.manager.lids) == {named(topology, "S"), named(topology, "H") + 2}
    nodes = {port_of_source(record.source)[0] for record in seen.records if record.kind == Kind.STATE}
    assert nodes == {0, 2}


@pytest.mark.parametrize("port", [1, 2])
def test_a_cut_of_one_port_of_an_adapter_leaves_the_other(port: int, tmp_path: Path) -> None:
    topology = two_ports("S", "T")
    failed = link_at(topology, "H", port)
    failure = LinkFailure(failed, 100_000, 5_000)
    result = brought_up(topology, tmp_path, host=f"H.{3 - port}", failure=failure)
    check_is_up(topology, result, without=failed)
    assert list(result.manager.found.subnet.nodes[named(topology, "H")].end_ports) == [3 - port]
    assert [event for _cycle, event in result.events if isinstance(event, NodeLost)] == []


@pytest.mark.slow
def test_both_ports_of_an_adapter_in_rtl_come_up_as_the_models_do(tmp_path: Path) -> None:
    """And one of them is cut off then."""
    topology = two_ports("S", "T")
    failed = link_at(topology, "H", 2)
    options = {"host": "H.1", "failure": LinkFailure(failed, 60_000, 5_000)}
    result = brought_up(topology, tmp_path, engine="verilator", rtl=("H.1", "H.2"), **options)
    check_is_up(topology, result, without=failed)
    assert result.comparison.difference is None
    assert result.posts == brought_up(topology, tmp_path, **options).posts


def test_the_same_posts_make_the_same_trace(up: BroughtUp, tmp_path: Path) -> None:
    """The Subnet Manager's packets are ordinary stimulus."""
    made = fabric_of(read_topology(TOPOLOGIES / "star.net"))
    result = up("star")
    host = list(made.fabric.nodes).index("H1")
    says = [Control(0, Operation.HOST_SM, host, (1, 0, 0, 0))]
    with run("model", RunSpec(made.fabric, says, result.posts, result.cycles), tmp_path) as records:
        assert sum(1 for _record in records) == result.records


def test_the_subnet_manager_takes_its_time(up: BroughtUp) -> None:
    result = up("star")
    assert result.posts[0].cycle == 1_000 + REACTION_CYCLES
    assert [post.cycle for post in result.posts] == sorted(post.cycle for post in result.posts)
    assert len(result.posts) == result.manager.mads.sent.total()


def test_the_seed_moves_the_beginning(tmp_path: Path) -> None:
    topology = read_topology(TOPOLOGIES / "star.net")
    result = brought_up(topology, tmp_path, seed=7)
    assert result.posts[0].cycle > 1_000 + REACTION_CYCLES
    check_is_up(topology, result)


def test_a_narrow_link_is_found_narrow(tmp_path: Path) -> None:
    text = (TOPOLOGIES / "star.net").read_text().replace('"SW1"[2]', '"SW1"[2] w=1').replace('[2] "H2"', '[2] "H2" w=1')
    topology = parse_topology(text, "narrow")
    assert [link.width for link in topology.subnet.links] == [LinkWidth.X4, LinkWidth.X1]
    check_is_up(topology, brought_up(topology, tmp_path))


def test_ports_keep_the_lids_of_an_earlier_run(tmp_path: Path) -> None:
    topology = read_topology(TOPOLOGIES / "star.net")
    lids = {0x100003: LidRange(40, 40), 0x200000: LidRange(7, 7)}
    result = brought_up(topology, tmp_path, lids=lids)
    check_is_up(topology, result)
    assert {guid: given.first for guid, given in result.manager.lids.items()} == {
        0x100001: 1,
        0x200000: 7,
        0x100003: 40,
    }


@pytest.mark.parametrize("link", FAT_TREE_LINKS)
def test_the_fat_tree_is_routed_anew_around_any_link(link: int, tmp_path: Path) -> None:
    topology = read_topology(TOPOLOGIES / "fat_tree.net")
    failed = topology.subnet.links[link]
    hosts = [end.guid for end in (failed.a, failed.b) if not topology.subnet.nodes[end.guid].is_switch]
    # The Subnet Manager is not behind the link.
    host = "H8" if named(topology, "H1") in hosts else "H1"
    result = brought_up(topology, tmp_path, host=host, failure=LinkFailure(link, 400_000, 5_000))
    check_is_up(topology, result, without=link)
    lost = [event.node.guid for cycle, event in result.events if isinstance(event, NodeLost)]
    assert lost == hosts
    tables = {switch: bytes(table) for switch, table in result.manager.routes.tables.items()}
    assert all(table[given.first] != 0xFF for table in tables.values() for given in result.manager.lids.values())


def named(topology: TopologyFile, description: str) -> int:
    """The GUID of a node."""
    return next(node.guid for node in topology.subnet.nodes.values() if node.description == description)


def link_at(topology: TopologyFile, description: str, port: int) -> int:
    """The number of the link at a port."""
    end = End(named(topology, description), port)
    return next(number for number, link in enumerate(topology.subnet.links) if end in (link.a, link.b))


def blocks_of(tables: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], bytes]:
    """The entries in use of forwarding tables, by switch GUID and block."""
    return {
        (guid, first // BLOCK): bytes(table[first : first + BLOCK])
        for guid, table in tables.items()
        for first in range(0, len(table), BLOCK)
    }


@pytest.mark.parametrize(("lids", "blocks"), [({}, 1), ({"H4": 70, "H8": 130}, 3)], ids=["1 block", "3 blocks"])
def test_a_failure_is_answered_with_as_few_writes_as_it_needs(
    lids: dict[str, int], blocks: int, tmp_path: Path
) -> None:
    """A link between a leaf and a spine: only the blocks in which routes change, and no port.

    That of the other spine is among them: its way to the first one's port 0 was by that leaf.
    """
    topology = read_topology(TOPOLOGIES / "fat_tree.net")
    remembered = {named(topology, host) + 1: LidRange(lid, lid) for host, lid in lids.items()}
    quiet = brought_up(topology, tmp_path, lids=remembered)
    failure = LinkFailure(link_at(topology, "L1", 3), 400_000, 5_000)
    result = brought_up(topology, tmp_path, lids=remembered, failure=failure)
    before, after = (blocks_of(one.manager.routes.tables) for one in (quiet, result))
    assert len(before) == len(after) == 6 * blocks
    later = [event for cycle, event in result.events if cycle > failure.cycle]
    written = [(event.guid, block) for event in later if isinstance(event, TablesWritten) for block in event.blocks]
    assert sorted(written) == sorted(key for key in after if after[key] != before[key])
    assert {topology.subnet.nodes[guid].description for guid, _block in written} == {"L1", "L2", "L3", "L4", "S1", "S2"}
    assert [event for event in later if isinstance(event, PortStateSet)] == []


def test_a_failure_under_way_is_dealt_with(up: BroughtUp, tmp_path: Path) -> None:
    topology = read_topology(TOPOLOGIES / "fat_tree.net")
    (first,) = [cycle for cycle, event in up("fat_tree").events if isinstance(event, SweepEnded)][:1]
    last = len(topology.subnet.links) - 1
    result = brought_up(topology, tmp_path, failure=LinkFailure(last, first // 2, 5_000))
    check_is_up(topology, result, without=last)


def test_a_failure_during_activation_is_dealt_with_soon(up: BroughtUp, tmp_path: Path) -> None:
    """The ports behind the link are not waited for one by one: each would take half as long as to come up."""
    topology = read_topology(TOPOLOGIES / "fat_tree.net")
    quiet = up("fat_tree")
    armed = [cycle for cycle, event in quiet.events if isinstance(event, PortStateSet)]
    link = link_at(topology, "L1", 3)
    result = brought_up(topology, tmp_path, failure=LinkFailure(link, armed[4], 5_000))
    check_is_up(topology, result, without=link)
    heard = next(cycle for cycle, event in result.events if isinstance(event, TrapReceived))
    again = [cycle for cycle, event in result.events if isinstance(event, TablesWritten) and cycle > heard]
    assert heard < armed[-1]
    assert again[-1] - heard < 6 * quiet.cycles // 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "records", "failure"),
    [
        ("star", 420, None),
        # Served to OpenSM, it is compared, too.
        pytest.param("parallel", 1428, None, marks=pytest.mark.deep),
        pytest.param("ring_4", 2176, None, marks=pytest.mark.deep),
        pytest.param("fat_tree", 4768, LinkFailure(4, 260_000, 5_000), marks=pytest.mark.deep),
    ],
)
def test_rtl_and_model_agree_through_the_whole_bring_up(
    name: str,
    records: int,
    failure: LinkFailure | None,
    up: BroughtUp,
    tmp_path: Path,
) -> None:
    """And, where a link fails when that is over, through this too."""
    topology = read_topology(TOPOLOGIES / f"{name}.net")
    quiet, seen = up(name), Recorder()
    result = brought_up(topology, tmp_path, [seen], engine="verilator", failure=failure)
    check_is_up(topology, result, without=None if failure is None else failure.link)
    assert result.comparison.difference is None
    assert failure is None or failure.cycle > quiet.cycles
    assert sum(record.cycle < quiet.cycles for record in seen.records) == quiet.records == records
    # The Subnet Manager cannot distinguish the two.
    alone = quiet if failure is None else brought_up(topology, tmp_path, failure=failure)
    assert (alone.posts, alone.events, alone.cycles) == (result.posts, result.events, result.cycles)
    assert result.comparison.records == result.records == alone.records


@pytest.mark.parametrize("name", ["H4", "SW2"])
def test_a_node_that_was_reset_is_found_and_brought_up_anew(name: str, tmp_path: Path) -> None:
    """Its neighbours, which hear a port that begins anew, report the change; the node itself remembers nothing."""
    made = fabric_of(read_topology(TOPOLOGIES / "parallel.net"))
    node = list(made.fabric.nodes).index(name)
    guid = made.fabric.identity(name).node_guid
    given = 200_000

    def swept(manager: SubnetManager) -> bool:
        sweeps = [event for _, event in host.events if isinstance(event, SweepEnded) and event.heavy]
        return manager.resting and len(sweeps) > 1 and sweeps[-1].complete

    settings = SubnetTask(made.fabric, made.widths, "H1").settings
    host = ManagerHost(made.fabric, "H1", 1_000, settings=settings, ended=swept)
    controls = [*first_controls(made.fabric, made.widths, ["H1"]), Control(given, Operation.RESET, node)]
    spec = RunSpec(made.fabric, controls, (), 2_000_000, host.carrier)
    with run("model", spec, tmp_path) as records:
        states = {record.source: record.a for record in records if record.kind == Kind.STATE}
    assert set(states.values()) == {PortState.ACTIVE}
    assert len(states) == 2 * len(made.fabric.links)
    assert any(isinstance(event, TrapReceived) and cycle > given for cycle, event in host.events)
    written = [event.guid for cycle, event in host.events if isinstance(event, TablesWritten) and cycle > given]
    assert written == ([guid] if name == "SW2" else [])


@pytest.mark.parametrize("name", ["star", "fat_tree"])
def test_switches_and_hosts_adapters_take_congestion_control(name: str, tmp_path: Path) -> None:
    options = parse_congestion_options("congestion_control TRUE\ncc_sw_cong_setting_threshold 15\ncc_cct 0:0,0:1", "x")
    settings = SubnetSettings(activation_wait=ACTIVATION_WAIT, congestion_control=options)
    result = brought_up(read_topology(TOPOLOGIES / f"{name}.net"), tmp_path, settings=settings)
    assert result.complete
    events = [event for _cycle, event in result.events]
    assert not [event for event in events if isinstance(event, CongestionControlUnavailable)]
    nodes = result.manager.subnet.nodes.values()
    switches = sum(node.is_switch for node in nodes)
    assert [event for event in events if isinstance(event, CongestionControlSet)] == [
        CongestionControlSet(switches, len(nodes) - switches)
    ]
