"""Mutants of a node, compiled and run through checks."""

from __future__ import annotations

import pytest

from cosim.experiments.mutation import built, draw, outcome
from cosim.experiments.mutation_task import MutationTask


@pytest.mark.deep
def test_an_output_tied_to_another_of_its_bits_is_no_loop_to_the_simulator():
    """Of such a mutant, the wire that leaves the node depends on itself as a whole, also in the fabric around it."""
    task = MutationTask(count=250, seed=13, checks=1)
    drawn = draw(task)
    (tied,) = (mutant for mutant in drawn.mutants if str(mutant) == "cnot1 port_2.transmitter.tx__2__k[1]")
    design, equivalent = built(task, drawn, [tied])
    assert not equivalent
    assert outcome(task, design, tied).verdict == "killed"
