"""What a check simulates follows from its options, and its seed from nothing else."""

from collections import Counter
from dataclasses import replace
from itertools import takewhile

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment, check_scenario
from cosim.stimulus.bus_bring_up import multicast_entries
from cosim.stimulus.mad_mutation import mad_of
from cosim.topology.topology import Port
from wire.codes import LID_MULTICAST_MIN
from wire.forwarding_tables import MULTICAST_FORWARDING_TABLE
from wire.headers import LRH
from wire.mad import MAD_HEADER, MgmtClass
from wire.mad_packet import is_mad
from wire.registers import lft_address, mft_address
from wire.stimulus import Operation

_LFT = range(lft_address(0), lft_address(1024))
_MFT = range(mft_address(LID_MULTICAST_MIN, 0), mft_address(LID_MULTICAST_MIN + 256, 0))

SMALL = CheckOptions(ports=3, vls=2, mtu=256, cycles=12_000, sim="model")


def test_the_same_options_give_the_same_stimulus():
    one, other = check_experiment(SMALL).spec(), check_experiment(SMALL).spec()
    assert one.parameters == other.parameters
    assert list(one.controls) == list(other.controls)
    assert list(one.posts) == list(other.posts)


def test_another_seed_gives_another_fabric_and_other_traffic():
    scenarios = [check_scenario(CheckOptions(seed=seed, ports=4)) for seed in range(5)]
    assert len({str(scenario.fabric) for scenario in scenarios}) == 5


def test_a_topology_keeps_its_nodes_and_cables_and_gets_buffers_and_widths_from_the_seed():
    one, other = (check_scenario(CheckOptions(fabric="fat_tree", seed=seed)).fabric for seed in (1, 2))
    assert {name: type(node) for name, node in one.nodes.items()} == {
        name: type(node) for name, node in other.nodes.items()
    }
    cables = [
        {frozenset(((link.a, link.a_port), (link.b, link.b_port))) for link in fabric.links} for fabric in (one, other)
    ]
    assert cables[0] == cables[1]
    assert one.nodes != other.nodes


def is_of_congestion_control(data):
    return is_mad(data) and MAD_HEADER["mgmt_class"].read(mad_of(data)) == MgmtClass.CONGESTION_CONTROL


@pytest.mark.parametrize("errors", [False, True])
@pytest.mark.parametrize("fabric", ["fat_tree", "parallel"])
def test_hosts_ask_the_agents_of_the_switches_behind_them(fabric, errors):
    """What is for agents: requests of congestion control by their LIDs."""
    experiments = [check_experiment(CheckOptions(fabric=fabric, seed=seed, errors=errors)) for seed in range(8)]
    asked = set()
    for experiment in experiments:
        lids = experiment.topology.lids
        for packet in experiment.packets():
            dlid = LRH["dlid"].read(packet.data)
            if max(lids.values()) < dlid < LID_MULTICAST_MIN and is_of_congestion_control(packet.data):
                asked.add((packet.source, dlid))
    first = experiments[0].topology
    assert asked
    for host, dlid in asked:
        far = first.far_end(Port(host, 1))
        assert far is not None
        assert dlid == max(first.lids.values()) + 1 + first.index[far.node]


def test_among_several_switches_no_entry_for_a_group_is_other_than_its_tree():
    """Copies that came back to a switch would multiply."""
    for seed in range(12):
        experiment = check_experiment(CheckOptions(fabric="ring_4", seed=seed, cycles=60_000))
        topology = experiment.topology
        right = {entry for name in topology.multicast_tables for entry in multicast_entries(topology, name)}
        for control in experiment.controls():
            is_entry = control.operation == Operation.BUS_WRITE and control.args[0] in _MFT
            if is_entry and control.args[1] < 1 << MULTICAST_FORWARDING_TABLE.entry.width:
                assert control.args[1] == 0 or (control.target, *control.args[:2]) in right


@pytest.mark.parametrize("widths", ["4X", "1X", "mixed"])
def test_links_have_the_widths_asked_for(widths):
    seen = {link.width for link in check_scenario(CheckOptions(ports=8, widths=widths)).links}
    assert seen == ({"1X", "4X"} if widths == "mixed" else {widths})


def test_counters_are_read_in_the_last_cycles():
    experiment = check_experiment(SMALL)
    last = list(experiment.controls())[-1]
    assert last.operation == Operation.BUS_READ
    assert last.cycle + 4 < experiment.cycles == SMALL.cycles


def test_too_short_a_run_is_refused_with_the_least_length():
    with pytest.raises(ValueError, match=r"cycles 500: expected more than \d{4}"):
        check_experiment(CheckOptions(cycles=500))


def test_the_replay_line_has_every_option():
    assert CheckOptions(seed=9, errors=False).command == (
        "ironband check --ports 4 --vls 2 --mtu 256 --queueing voq --cycles 20000 --seed 9 --widths mixed "
        "--load 0.7 --sim verilator --no-errors"
    )


def test_the_errors_ordered_are_counted_as_they_are_drawn():
    given = Counter()
    controls = check_experiment(SMALL, given).controls()
    next(controls)
    assert not given
    for _ in controls:
        pass
    assert sum(given.values()) > 0


def test_a_subnet_manager_brings_some_random_fabrics_up_and_its_smps_are_posted_again():
    """Where it is done in time; a shorter run of the same fabric is brought up over the test bus."""
    options = CheckOptions(fabric="random", seed=1705, cycles=100_000)
    managed, written = (check_experiment(replace(options, cycles=cycles)) for cycles in (100_000, 30_000))
    assert managed.topology.fabric == written.topology.fabric
    assert written.start < 5_000 < managed.start < 90_000
    smps = list(takewhile(lambda packet: packet.cycle < managed.start, managed.packets()))
    assert {packet.source for packet in smps} == {"H1"}
    assert len(smps) > 100
    assert all(is_mad(packet.data) for packet in smps)
    before = takewhile(lambda control: control.cycle < managed.start, managed.controls())
    assert not any(control.operation == Operation.BUS_WRITE and control.args[0] in _LFT for control in before)


def test_with_a_seed_for_the_fabric_settings_and_widths_follow_from_the_other():
    options = [replace(SMALL, seed=seed, fabric_seed=9) for seed in range(1, 6)]
    experiments = [check_experiment(one) for one in options]
    assert len({str(one.topology.fabric) for one in experiments}) == 1
    widths = {tuple(one.topology.pace(port) for port in one.topology.linked_ports()) for one in experiments}
    assert len(widths) > 1
    settings = {tuple(str(table) for table in check_scenario(one).ports) for one in options}
    assert len(settings) == len(options)
