"""Fields of MADs that are rare elsewhere: in some runs requests have them, and agents are told of them."""

from __future__ import annotations

from itertools import count
from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.random_mads import has_many_mads, random_mad_controls, random_mad_packets
from cosim.stimulus.random_smps import SetSoFar, random_smp_content
from cosim.stimulus.rare_fields import has_long_leases, has_other_lids, has_rare_fields
from wire.codes import LID_MULTICAST_MIN, LNH, VL15, mtu_code
from wire.headers import GRH, LRH
from wire.mad import MadMethod
from wire.mad_packet import is_of_management
from wire.port_info import PORT_INFO
from wire.registers import NodeRegister, node_address
from wire.sma import SmaAttribute

TOPOLOGY = check_experiment(CheckOptions(3, 2, cycles=20_000)).topology
CYCLES = 100_000


def seed_of_many(*, rare: bool) -> int:
    return next(seed for seed in count(1) if has_many_mads(seed) and has_rare_fields(seed) is rare)


def packets(seed: int) -> list[bytes]:
    return [packet.data for packet in random_mad_packets(TOPOLOGY, seed, 0, CYCLES)]


def port_infos(rare: Random | None) -> list[bytes]:
    """Of Sets at the switch."""
    random, so_far = Random(1), SetSoFar(rare=rare)
    contents = (random_smp_content(TOPOLOGY, random, "S", so_far) for _ in range(2_000))
    of_sets = (one for one in contents if one.method == MadMethod.SET)
    return [one.data for one in of_sets if one.attribute_id == SmaAttribute.PORT_INFO]


def gids(seed: int) -> set[tuple[int, int]]:
    with_grh = [data for data in packets(seed) if LRH["lnh"].read(data) == LNH.IBA_GLOBAL]
    return {(GRH["sgid"].read(data, LRH.size_bytes), GRH["dgid"].read(data, LRH.size_bytes)) for data in with_grh}


def test_in_some_runs_both_gids_of_grhs_are_anything() -> None:
    assert len(gids(seed_of_many(rare=True))) > 20
    assert gids(seed_of_many(rare=False)) == {(0, 0)}


def test_in_the_same_runs_ports_are_told_mtus_that_there_are_not_and_few_m_keys() -> None:
    infos = port_infos(Random(1))
    mtus = [PORT_INFO["neighbor_mtu"].read(info) for info in infos]
    most = mtu_code(TOPOLOGY.fabric.nodes["S"].mtu)
    assert min(mtus.count(0), mtus.count(most + 1)) > len(infos) / 25
    keys, usual = ({PORT_INFO["m_key"].read(info) for info in of} for of in (infos, port_infos(None)))
    assert len(keys) == 2 < len(usual)


def test_in_the_same_runs_seconds_of_leases_are_short_but_for_a_high_bit() -> None:
    def seconds(seed: int) -> list[int]:
        controls = random_mad_controls(TOPOLOGY, seed, 0, CYCLES)
        address = node_address(NodeRegister.LEASE_SECOND)
        return [one.args[1] for one in controls if one.args[0] == address]

    rare = seconds(seed_of_many(rare=True))
    assert all((second >> 11).bit_count() <= 1 for second in rare)
    assert all(sum(second >> bit == 1 for second in rare) > 5 for bit in (20, 21, 22))


def test_in_some_runs_leases_would_soon_end_but_for_any_one_high_bit_and_keys_are_right_or_wrong() -> None:
    random, so_far = Random(1), SetSoFar(leased=Random(1))
    contents = [random_smp_content(TOPOLOGY, random, "S", so_far) for _ in range(2_000)]
    of_sets = [one for one in contents if one.method == MadMethod.SET and one.attribute_id == SmaAttribute.PORT_INFO]
    periods = [PORT_INFO["m_key_lease_period"].read(one.data) for one in of_sets]
    assert {period & 15 for period in periods} == {2, 3}
    assert {period >> 4 for period in periods} == {1 << bit for bit in range(12)}
    assert all(PORT_INFO["m_key_protect_bits"].read(one.data) for one in of_sets)
    (own,) = {PORT_INFO["m_key"].read(one.data) for one in of_sets}
    right = sum(so_far.m_key(random) == own for _ in range(1_000))
    assert 300 < right < 700


def test_in_the_same_runs_seconds_of_leases_are_over_before_many_smps_have_come() -> None:
    address = node_address(NodeRegister.LEASE_SECOND)
    for has_them in (True, False):
        seed = next(seed for seed in count(1) if has_many_mads(seed) and has_long_leases(seed) is has_them)
        controls = random_mad_controls(TOPOLOGY, seed, 0, CYCLES)
        seconds = [one.args[1] for one in controls if one.args[0] == address]
        assert all(50 <= second <= 300 for second in seconds) is has_them


def test_in_some_runs_adapters_have_any_lids_for_some_time_and_hosts_ask_their_own_agents_by_them() -> None:
    seed = next(seed for seed in count(1) if has_many_mads(seed) and has_other_lids(seed))
    addresses = {TOPOLOGY.index[host]: host for host in TOPOLOGY.lids}
    given: dict[str, list[int]] = {host: [] for host in TOPOLOGY.lids}
    for one in random_mad_controls(TOPOLOGY, seed, 0, CYCLES):
        if one.target in addresses and one.args[0] == node_address(NodeRegister.LID):
            given[addresses[one.target]].append(one.args[1])
    asked: dict[str, list[int]] = {host: [] for host in TOPOLOGY.lids}
    for packet in random_mad_packets(TOPOLOGY, seed, 0, CYCLES):
        if LRH["vl"].read(packet.data) != VL15 and is_of_management(packet.data):
            asked[packet.source].append(LRH["dlid"].read(packet.data))
    for host, lids in given.items():
        differ = {lid ^ TOPOLOGY.lids[host] for lid in lids}
        assert len(differ) > 10
        assert sum(one.bit_count() == 1 for one in differ) > 3
        assert 0 < min(lids) <= max(lids) < LID_MULTICAST_MIN
        others = {lid for lid in lids if lid not in TOPOLOGY.lids.values()}
        assert len(others & set(asked[host])) > 5
        assert any((lid ^ other).bit_count() == 1 for lid in asked[host] for other in others)
