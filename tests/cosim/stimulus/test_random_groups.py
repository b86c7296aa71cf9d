"""Groups in checks: who gets what is sent to them, and what is written about them."""

from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.bus_bring_up import bus_bring_up, multicast_entries, node_writes
from cosim.stimulus.random_groups import has_groups, random_group, random_groups
from cosim.stimulus.random_packets import has_mostly_multicast
from cosim.stimulus.random_settings import random_forwarding
from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, is_multicast_lid
from wire.headers import LRH
from wire.parameters import SwitchParameters
from wire.registers import MFT_PAGE, NodeRegister, mft_address, place_of_address

HOSTS = ("H1", "H2", "H3", "H4")


def grouped(seed=1, **options):
    """The experiment of a check with groups."""
    options = CheckOptions(ports=4, vls=4, mtu=512, cycles=60_000, seed=seed, **options)
    experiment = check_experiment(options)
    assert experiment.topology.groups
    return experiment


def test_in_some_runs_there_are_groups_of_several_hosts_in_the_table():
    drawn = [random_groups(HOSTS, 64, Random(seed)) for seed in range(100)]
    assert 30 < sum(map(bool, drawn)) < 70
    assert {mlid for groups in drawn for mlid in groups} >= {0xC000, 0xC000 + 63}
    assert {len(members) for groups in drawn for members in groups.values()} == {2, 3, 4}


def test_in_some_runs_most_packets_are_to_groups():
    seed = next(seed for seed in range(1_000) if has_groups(seed) and has_mostly_multicast(seed))
    packets = list(grouped(seed).packets())
    assert sum(packet.is_multicast for packet in packets) > 0.6 * len(packets)
    assert 2 < sum(map(has_mostly_multicast, range(100))) < 25


def test_without_errors_packets_to_a_group_are_such_as_all_members_take():
    experiment = grouped(errors=False)
    topology = experiment.topology
    sent = Counter()
    for packet in experiment.packets():
        dlid = LRH["dlid"].read(packet.data)
        assert packet.is_multicast == is_multicast_lid(dlid) == bool(packet.copies)
        if packet.is_multicast:
            sent[dlid] += 1
            assert {host for host, _vl in packet.copies} == set(topology.groups[dlid]) - {packet.source}
            assert [(one.destination, one.final_vl) for one in packet.each] == list(packet.copies)
    assert set(sent) == set(topology.groups)


def test_with_errors_packets_also_go_to_groups_that_nobody_knows_and_are_too_long_for_some():
    experiment = grouped(errors=True)
    dlids = {LRH["dlid"].read(packet.data) for packet in experiment.packets() if packet.copies}
    assert dlids > set(experiment.topology.groups)


def test_the_first_lid_behind_the_table_is_one_of_those_that_nobody_knows():
    topology = grouped().topology
    random = Random(1)
    drawn = Counter(random_group(topology, random, others=True) for _ in range(2_000))
    assert drawn[LID_MULTICAST_MIN + SwitchParameters().mft_size] > 10
    assert drawn[LID_MULTICAST_MAX] > 10


def test_bring_up_writes_the_masks_of_the_groups():
    topology = replace(grouped().topology, groups={0xC007: ("H1", "H4")})
    (entry,) = multicast_entries(topology, "S")
    assert entry == (0, mft_address(0xC007, 0), 0b10010)
    assert entry in [(one.target, *one.args[:2]) for one in bus_bring_up(topology).controls]
    assert entry in [(one.target, *one.args[:2]) for one in node_writes(topology, "S", 0)[-20:]]


@pytest.mark.parametrize("groups", [True, False])
def test_what_is_written_about_groups(groups):
    topology = grouped().topology
    count, written = Counter(), defaultdict(set)
    for one in random_forwarding(topology if groups else replace(topology, groups={}), Random(1), 0, 300_000, count):
        written[place_of_address(one.args[0])].add(one.args[1])
    registers = {place[1] for place in written if place[0] == 0}
    assert count["multicast"] > 100 if groups else not count
    if groups:
        assert registers == {
            NodeRegister.MULTICAST_FDB_TOP,
            NodeRegister.DEFAULT_MULTICAST_PRIMARY,
            NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY,
        }
        assert {place[0] for place in written} == {0, MFT_PAGE}
