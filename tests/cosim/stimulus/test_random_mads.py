"""MADs at random: in half of the checks with errors, of all kinds and mutated, and nothing goes astray."""

from collections import Counter, defaultdict
from itertools import pairwise
from random import Random

import pytest

from cosim.engines.simulation import run
from cosim.experiments.check import check
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.agents import agent_lids
from cosim.stimulus.mad_mutation import mad_of
from cosim.stimulus.random_mads import (
    MAD_KINDS,
    has_many_mads,
    mostly_about,
    random_mad,
    random_mad_controls,
    random_mad_packets,
)
from cosim.stimulus.random_smps import SetSoFar, random_smp_content
from wire.codes import VL15, is_multicast_lid
from wire.headers import LRH
from wire.mad import MAD_HEADER, MadMethod, MgmtClass
from wire.mad_packet import is_mad, is_of_management
from wire.pma import PmaAttribute
from wire.port_info import PORT_INFO
from wire.registers import lft_address
from wire.sma import SmaAttribute
from wire.stimulus import Operation
from wire.switch_info import SWITCH_INFO

WITH, WITHOUT = 1, 4
"""Seeds of runs with and without MADs."""


def options(seed, **more):
    return CheckOptions(**{"ports": 3, "vls": 2, "seed": seed, "cycles": 20_000, "sim": "model"} | more)


def topology(**more):
    return check_experiment(options(WITH, **more)).topology


def mads(of, count, seed=1):
    random, hosts, so_far = Random(seed), list(of.lids), defaultdict(SetSoFar)
    for number in range(count):
        host = random.choice(hosts)
        yield host, random_mad(of, random, host, number, so_far)


def is_perf(data):
    return is_mad(data) and MAD_HEADER.unpack(mad_of(data)).mgmt_class == MgmtClass.PERF


def test_half_of_the_seeds_have_mads_and_none_without_errors():
    of = topology()
    assert 12 < sum(any(random_mad_packets(of, seed, 0, 2_000)) for seed in range(40)) < 28
    assert any(random_mad_packets(of, WITH, 0, 2_000))
    assert not any(random_mad_packets(of, WITHOUT, 0, 2_000))
    assert not list(random_mad_controls(of, WITHOUT, 0, 20_000))
    quiet, loud = (check_experiment(options(WITH, errors=errors)).packets() for errors in (False, True))
    assert not any(is_perf(packet.data) for packet in quiet)
    assert any(is_perf(packet.data) for packet in loud)


def test_mads_of_a_check_are_counted_by_kind(tmp_path):
    count = Counter()
    packets = list(random_mad_packets(topology(), WITH, 0, 60_000, count))
    assert set(count) == set(MAD_KINDS)
    assert count.total() == len(packets)
    unasked = sum(is_unasked(packet.data) for packet in packets)
    # Some are mutated besides, and some mutated requests look like answers.
    assert 0.5 * unasked < count["unasked_answer"] < 1.5 * unasked
    assert count["mutated_mad"] < count["right_mad"]
    drawn = {seed: check(options(seed), tmp_path).errors_given for seed in (WITH, WITHOUT)}
    assert set(MAD_KINDS) <= set(drawn[WITH])
    assert not set(MAD_KINDS) & set(drawn[WITHOUT])


def is_unasked(data):
    return is_mad(data) and MAD_HEADER.unpack(mad_of(data)).method == MadMethod.GET_RESP


def test_every_attribute_is_asked_for_and_set_and_every_class_of_smps_comes():
    asked = Counter()
    for _, mad in mads(topology(), 10_000):
        if is_mad(mad.data):
            header = MAD_HEADER.unpack(mad_of(mad.data))
            asked[header.mgmt_class, header.method, header.attribute_id] += 1
    for method in (MadMethod.GET, MadMethod.SET):
        for mgmt_class in (MgmtClass.SUBN_LID_ROUTED, MgmtClass.SUBN_DIRECTED_ROUTE):
            assert all(asked[mgmt_class, method, attribute] for attribute in SmaAttribute)
        assert all(asked[MgmtClass.PERF, method, attribute] for attribute in PmaAttribute)


def test_a_set_is_followed_by_gets_of_the_same_and_by_the_key_that_it_gave():
    random, of, so_far = Random(1), topology(), SetSoFar()
    contents = [random_smp_content(of, random, "S", so_far) for _ in range(2_000)]
    infos = [content for content in contents if content.attribute_id == SmaAttribute.PORT_INFO]
    given = [PORT_INFO.unpack(one.data) for one in infos if one.method == MadMethod.SET and not one.attribute_modifier]
    lids = [info.lid for info in given]
    assert all({lid >> bit & 1 for lid in lids} == {0, 1} for bit in range(16))
    assert so_far.m_keys[-1] == given[-1].m_key
    keys = Counter(so_far.m_key(random) for _ in range(1_000))
    assert keys[given[-1].m_key] > 500
    near = [key for key in keys if (key ^ given[-1].m_key).bit_count() == 1]
    assert len(near) > 10
    asked = [(one.attribute_id, one.attribute_modifier) for one in contents]
    again = sum(one in asked[max(0, place - 12) : place] for place, one in enumerate(asked))
    assert again > len(asked) * 0.3


def test_ports_are_told_of_every_width_and_of_some_that_there_are_not():
    random, of, so_far = Random(1), topology(), SetSoFar()
    contents = [random_smp_content(of, random, "S", so_far) for _ in range(8_000)]
    sets = [one for one in contents if (one.attribute_id, one.method) == (SmaAttribute.PORT_INFO, MadMethod.SET)]
    given = Counter(PORT_INFO.unpack(one.data).link_width_enabled for one in sets)
    assert min(given[width] for width in (0, 1, 2, 3, 255)) > len(sets) / 50
    assert sum(count for width, count in given.items() if 3 < width < 255) > len(sets) / 50


def test_every_host_asks_every_agent():
    of = topology(fabric="ring_4", cycles=60_000)
    met = {(host, LRH["dlid"].read(mad.data)) for host, mad in mads(of, 2_000)}
    assert {(host, lid) for host in of.lids for lid in agent_lids(of).values()} <= met


@pytest.mark.parametrize("fabric", [{}, {"fabric": "ring_4", "cycles": 60_000}])
def test_what_is_no_mad_has_the_lid_of_no_other_host(fabric):
    of = topology(**fabric)
    strange = 0
    for host, mad in mads(of, 2_000):
        if not is_of_management(mad.data):
            strange += 1
            dlid = LRH["dlid"].read(mad.data)
            assert dlid not in set(of.lids.values()) - {of.lids[host]}
            assert not is_multicast_lid(dlid)
    assert strange > 10


def test_packets_are_of_all_lengths_about_that_of_a_mad_and_on_vl15_and_others():
    made = [mad for _, mad in mads(topology(), 8_000)]
    assert {len(mad.data) // 4 - 72 for mad in made} >= {*range(-8, 0), *range(1, 9)}
    assert {mad.vl == VL15 for mad in made} == {True, False}


def test_a_wrong_entry_of_a_table_is_made_right_later():
    of = topology()
    repairs = [repair for _, mad in mads(of, 8_000) for repair in mad.repairs]
    table = {lft_address(lid): port for lid, port in of.tables["S"].items()}
    assert sum(table.get(repair.address) == repair.value for repair in repairs) > 5
    written = {control.args[:2] for control in random_mad_controls(of, WITH, 0, 20_000)}
    assert {*table.items()} <= written


def test_controls_are_writes_in_order():
    controls = list(random_mad_controls(topology(fabric="ring_4", cycles=60_000), WITH, 500, 100_000))
    assert all(one.operation == Operation.BUS_WRITE for one in controls)
    assert all(one.cycle <= other.cycle for one, other in pairwise(controls))


@pytest.mark.parametrize("fabric", [{}, {"ports": 2, "vls": 1}, {"fabric": "ring_4", "cycles": 20_000}])
def test_nothing_is_wrong_while_agents_answer(tmp_path, fabric):
    statuses = Counter()

    def hears(delivery):
        if is_mad(delivery.data):
            header = MAD_HEADER.unpack(mad_of(delivery.data))
            if header.method == MadMethod.GET_RESP:
                statuses[header.status & 0x7FFF] += 1

    for seed in (1, 14):
        experiment = check_experiment(options(seed, **fabric))
        result = check(options(seed, **fabric), tmp_path)
        assert result.held, (seed, result.faults)
        with run("model", experiment.spec(), tmp_path, on_delivery=hears) as records:
            assert sum(1 for _record in records) > 0
    assert {0, 0x0C, 0x1C} <= statuses.keys()


def test_some_agents_are_asked_with_their_own_lids():
    of = topology()
    agents = set(agent_lids(of).values()) - set(of.lids.values())
    packets = [mad.data for _, mad in mads(of, 1_000)]
    assert any(is_perf(data) and LRH["slid"].read(data) == LRH["dlid"].read(data) in agents for data in packets)


def test_in_some_runs_most_smps_are_about_one_attribute_of_a_switch():
    seeds = [seed for seed in range(100) if mostly_about(seed) is not None]
    assert 15 < len(seeds) < 45
    assert {mostly_about(seed) for seed in seeds} >= {SmaAttribute.PORT_INFO, SmaAttribute.VL_ARBITRATION_TABLE}
    of = topology()
    for seed in [seed for seed in seeds if has_many_mads(seed)][:3]:
        asked = Counter(
            MAD_HEADER.unpack(mad_of(packet.data)).attribute_id
            for packet in random_mad_packets(of, seed, 0, 40_000)
            if is_mad(packet.data) and not is_perf(packet.data)
        )
        assert asked[mostly_about(seed)] > 0.5 * asked.total() > 20


def test_sets_of_ports_and_switches_have_at_times_anything_where_nothing_is_set():
    random, of, so_far = Random(1), topology(), SetSoFar()
    contents = [random_smp_content(of, random, "S", so_far) for _ in range(2_000)]
    for attribute, layout, field in (
        (SmaAttribute.PORT_INFO, PORT_INFO, "mtu_cap"),
        (SmaAttribute.SWITCH_INFO, SWITCH_INFO, "multicast_fdb_cap"),
    ):
        sets = [one.data for one in contents if one.method == MadMethod.SET and one.attribute_id == attribute]
        others = [layout[field].read(data) for data in sets]
        assert 0.5 < others.count(0) / len(others) < 0.9
        assert len(set(others)) > 5
