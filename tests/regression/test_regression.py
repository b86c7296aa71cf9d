"""The cocotb regressions, each cocotb test in a simulation of its own, on every simulator."""

import random
from pathlib import Path

import pytest

from cosim.engines.session import run_cocotb
from tests.cocotb_modules import cocotb_tests
from tests.regression.fabrics import OPEN, PAIR, STAR
from verilog.design import fabric_design

pytestmark = pytest.mark.slow

SIMULATORS = ["verilator", "icarus"]
LONG = {"packets_and_credits", "errors_on_links"}
"""Random campaigns: what they say on Verilator they say on Icarus in `make deep`."""

PAIR_TESTS = "tests.regression.cocotb_pair"
STAR_TESTS = "tests.regression.cocotb_star"
OPEN_PORT_TESTS = "tests.regression.cocotb_open_port"


def seed() -> int:
    chosen = random.randrange(1 << 31)
    print(f"COCOTB_RANDOM_SEED={chosen}")
    return chosen


@pytest.mark.parametrize(
    ("testcase", "simulator"),
    [
        pytest.param(
            testcase, simulator, marks=[pytest.mark.deep] if simulator == "icarus" and testcase in LONG else []
        )
        for testcase in cocotb_tests(PAIR_TESTS)
        for simulator in SIMULATORS
    ],
)
def test_pair(testcase: str, simulator: str, tmp_path: Path) -> None:
    run_cocotb(simulator, fabric_design(PAIR), PAIR, PAIR_TESTS, testcase, tmp_path, seed=seed())


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("testcase", cocotb_tests(STAR_TESTS))
def test_star(testcase: str, simulator: str, tmp_path: Path) -> None:
    run_cocotb(simulator, fabric_design(STAR), STAR, STAR_TESTS, testcase, tmp_path, seed=seed())


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("testcase", cocotb_tests(OPEN_PORT_TESTS))
def test_open_port(testcase: str, simulator: str, tmp_path: Path) -> None:
    run_cocotb(simulator, fabric_design(OPEN), OPEN, OPEN_PORT_TESTS, testcase, tmp_path, seed=seed())
