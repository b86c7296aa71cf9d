"""Traps of congestion control at random: in some checks switches tell of wrong CC_Keys, and are told to stop."""

from collections import Counter

from cosim.engines.simulation import run
from cosim.experiments.check import check
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.mad_mutation import mad_of
from cosim.stimulus.random_cc_traps import has_cc_traps, random_cc_trap_requests, random_trap_destinations
from wire.congestion_control import CC_CLASS_PORT_INFO, CC_MAD, CcAttribute
from wire.mad import MAD_HEADER, MadMethod, MgmtClass
from wire.mad_packet import is_for_general_services
from wire.notice import NOTICE, TrapNumber
from wire.registers import congestion_address

SEEDS = range(40)
CYCLES = 60_000
LID_WORD = congestion_address(CcAttribute.CLASS_PORT_INFO, CC_CLASS_PORT_INFO["trap_lid"].offset_bits // 32)


def options(seed, cycles=30_000, **more):
    return CheckOptions(ports=3, vls=2, mtu=256, seed=seed, cycles=cycles, sim="model", **more)


def with_traps():
    return [seed for seed in SEEDS if has_cc_traps(seed)]


def test_a_quarter_of_the_seeds_have_them():
    assert 5 < len(with_traps()) < 16
    for seed in SEEDS:
        topology = check_experiment(options(seed)).topology
        assert any(random_trap_destinations(topology, seed, 0, 10)) == has_cc_traps(seed)
        assert any(random_cc_trap_requests(topology, seed, 0, 10)) == has_cc_traps(seed)


def test_nobody_is_to_be_told_for_a_while_then_somebody_else():
    lids = Counter()
    for seed in with_traps():
        topology = check_experiment(options(seed)).topology
        of_lid = (
            one.args[1] >> 16 for one in random_trap_destinations(topology, seed, 0, 100_000) if one.args[0] == LID_WORD
        )
        lids.update("host" if lid in topology.lids.values() else bool(lid) for lid in of_lid)
    assert min(lids[kind] for kind in ("host", True, False)) > 100


def test_traps_come_again_and_are_repressed_and_nothing_is_wrong(tmp_path):
    heard, asked = Counter(), Counter()

    def hears(delivery):
        if is_for_general_services(delivery.data):
            mad = CC_MAD.unpack(mad_of(delivery.data))
            if (mad.mgmt_class, mad.method) == (MgmtClass.CONGESTION_CONTROL, MadMethod.TRAP):
                assert NOTICE.unpack(mad.pack(), 64).trap_number == TrapNumber.BAD_CC_KEY
                heard[seed, mad.transaction_id] += 1

    for seed in with_traps()[:6]:
        experiment = check_experiment(options(seed, CYCLES, errors=False))
        assert check(options(seed, CYCLES, errors=False), tmp_path).held
        for packet in random_cc_trap_requests(experiment.topology, seed, 0, CYCLES):
            mad = MAD_HEADER.unpack(mad_of(packet.data))
            asked[mad.mgmt_class, mad.method] += 1
        with run("model", experiment.spec(), tmp_path, on_delivery=hears) as records:
            assert sum(1 for _record in records) > 0
    assert len(heard) > 3
    assert sum(times > 1 for times in heard.values()) > 2
    for mgmt_class in (MgmtClass.CONGESTION_CONTROL, MgmtClass.SUBN_DIRECTED_ROUTE, MgmtClass.PERF):
        assert asked[mgmt_class, MadMethod.TRAP_REPRESS] > 0
