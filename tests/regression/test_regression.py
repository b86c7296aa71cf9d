"""The cocotb regressions, each cocotb test in a simulation of its own, on every simulator."""

import random
from pathlib import Path

import pytest

from cosim.engines.session import run_cocotb
from tests.cocotb_modules import cocotb_tests
from tests.regression.fabrics import OPEN, PAIR, STAR
from verilog.design import fabric_design

pytestmark = pytest.mark.slow

ON_BOTH = {"port_states"}
"""Tests that show that cocotb drives Icarus, too: what others say on Verilator they say on Icarus in `make deep`.

That it drives an open port there, an example shows (tests/examples/test_examples.py).
"""

PAIR_TESTS = "tests.regression.cocotb_pair"
STAR_TESTS = "tests.regression.cocotb_star"
OPEN_PORT_TESTS = "tests.regression.cocotb_open_port"


def seed() -> int:
    chosen = random.randrange(1 << 31)
    print(f"COCOTB_RANDOM_SEED={chosen}")
    return chosen


def on_simulators(test_module: str) -> pytest.MarkDecorator:
    """The tests of a module, each on every simulator."""
    cases = []
    for testcase in cocotb_tests(test_module):
        marks = () if testcase in ON_BOTH else (pytest.mark.deep,)
        cases += [pytest.param(testcase, "verilator"), pytest.param(testcase, "icarus", marks=marks)]
    return pytest.mark.parametrize(("testcase", "simulator"), cases)


@on_simulators(PAIR_TESTS)
def test_pair(testcase: str, simulator: str, tmp_path: Path) -> None:
    run_cocotb(simulator, fabric_design(PAIR), PAIR, PAIR_TESTS, testcase, tmp_path, seed=seed())


@on_simulators(STAR_TESTS)
def test_star(testcase: str, simulator: str, tmp_path: Path) -> None:
    run_cocotb(simulator, fabric_design(STAR), STAR, STAR_TESTS, testcase, tmp_path, seed=seed())


@on_simulators(OPEN_PORT_TESTS)
def test_open_port(testcase: str, simulator: str, tmp_path: Path) -> None:
    run_cocotb(simulator, fabric_design(OPEN), OPEN, OPEN_PORT_TESTS, testcase, tmp_path, seed=seed())
