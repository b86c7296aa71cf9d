"""Traffic: packets that a fabric may carry, the same ones for the same seed."""

from collections import Counter, defaultdict
from itertools import count, islice

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.scenario.scenario_file import load_scenario, parse_scenario
from cosim.stimulus.agents import agent_lid
from cosim.stimulus.flows import scenario_packets
from cosim.stimulus.random_groups import has_groups
from cosim.stimulus.random_packets import (
    RandomTraffic,
    has_bursts_to_agent,
    has_shortest_packets,
    has_starved_copies,
    has_steps,
    random_packets,
)
from cosim.topology.topology import Port
from wire.codes import LNH, MTU, VL15, is_multicast_lid, max_pkt_len
from wire.headers import BTH, DETH, LRH
from wire.packet import parse

FLOWS = """
cycles = 10_000
[hosts.A]
vls = 4
[hosts.B]
vls = 4
[switches.S]
ports = 2
vls = 4
[[links]]
ends = ["A", "S[1]"]
[[links]]
ends = ["S[2]", "B"]
width = "1X"
[[flows]]
from = "A"
to = "B"
sl = 6
size = [10, 500]
rate = 0.25
start = 100
[[flows]]
from = "B"
to = "A"
size = 64
count = 3
rate = 0.5
"""


def flows(seed: int = 0) -> list:
    scenario = parse_scenario(FLOWS, "flows.toml")
    return list(scenario_packets(scenario, scenario.topology, 1000, seed))


def test_packets_are_ud_sends_with_good_icrcs_from_source_to_destination():
    for packet in flows():
        parsed = parse(packet.data)
        assert parsed.icrc_good
        lids = {"A": 1, "B": 2}
        assert (parsed.lrh.slid, parsed.lrh.dlid) == (lids[packet.source], lids[packet.destination])
        assert (parsed.header(DETH).src_qp - 0x100, parsed.header(BTH).psn) == (packet.flow, packet.sequence)
        assert len(parsed.payload) == packet.payload_bytes


def test_the_sl_gives_the_vl_and_the_slot():
    first = next(packet for packet in flows() if packet.flow == 0)
    assert (first.slot, first.final_vl, parse(first.data).lrh.sl, parse(first.data).lrh.vl) == (2, 2, 6, 2)


def test_a_flow_starts_when_it_should_and_keeps_its_link_busy_for_its_rate():
    packets = [packet for packet in flows() if packet.flow == 0]
    assert packets[0].cycle == 1100
    busy = sum(packet.rows for packet in packets)
    assert busy / 9_900 == pytest.approx(0.25, rel=0.05)
    assert max(packet.payload_bytes for packet in packets) <= 500


def test_a_flow_with_count_ends_with_it_and_a_1x_link_takes_four_times_as_long():
    packets = [packet for packet in flows() if packet.flow == 1]
    rows = packets[0].rows
    assert [packet.cycle for packet in packets] == [1000 + step * rows * 4 * 2 for step in range(3)]


def test_packets_come_in_the_order_of_cycles():
    cycles = [packet.cycle for packet in flows()]
    assert cycles == sorted(cycles)


def test_the_same_seed_gives_the_same_packets_and_another_one_others():
    assert flows(1) == flows(1)
    assert flows(1) != flows(2)


def test_no_two_packets_are_alike():
    packets = list(islice(jam_packets(), 2000))
    assert len({LRH["vl"].write(packet.data, 0) for packet in packets}) == len(packets)


def jam_packets():
    experiment = check_experiment(CheckOptions(cycles=100_000, errors=False, seed=5))
    return experiment.packets()


def test_random_traffic_asks_no_host_for_more_than_the_load():
    """With mixed widths, over a long time."""
    options = CheckOptions(ports=5, vls=4, mtu=512, cycles=800_000, errors=False, seed=11, load=0.6)
    experiment = check_experiment(options)
    topology = experiment.topology
    assert {topology.pace(Port(host, 1)) for host in topology.lids} == {1, 4}
    busy: Counter[str] = Counter()
    for packet in experiment.packets():
        if packet.destination is None:
            continue  # a request to the switch's agent
        busy[packet.destination] += packet.rows * topology.pace(Port(packet.destination, 1))
    assert max(busy.values()) / options.cycles < 0.75
    assert max(busy.values()) / options.cycles > 0.3


def test_random_traffic_has_all_kinds_of_packets():
    experiment = check_experiment(CheckOptions(ports=4, vls=4, mtu=1024, cycles=200_000, seed=3))
    topology = experiment.topology
    seen = defaultdict(set)
    for packet in experiment.packets():
        seen["lnh"].add(LRH["lnh"].read(packet.data))
        seen["slot"].add(packet.slot)
        seen["pairs"].add((packet.source, packet.destination))
        seen["stray"].add(packet.destination is None)
        if packet.destination is not None:
            seen["size"].add(packet.pkt_len)
            assert LRH["pkt_len"].read(packet.data) == packet.pkt_len
            assert packet.final_vl == VL15 or packet.final_vl < 4
    assert seen["lnh"] == {LNH.RAW, LNH.IBA_LOCAL, LNH.IBA_GLOBAL}
    assert seen["slot"] == set(range(5))
    assert len(seen["pairs"]) >= 4 * 3
    assert seen["stray"] == {True, False}
    assert min(seen["size"]) <= 10
    assert max(seen["size"]) == max_pkt_len(MTU.MTU_1024)
    assert (1024 + 32) // 4 + 10 in seen["size"], "a full payload with a GRH"
    assert topology.lids == {"H1": 1, "H2": 2, "H3": 3, "H4": 4}


def test_sequences_of_a_flow_count_up():
    scenario = load_scenario("jam")
    topology = scenario.topology
    traffic = RandomTraffic(seed=1, start=0, end=50_000, load=0.5, strays=True)
    last: dict[int, int] = {}
    for packet in random_packets(topology, traffic):
        assert packet.sequence == last.get(packet.flow, -1) + 1
        assert packet.cycle < 50_000
        last[packet.flow] = packet.sequence


def test_packets_to_each_group_are_a_flow_of_their_own():
    """Groups have trees of their own: those to one may overtake those to another, and nothing was lost."""
    experiment = check_experiment(CheckOptions(fabric="ring_4", cycles=60_000, errors=False, seed=6))
    assert len(experiment.topology.groups) > 1
    ways = defaultdict(set)
    for packet in experiment.packets():
        ways[packet.flow].add((packet.source, LRH["dlid"].read(packet.data)))
    assert {dlid for way in ways.values() for _, dlid in way} > set(experiment.topology.groups)
    assert all(len(way) == 1 for way in ways.values())


def test_some_strays_end_before_what_their_headers_say_they_have():
    """Their PktLen is right, and what they have of a BTH or DETH."""
    topology = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
    lengths = Counter(
        packet.pkt_len
        for seed in range(6)
        for packet in random_packets(topology, RandomTraffic(seed, 0, 100_000, 0.7, strays=True))
        if LRH["lnh"].read(packet.data) == LNH.IBA_LOCAL and packet.pkt_len == LRH["pkt_len"].read(packet.data)
    )
    assert {5, 6, 7} <= set(lengths)


def test_in_a_tenth_of_the_runs_all_packets_are_as_short_as_they_can_be_and_many_raw():
    seeds = [seed for seed in range(200) if has_shortest_packets(seed)]
    assert 8 < len(seeds) < 35
    topology = check_experiment(CheckOptions(ports=3, vls=2, cycles=20_000, sim="model")).topology
    lengths: Counter[int] = Counter()
    for seed in seeds[:4]:
        traffic = RandomTraffic(seed, 0, 40_000, 0.7, strays=False)
        lengths.update(
            packet.pkt_len for packet in random_packets(topology, traffic) if LRH["vl"].read(packet.data) != VL15
        )
    # Of a raw packet LRH, RWH and what tells it from others; with a GRH ten words more than without.
    assert min(lengths) == 5
    assert lengths[5] > 0.3 * lengths.total()
    assert max(lengths) < 30


def test_in_some_runs_many_bursts_of_shortest_packets_are_to_the_agent_of_a_switch():
    seed = next(filter(has_bursts_to_agent, count(1)))
    topology = check_experiment(CheckOptions(ports=3, vls=2, cycles=20_000, sim="model")).topology
    sizes: dict[bool, list[int]] = defaultdict(list)
    slots = set()
    for packet in random_packets(topology, RandomTraffic(seed, 0, 40_000, 0.7, strays=True)):
        is_to_agent = LRH["dlid"].read(packet.data) == agent_lid(topology, "S")
        sizes[is_to_agent].append(packet.pkt_len)
        if is_to_agent:
            slots.add(packet.slot)
            assert packet.destination is None
            assert not packet.copies
    assert 0.5 < len(sizes[True]) / len(sizes[False]) < 2
    assert slots == {0, 1}
    assert sum(size < 30 for size in sizes[True]) > 0.9 * len(sizes[True]) > sum(size < 30 for size in sizes[False])
    given = random_packets(topology, RandomTraffic(seed, 0, 40_000, 0.7, strays=False))
    assert agent_lid(topology, "S") not in {LRH["dlid"].read(packet.data) for packet in given}


def test_in_some_runs_packets_to_groups_are_the_longest_and_all_others_the_shortest():
    seed = next(seed for seed in count(1) if has_starved_copies(seed) and has_groups(seed))
    topology = check_experiment(CheckOptions(ports=3, vls=2, cycles=20_000, seed=seed, sim="model")).topology
    lengths: dict[bool, Counter[int]] = defaultdict(Counter)
    for packet in random_packets(topology, RandomTraffic(seed, 0, 100_000, 1.0, strays=False)):
        if LRH["lnh"].read(packet.data) in (LNH.IBA_LOCAL, LNH.IBA_GLOBAL):
            lengths[is_multicast_lid(LRH["dlid"].read(packet.data))][packet.pkt_len] += 1
    assert max(lengths[False]) < 30
    assert 0.03 < lengths[True].total() / lengths[False].total() < 0.3
    assert min(lengths[True]) > max_pkt_len(MTU.MTU_256) - 3


def test_in_some_runs_all_hosts_send_the_same_to_a_host_from_the_same_cycle_on():
    seed = next(filter(has_steps, count(1)))
    topology = check_experiment(CheckOptions(ports=3, vls=2, cycles=20_000, sim="model")).topology
    firsts: dict[int, dict[str, tuple[str | None, int, int]]] = defaultdict(dict)
    for packet in random_packets(topology, RandomTraffic(seed, 0, 100_000, 0.3, strays=False)):
        firsts[packet.cycle].setdefault(packet.source, (packet.destination, packet.slot, packet.pkt_len))
    assert {cycle % 500 for cycle in firsts} == {0}
    pairs = [[one for source, one in hosts.items() if one[0] != source] for hosts in firsts.values() if len(hosts) > 1]
    assert sum(max(Counter(pair).values()) > 1 for pair in pairs) > 10
