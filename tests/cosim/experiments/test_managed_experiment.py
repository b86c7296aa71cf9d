"""Scenarios brought up by Subnet Managers: when traffic may start, by which LIDs and paths, and that runs repeat."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.managed_experiment import managed_experiment, manager_hosts
from cosim.experiments.perform import perform
from cosim.hosts.manager_host import first_controls
from cosim.scenario.find_scenario import ScenarioError
from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import load_scenario, parse_scenario
from cosim.stimulus.bus_bring_up import write
from cosim.topology.topology import Port, Topology
from sm.events import LinkLost, NodeLost, SweepEnded, TablesWritten, TrapReceived
from tests.campaigns import FAT_TREE_LINKS
from tests.cosim.recorder import Recorder
from tests.files import TOPOLOGIES
from wire.codes import PortState
from wire.headers import LRH
from wire.registers import PortRegister, port_address
from wire.stimulus import Operation
from wire.trace import Kind, Record, Verdict, port_of_source
from wire.trace_layout import RxData

TREE = """
cycles = 160_000
topology = "fat_tree.net"
[[flows]]
from = "H2"
to = "H8"
rate = 0.02
[[errors]]
kind = "link_down"
from = "L1[{port}]"
at = 1_000
[[ports]]
at = "*"
link_down_timeout = 2_000
"""

TWO_PARTS = """
cycles = 2_000
[switches.S]
ports = 2
[hosts.A]
[hosts.B]
[hosts.C]
[hosts.D]
[[links]]
ends = ["A", "S[1]"]
[[links]]
ends = ["S[2]", "C"]
[[links]]
ends = ["D", "B"]
[[flows]]
from = "A"
to = "C"
count = 3
[[flows]]
from = "D"
to = "B"
count = 3
"""


def scenario(text: str) -> Scenario:
    return parse_scenario(text, "test", folder=TOPOLOGIES)


def performed(experiment: Experiment, tmp_path: Path) -> Recorder:
    """What comes of an experiment in the golden model."""
    seen = Recorder()
    perform(experiment, "model", tmp_path, [seen])
    return seen


def states(experiment: Experiment, records: list[Record], cycle: int) -> set[PortState]:
    """The states of all linked ports in a cycle."""
    last = {}
    for record in records:
        if record.kind == Kind.STATE and record.cycle <= cycle:
            last[port_of_source(record.source)] = PortState(record.a)
    assert len(last) == len(experiment.topology.linked_ports())
    return set(last.values())


@pytest.mark.parametrize("name", ["jam", "blocked-vl", "slow-host"])
def test_every_port_is_active_when_traffic_may_start(name, tmp_path):
    experiment = managed_experiment(load_scenario(name))
    seen = performed(experiment, tmp_path)
    assert states(experiment, seen.records, experiment.start) == {PortState.ACTIVE}
    assert all(cycle < experiment.start for _host, cycle, event in seen.events if isinstance(event, SweepEnded))


def test_lids_and_ways_are_those_that_the_subnet_manager_gave():
    topology = managed_experiment(load_scenario("jam")).topology
    # In the order in which it found them: A, where it runs, the switch, B.
    assert topology.lids == {"A": 1, "B": 3}
    assert topology.tables == {"S": {1: 1, 2: 0, 3: 2}}


def test_nothing_is_written_over_the_test_bus_but_what_no_smp_can():
    jam = managed_experiment(load_scenario("jam"))
    writes = [control for control in jam.controls() if control.operation == Operation.BUS_WRITE]
    # The cable from the switch to B has one lane.
    width = port_address(2, PortRegister.WIDTH), port_address(1, PortRegister.WIDTH)
    assert [(control.target, control.args[0]) for control in writes] == [(0, width[0]), (2, width[1])]


def test_there_is_a_subnet_manager_in_each_part(tmp_path):
    two = scenario(TWO_PARTS)
    assert manager_hosts(two.fabric) == ["A", "B"]
    experiment = managed_experiment(two)
    assert experiment.topology.lids == {"A": 1, "B": 1, "C": 3, "D": 2}
    seen = performed(experiment, tmp_path)
    assert {host for host, _cycle, _event in seen.events} == {"A", "B"}
    nodes = list(two.fabric.nodes)
    arrived = [nodes[delivery.node] for delivery in seen.deliveries if delivery.slot == 0]
    assert sorted(arrived) == ["B"] * 3 + ["C"] * 3


def test_the_subnet_manager_maps_sls_to_vls(tmp_path):
    text = """
    cycles = 5_000
    sl_to_vl = [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    [switches.S]
    ports = 2
    vls = 2
    [hosts.A]
    vls = 2
    [hosts.B]
    vls = 2
    [[links]]
    ends = ["A", "S[1]"]
    [[links]]
    ends = ["B", "S[2]"]
    [[flows]]
    from = "A"
    to = "B"
    sl = [0, 1, 2, 3]
    count = 20
    """
    experiment = managed_experiment(scenario(text))
    seen = performed(experiment, tmp_path)
    came = [delivery for delivery in seen.deliveries if delivery.node == 2 and delivery.slot < 2]
    assert len(came) == 20
    assert all(delivery.slot == 1 - LRH["sl"].read(delivery.data) % 2 for delivery in came)


APART = """
cycles = 6_000
topology = "fat_tree.net"
[partitions.alpha]
key = 0x123
full = ["H1", "H3"]
limited = ["H7"]
[partitions.beta]
key = 0x7001
full = ["H2"]
limited = ["H3"]
[partitions.default]
key = 0x7fff
full = ["H1"]
limited = ["H2"]
"""
"""H4 and those behind it are in no partition, but H7."""

TRIES = [
    ("H1", "H3", "alpha", "H3"),
    ("H1", "H7", "alpha", "H7"),
    ("H2", "H3", "beta", "H3"),
    ("H1", "H2", "", "H2"),
    # Who is no member sends as a full one, and is refused at the host's own switch.
    ("H1", "H3", "beta", "L1 RCV_CONSTRAINT"),
    ("H2", "H3", "alpha", "L1 RCV_CONSTRAINT"),
    ("H4", "H1", "", "L2 RCV_CONSTRAINT"),
    # Whom a packet is not for is asked at that one's switch.
    ("H1", "H2", "alpha", "L1 XMIT_CONSTRAINT"),
    ("H3", "H8", "alpha", "L4 XMIT_CONSTRAINT"),
    ("H2", "H7", "beta", "L4 XMIT_CONSTRAINT"),
    ("H1", "H5", "", "L3 XMIT_CONSTRAINT"),
]
"""Source, destination and partition of two packets, and where they are delivered or refused."""

APART_CYCLES = 500
"""From one of these to the next."""


@pytest.mark.parametrize("experiment_of", [managed_experiment, scenario_experiment])
def test_switches_check_by_partitions_whoever_brings_them_up(experiment_of, tmp_path):
    flows = [
        f'[[flows]]\nfrom = "{source}"\nto = "{to}"\ncount = 2\nstart = {place * APART_CYCLES}\n'
        + (f'partition = "{partition}"\n' if partition else "")
        for place, (source, to, partition, _fate) in enumerate(TRIES)
    ]
    experiment = experiment_of(scenario(APART + "".join(flows)))
    nodes = list(experiment.topology.fabric.nodes)
    fates: list[list[str]] = [[] for _ in TRIES]
    for record in performed(experiment, tmp_path).records:
        if record.cycle < experiment.start or record.kind not in (Kind.RX_DATA, Kind.DELIVER):
            continue
        place = (record.cycle - experiment.start) // APART_CYCLES
        node = nodes[port_of_source(record.source)[0]]
        if record.kind == Kind.DELIVER and record.a == experiment.topology.fabric.nodes[node].vls:
            continue  # the Subnet Manager hears of it, and says so
        if record.kind == Kind.DELIVER:
            fates[place].append(node)
        elif (verdict := Verdict(RxData.verdict.read(record))) != Verdict.GOOD:
            fates[place].append(f"{node} {verdict.name}")
    assert fates == [[fate] * 2 for *_try, fate in TRIES]


def test_while_traffic_flows_a_failed_link_is_routed_around(tmp_path):
    before = managed_experiment(scenario(TREE.format(port=3)))
    # The port of L1 by which packets to H8 leave.
    used = before.topology.tables["L1"][before.topology.lids["H8"]]
    experiment = managed_experiment(scenario(TREE.format(port=used)))
    assert experiment.start == before.start
    seen = performed(experiment, tmp_path)
    happened = [(cycle, event) for _host, cycle, event in seen.events if cycle > experiment.start]
    kinds = [type(event) for _cycle, event in happened]
    assert kinds.index(TrapReceived) < kinds.index(LinkLost) < kinds.index(TablesWritten)
    written = next(cycle for cycle, event in happened if isinstance(event, TablesWritten))
    # Nothing arrives while the link is gone and the path leads over it; then all arrives again.
    to = [delivery.cycle for delivery in seen.deliveries if delivery.node == experiment.topology.index["H8"]]
    assert not [cycle for cycle in to if experiment.start + 2_000 < cycle < written]
    posted = [packet.cycle for packet in experiment.packets() if packet.cycle < experiment.end]
    sent_after = sum(cycle > written + 10_000 for cycle in posted)
    assert sum(cycle > written + 10_000 for cycle in to) >= sent_after - 1 > 10


def links_between(topology: Topology, source: str, destination: str) -> set[frozenset[Port]]:
    """The links that a packet goes by."""
    peers = dict(topology_links(topology))
    port, links = Port(source, 1), set()
    while True:
        links.add(frozenset((port, peers[port])))
        node = peers[port].node
        if node == destination:
            return links
        port = Port(node, topology.tables[node][topology.lids[destination]])


def topology_links(topology: Topology) -> Iterator[tuple[Port, Port]]:
    """Both ends of each link, in either order."""
    for link in topology.fabric.links:
        a, b = Port(link.a, link.a_port), Port(link.b, link.b_port)
        yield a, b
        yield b, a


@pytest.mark.slow
@pytest.mark.parametrize("link", FAT_TREE_LINKS)
def test_a_failed_link_costs_only_what_was_on_it(link, tmp_path):
    hosts = [f"H{number}" for number in range(1, 9)]
    # Each host sends to the other at its leaf, to one at the next leaf, and to one further on.
    pairs = [(host, hosts[(place + step) % 8]) for place, host in enumerate(hosts) for step in (1, 2, 5, 7)]
    flows = "".join(f'[[flows]]\nfrom = "{source}"\nto = "{to}"\nrate = 0.01\n' for source, to in pairs)
    ends = list(topology_links(managed_experiment(scenario(TREE.format(port=3))).topology))[2 * link]
    failed = frozenset(ends)
    at = f"{ends[0].node}" + (f"[{ends[0].number}]" if ends[0].node not in hosts else "")
    experiment = managed_experiment(scenario(TREE.replace("L1[{port}]", at) + flows))
    seen = performed(experiment, tmp_path)

    arrived = Counter(one.data for one in seen.deliveries if one.slot == 0)
    gone = {end.node for end in ends} & set(hosts)
    happened = [(cycle, event) for _host, cycle, event in seen.events if cycle > experiment.start]
    again = max((cycle for cycle, event in happened if isinstance(event, TablesWritten)), default=experiment.start)
    unhurt = carried_again = 0
    for packet in experiment.packets():
        if packet.cycle > experiment.end - 20_000:
            continue
        count = arrived[packet.data]
        if failed not in links_between(experiment.topology, packet.source, packet.destination):
            assert count == 1, packet
            unhurt += 1
        elif packet.cycle > again + 10_000 and not {packet.source, packet.destination} & gone:
            assert count == 1, packet
            carried_again += 1
    assert unhurt > 300
    assert (carried_again > 10) == (not gone)
    lost = {event.node.description for _cycle, event in happened if isinstance(event, NodeLost)}
    # No trap reaches a Subnet Manager whose own link fails.
    assert lost == gone - set(manager_hosts(experiment.topology.fabric))


def test_two_runs_are_the_same(tmp_path):
    scenario = load_scenario("jam")
    first, second = (performed(managed_experiment(scenario), tmp_path) for _run in range(2))
    assert (first.records, first.deliveries, first.events) == (second.records, second.deliveries, second.events)


def test_a_fabric_that_does_not_come_up_is_told_with_a_reason_by_names(monkeypatch):
    """A port that is taken down over and over."""
    jam = load_scenario("jam")
    node, state = list(jam.fabric.nodes).index("B"), port_address(1, PortRegister.STATE)

    def controls(*fabric):
        first = first_controls(*fabric)
        return first + [write(cycle, node, state, PortState.DOWN) for cycle in range(1_000, 1_000_000, 400)]

    monkeypatch.setattr("cosim.experiments.managed_experiment.first_controls", controls)
    message = r"^no Subnet Manager reaches B: the node behind S\[2\] is left out: "
    with pytest.raises(ScenarioError, match=message):
        managed_experiment(jam)


def test_a_host_out_of_the_subnet_managers_reach_is_told(monkeypatch):
    monkeypatch.setattr("sm.discovery.MAX_HOPS", 1)
    with pytest.raises(ScenarioError, match=r"^no Subnet Manager reaches B: the node behind S\[2\] is left out: "):
        managed_experiment(load_scenario("jam"))


@pytest.mark.slow
def test_rtl_and_model_agree_on_a_managed_scenario(tmp_path):
    experiment = managed_experiment(load_scenario("jam"))
    seen = Recorder()
    assert perform(experiment, "verilator", tmp_path, [seen]).difference is None
    assert seen.events == performed(experiment, tmp_path).events
