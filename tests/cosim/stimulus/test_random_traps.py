"""Wrong keys at random: in some checks hosts find packets with such, and agents tell of them by traps."""

from collections import Counter

import pytest

from cosim.engines.simulation import run
from cosim.experiments.check import check
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.mad_mutation import mad_of
from cosim.stimulus.random_traps import random_wrong_keys
from wire.mad import MadMethod, mad_data
from wire.mad_packet import is_mad
from wire.notice import NOTICE, TrapNumber
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
