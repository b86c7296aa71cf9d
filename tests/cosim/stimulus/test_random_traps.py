"""Wrong keys at random: in some checks hosts find packets with such, and agents tell of them by traps."""

from collections import Counter
from itertools import count

import pytest

from cosim.engines.simulation import run
from cosim.experiments.check import check
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.mad_mutation import mad_of
from cosim.stimulus.random_traps import (
    has_trap_sweeps,
    has_traps,
    random_trap_requests,
    random_trap_sweeps,
    random_wrong_keys,
)
from wire.mad import MadMethod, mad_data
from wire.mad_packet import is_mad
from wire.notice import NOTICE, TrapNumber
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute
from wire.smp import unpack_smp
from wire.stimulus import KeyViolation, WrongKey

WITH = 1
"""A seed of a run with traps."""


def options(seed, **more):
    return CheckOptions(ports=3, vls=2, mtu=256, seed=seed, cycles=20_000, sim="model", **more)


def test_half_of_the_seeds_have_wrong_keys_of_all_kinds():
    topology = check_experiment(options(WITH)).topology
    found = {seed: list(random_wrong_keys(topology, seed, 0, 20_000)) for seed in range(40)}
    assert 12 < sum(bool(controls) for controls in found.values()) < 28
    wrong = [WrongKey.of(control.args) for controls in found.values() for control in controls]
    assert {one.found for one in wrong} == {KeyViolation.P_KEY, KeyViolation.Q_KEY, KeyViolation(3)}
    assert all(len({getattr(one, name) for one in wrong}) > 10 for name in ("key", "slid", "dlid", "sl", "dest_qp"))


@pytest.mark.parametrize(("errors", "seeds"), [(True, 14), (False, 5)])
def test_traps_come_and_nothing_is_wrong(tmp_path, errors, seeds):
    traps = Counter()

    def hears(delivery):
        if is_mad(delivery.data) and delivery.slot == experiment.topology.fabric.nodes["H1"].vls:
            smp = unpack_smp(mad_of(delivery.data))
            if smp.method == MadMethod.TRAP:
                traps[NOTICE.unpack(mad_data(smp)).trap_number] += 1

    for seed in range(WITH, WITH + seeds):
        experiment = check_experiment(options(seed, errors=errors))
        assert check(options(seed, errors=errors), tmp_path).held
        with run("model", experiment.spec(), tmp_path, on_delivery=hears) as records:
            assert sum(1 for _record in records) > 0
    assert set(traps) >= {TrapNumber.BAD_P_KEY, TrapNumber.BAD_Q_KEY}
    if errors:
        assert set(traps) >= {TrapNumber.BAD_P_KEY_AT_SWITCH, TrapNumber.LINK_STATE_CHANGE}


def test_in_some_runs_a_switchs_traps_are_repressed_under_one_transaction_id_after_the_other():
    topology = check_experiment(options(WITH)).topology
    swept = next(seed for seed in count(1) if has_trap_sweeps(seed))
    smps = [unpack_smp(mad_of(packet.data)) for packet in random_trap_sweeps(topology, swept, 0, 20_000)]
    assert {smp.method for smp in smps} == {MadMethod.TRAP_REPRESS}
    ids = [smp.transaction_id for smp in smps]
    for trap in (TrapNumber.LINK_STATE_CHANGE, TrapNumber.BAD_P_KEY_AT_SWITCH, TrapNumber.BAD_M_KEY):
        of_trap = list(dict.fromkeys(number & 0xFFFF for number in ids if number >> 32 == trap))
        assert of_trap[:64] == list(range(1, 65))
    assert not any(random_trap_sweeps(topology, WITH, 0, 20_000))


def test_in_the_same_runs_agents_get_an_m_key_that_some_requests_have_not():
    def requests(seed):
        return [unpack_smp(mad_of(packet.data)) for packet in random_trap_requests(topology, seed, 0, 200_000)]

    topology = check_experiment(options(WITH)).topology
    smps = requests(next(seed for seed in count(1) if has_trap_sweeps(seed)))
    sets = [smp for smp in smps if smp.method == MadMethod.SET and smp.attribute_id == SmaAttribute.PORT_INFO]
    (m_key,) = {PORT_INFO.unpack(mad_data(smp)).m_key for smp in sets}
    assert 0.7 < sum(smp.m_key == m_key for smp in smps) / len(smps) < 0.9
    usual = next(seed for seed in count(1) if has_traps(seed) and not has_trap_sweeps(seed))
    assert {smp.m_key for smp in requests(usual)} == {0}
