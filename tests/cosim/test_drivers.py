"""The cocotb drivers, on the stand-in fabric, on both simulators."""

from pathlib import Path

import pytest

from cosim.design import export
from cosim.engines import session
from cosim.engines.run import SimulationFailed
from cosim.simulation import cocotb_tests
from tests.cosim.echo import PARAMETERS, Echo

TESTS = "tests.cosim.cocotb_echo"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
@pytest.mark.parametrize("testcase", cocotb_tests(TESTS))
def test_driver(testcase: str, simulator: str, tmp_path: Path) -> None:
    design = export(Echo, PARAMETERS, ["tests/cosim/echo.py", "cosim/ports.py"])
    assert session.run_cocotb(simulator, design, PARAMETERS, TESTS, testcase, tmp_path).name == testcase


def test_all_tests_of_a_module_are_found() -> None:
    assert "packets_arrive_in_order" in cocotb_tests(TESTS)


def test_test_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    design = export(Echo, PARAMETERS, ["tests/cosim/echo.py", "cosim/ports.py"])
    with pytest.raises(SimulationFailed, match="no test was found"):
        session.run_cocotb("verilator", design, PARAMETERS, TESTS, "nothing_of_this_name", tmp_path)
