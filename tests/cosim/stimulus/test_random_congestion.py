"""Congestion control at random: in some checks packets are marked, and a switch's agent is asked this and that."""

from collections import Counter
from itertools import count, pairwise, takewhile

import pytest

from cosim.engines.simulation import run
from cosim.experiments.check import check
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.injection import random_controls
from cosim.stimulus.random_congestion import (
    has_congestion_control,
    has_open_victims,
    random_congestion,
    random_congestion_requests,
    random_leases,
)
from cosim.stimulus.random_packets import has_starved_copies
from wire.congestion_control import CONGESTION_KEY_INFO, CcAttribute
from wire.mad import MAD_HEADER, MadMethod, MadStatus
from wire.mad_packet import is_for_general_services
from wire.packet import parse
from wire.registers import CONGESTION_PAGE, PortRegister, congestion_address, place_of_address
from wire.stimulus import Operation
from wire.trace import Kind
from wire.trace_layout import TxData

WITH, WITHOUT = 22, 3
"""Seeds of runs with congestion control, and without."""

LEASES = 40
"""And of one with leases."""


def options(seed, **more):
    return CheckOptions(ports=3, vls=2, mtu=256, seed=seed, cycles=12_000, sim="model", **more)


def accesses(seed):
    topology = check_experiment(options(seed)).topology
    places = [place_of_address(one.args[0]) for one in random_congestion(topology, seed, 0, 200_000)]
    return Counter(page if page == CONGESTION_PAGE else offset for page, offset in places)


def test_half_of_the_seeds_have_it():
    topology = check_experiment(options(WITH)).topology
    drawn = [seed for seed in range(40) if any(random_congestion(topology, seed, 0, 10))]
    assert 12 < len(drawn) < 28
    assert WITH in drawn
    assert WITHOUT not in drawn


def test_windows_and_registers_of_ports_are_written_and_read():
    seen = accesses(WITH)
    assert seen[CONGESTION_PAGE] > 50
    assert seen[PortRegister.CONGESTION] > 20


def test_it_is_there_without_errors_too():
    topology = check_experiment(options(WITH)).topology
    controls = random_controls(topology, WITH, 0, 20_000, errors=False)
    assert any(place_of_address(one.args[0])[0] == CONGESTION_PAGE for one in controls)


def test_in_some_of_them_violations_of_keys_are_cleared_in_every_other_cycle_of_short_leases():
    topology = check_experiment(options(LEASES)).topology
    drawn = [seed for seed in range(400) if any(random_leases(topology, seed, 0, 20_000))]
    assert LEASES in drawn
    assert 8 < len(drawn) < 40
    assert not any(random_leases(topology, WITHOUT, 0, 20_000))
    at = {congestion_address(CcAttribute.CONGESTION_KEY_INFO, word): 4 * word for word in range(12)}
    accesses = (one for one in random_leases(topology, LEASES, 0, 20_000) if one.args[0] in at)
    writes = [(one.cycle, at[one.args[0]], one.args[1]) for one in accesses]
    data = bytes(writes[0][1]) + b"".join(value.to_bytes(4, "big") for _, _, value in writes[:3])
    info = CONGESTION_KEY_INFO.unpack(data.ljust(CONGESTION_KEY_INFO.size_bytes, b"\0"))
    assert info.cc_key
    assert 1 <= info.lease_period <= 100
    cleared = list(takewhile(lambda one: one[1:] == (44, 0), writes[3:]))
    assert len(cleared) > 900
    assert {after[0] - before[0] for before, after in pairwise(cleared)} == {2}
    assert [one[1:] for one in writes[3 + len(cleared) :][:3]] == [(32, 0), (36, 0), (40, 0)]


def test_in_some_of_them_victim_mask_stays_0_and_settings_of_ports_seldom_change():
    seed = next(seed for seed in count(1) if has_congestion_control(seed) and has_open_victims(seed))
    topology = check_experiment(options(seed)).topology
    mask = [congestion_address(CcAttribute.SWITCH_CONGESTION_SETTING, word) for word in range(9, 17)]
    controls = list(random_congestion(topology, seed, 0, 400_000))
    assert [one.args[1] for one in controls if one.args[0] in mask][-1] == 0
    later = [one.cycle for one in controls if one.cycle > 0]
    assert len(later) > 10
    assert all(after - before >= 4_000 for before, after in pairwise([0, *later]))
    assert not any(random_congestion_requests(topology, seed, 0, 400_000))


def test_in_some_of_these_hosts_stall_so_often_that_credits_are_few():
    seed = next(seed for seed in count(1) if has_congestion_control(seed) and has_starved_copies(seed))
    topology = check_experiment(options(seed)).topology
    assert {topology.pace(port) for port in topology.linked_ports()} == {1}
    assert {one.cycle for one in random_congestion(topology, seed, 0, 400_000)} == {0}
    given = [one for one in random_controls(topology, seed, 0, 100_000, errors=True) if one.cycle < 100_000]
    for host in topology.lids:
        changes = [one for one in given if (one.operation, one.target) == (Operation.RECV_STALL, topology.index[host])]
        stalled = sum(after.cycle - now.cycle for now, after in pairwise(changes) if now.args[0])
        assert len(changes) > 100
        assert 0.55 < stalled / 100_000 < 0.8


@pytest.mark.parametrize("errors", [True, False])
def test_packets_are_marked_and_nothing_is_wrong(tmp_path, errors):
    assert check(options(WITH, errors=errors), tmp_path).held
    with run("model", check_experiment(options(WITH, errors=errors)).spec(), tmp_path) as records:
        assert sum(TxData.fecn.read(one) for one in records if one.kind == Kind.TX_DATA) > 20


def test_requests_are_right_and_wrong(tmp_path):
    asked, answered = Counter(), Counter()

    def hears(delivery):
        if is_for_general_services(delivery.data):
            mad = MAD_HEADER.unpack(parse(delivery.data).payload)
            assert mad.method == MadMethod.GET_RESP
            answered[mad.attribute_id] += 1
            answered["status", mad.status] += 1

    for seed in (1, 2, 4, 5):
        experiment = check_experiment(options(seed, errors=False))
        asked.update(is_for_general_services(packet.data) for packet in experiment.packets())
        with run("model", experiment.spec(), tmp_path, on_delivery=hears) as records:
            assert sum(1 for _record in records) > 0
    assert sum(answered[attribute] for attribute in CcAttribute) < asked[True]
    assert answered["status", MadStatus.OK] > 5
    assert answered["status", MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED] > 0
    assert answered["status", MadStatus.INVALID_ATTRIBUTE_VALUE] > 0
