"""The loads that several tests build are of the fabrics that they were chosen for."""

from cosim.experiments.check_experiment import check_scenario
from tests.cosim.loads import HOSTS_ALIKE


def test_two_hosts_of_the_shared_check_are_alike_and_the_third_has_one_vl():
    scenario = check_scenario(HOSTS_ALIKE)
    first, second, third = scenario.hosts.values()
    assert first == third
    assert (first.vls, second.vls) == (2, 1)
    assert scenario.switches["S"].readers == 2
