"""The cocotb drivers, on the stand-in fabric, on both simulators."""

from pathlib import Path

import pytest

from cosim.engines import session
from cosim.simulators.cocotb_results import SimulationFailed
from tests.cocotb_modules import cocotb_tests
from tests.cosim.drivers.echo import PARAMETERS, Echo
from verilog.design import export

TESTS = "tests.cosim.drivers.cocotb_echo"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
@pytest.mark.parametrize("testcase", cocotb_tests(TESTS))
def test_driver(testcase: str, simulator: str, tmp_path: Path) -> None:
    design = export(Echo, PARAMETERS, ["tests/cosim/drivers/echo.py", "rtl/fabric/ports.py"])
    assert session.run_cocotb(simulator, design, PARAMETERS, TESTS, testcase, tmp_path).name == testcase


def test_all_tests_of_a_module_are_found() -> None:
    assert "packets_arrive_in_order" in cocotb_tests(TESTS)


def test_test_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    design = export(Echo, PARAMETERS, ["tests/cosim/drivers/echo.py", "rtl/fabric/ports.py"])
    with pytest.raises(SimulationFailed, match="no test was found"):
        session.run_cocotb("verilator", design, PARAMETERS, TESTS, "nothing_of_this_name", tmp_path)
