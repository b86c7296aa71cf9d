"""What happens before a fabric is set up, at random."""

from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.random_power_up import random_power_up
from wire.codes import LinkWidth
from wire.stimulus import Operation


def test_widths_and_errors_come_one_a_cycle_before_bring_up_begins():
    topology = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
    for seed in range(20):
        controls = random_power_up(topology, Random(seed), 30)
        cycles = [control.cycle for control in controls]
        assert cycles == sorted(set(cycles))
        assert all(cycle < 30 for cycle in cycles)
        assert {one.operation for one in controls} <= {Operation.BUS_WRITE, Operation.INJECT}
        assert {one.args[1] for one in controls if one.operation == Operation.BUS_WRITE} <= {LinkWidth.X1}
    assert random_power_up(topology, Random(1), 0) == []
