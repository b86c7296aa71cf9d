"""An agent's steps, and its standing still (docs/management.md, section 2)."""

import random

import pytest

from model.kernel import CONTROL, DECIDE, Kernel
from model.management.steps import Steps, answer_steps, trap_steps
from tests.agent_steps import of_request, of_trap
from wire.mad import MadMethod
from wire.sma import SmaAttribute

START = 10
STEPS = (0, 1, 2, 2, 6, 17, 23, 25, 143, 279)
PLACES = answer_steps(True, frozenset(), frozenset())


def reached(holds, steps=STEPS, start=START):
    """The cycle of each step of work whose step 0 is in cycle `start`, or after the accesses of the test bus."""
    kernel = Kernel()
    machine = Steps(kernel)
    cycles = []

    def work():
        for step in steps:
            yield step
            cycles.append(kernel.now)

    for cycle in holds:
        kernel.at(cycle, CONTROL, lambda _: machine.held())
    kernel.at(start - 1, DECIDE, machine.start, (work(), PLACES))
    list(kernel.run(2000))
    return cycles


def expected(holds, steps=STEPS, start=START):
    """The steps are the cycles without an access, counted from `start` on."""
    free = [cycle for cycle in range(start, start + 1000) if cycle not in set(holds)]
    return [free[PLACES[step]] for step in steps]


def test_steps_are_cycles():
    assert reached([]) == [START + PLACES[step] for step in STEPS]


def test_which_numbers_there_are():
    node_info = of_request(MadMethod.GET, SmaAttribute.NODE_INFO)
    assert tuple(answer_steps(False, frozenset(), frozenset())) == node_info
    assert len(node_info) == 73
    port_info = answer_steps(True, frozenset({4, 8, 9, 10, 13}), frozenset({7, 8}))
    assert tuple(port_info) == of_request(MadMethod.SET, SmaAttribute.PORT_INFO)
    assert tuple(trap_steps()) == of_trap()
    assert list(port_info.values()) == list(range(155))


@pytest.mark.parametrize("hold", range(START - 3, START + 130))
def test_a_cycle_with_an_access_is_no_step(hold):
    assert reached([hold]) == expected([hold])


@pytest.mark.parametrize("length", [1, 2, 7, 200])
@pytest.mark.parametrize(
    "first", [START - 1, START, START + 1, START + 5, START + 18, START + PLACES[279] - 1, START + PLACES[279]]
)
def test_accesses_in_a_row(first, length):
    holds = range(first, first + length)
    assert reached(holds) == expected(holds)


def test_accesses_at_random():
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(50):
        share = rng.random() * 0.9
        holds = [cycle for cycle in range(600) if rng.random() < share / 2]
        assert reached(holds) == expected(holds)
