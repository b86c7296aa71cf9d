"""LIDs, LMCs and VLs drawn for a fabric."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.scenario.scenario_file import load_scenario
from cosim.stimulus.random_addresses import has_own_addresses, has_vls_of_pairs, random_addresses
from cosim.topology.topology import Port, Topology
from wire.codes import SERVICE_LEVELS
from wire.parameters import SwitchParameters

TOPOLOGY = load_scenario("jam").topology


def drawn(count: int = 40) -> list[Topology]:
    return [random_addresses(TOPOLOGY, Random(seed)) for seed in range(count)]


def test_no_two_hosts_share_a_lid_and_all_lids_are_in_the_tables():
    for topology in drawn():
        lids = [lid for host in topology.lids for lid in topology.lids_of(host)]
        assert len(set(lids)) == len(lids)
        assert min(lids) > 0
        for table in topology.tables.values():
            assert set(table) == set(lids)


def test_the_low_lmc_bits_of_a_first_lid_are_zero():
    """LIDs of a port differ in these alone: its range is a block (FACTS 3.1)."""
    for topology in drawn():
        for host in topology.lids:
            assert topology.lids_of(host)[0] % len(topology.lids_of(host)) == 0
    assert {topology.lmcs.get(host, 0) for topology in drawn() for host in topology.lids} == {0, 1, 2, 3}


def test_lids_lie_all_over_a_table():
    sizes = [node.lft_size for node in TOPOLOGY.fabric.nodes.values() if isinstance(node, SwitchParameters)]
    lids = [lid for topology in drawn() for lid in topology.lids.values()]
    assert min(lids) < min(sizes) / 10
    assert max(lids) > min(sizes) * 9 / 10


def test_vls_depend_on_the_input_in_some_fabrics_and_the_link_has_them():
    topologies = drawn()
    assert 0 < sum(bool(topology.vls_at) for topology in topologies) < len(topologies)
    for topology in topologies:
        for (switch, into, out), vls in topology.vls_at.items():
            port = Port(switch, out)
            assert len(vls) == SERVICE_LEVELS
            assert max(vls) < topology.vls(port)
            assert [topology.vl(port, sl, into) for sl in range(SERVICE_LEVELS)] == list(vls)


def test_half_of_the_runs_of_one_fabric_have_such_addresses():
    """In the others LIDs are 1, 2, ..., and an SL has the same VL everywhere."""
    common = CheckOptions(ports=3, cycles=20_000, fabric_seed=9)
    drawn = {seed: check_experiment(replace(common, seed=seed)).topology for seed in range(12)}
    for seed, topology in drawn.items():
        assert (list(topology.lids.values()) != [1, 2, 3]) == has_own_addresses(seed)
    own = [topology for seed, topology in drawn.items() if has_own_addresses(seed)]
    assert 2 < len(own) < 10
    assert 0 < sum(bool(topology.vls_at) for topology in own) < len(own)


def test_in_some_runs_all_pairs_have_vls_of_their_own_and_many_one_for_all_service_levels():
    seeds = [seed for seed in range(2_000) if has_own_addresses(seed) and has_vls_of_pairs(seed)]
    options = CheckOptions(ports=3, vls=2, cycles=20_000, sim="model", fabric_seed=9)
    tables = [check_experiment(replace(options, seed=seed)).topology.vls_at for seed in seeds[:8]]
    assert {len(table) for table in tables} == {9}
    assert {len(set(vls)) for table in tables for vls in table.values()} == {1, 2}
