"""What a cocotb test module needs to run on a build, and the check of its results."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import cocotb_tools.config
import find_libpython

from cosim.simulators import installed
from cosim.simulators.build import Build
from toolchain.errors import UserError

__all__ = ["LOG", "SimulationFailed", "TestResult", "read_results", "simulation_environment", "tail"]

LOG = "sim.log"
RESULTS = "results.xml"
_TAIL_LINES = 20


class SimulationFailed(UserError):
    """A simulation crashed, found no tests, or had tests that failed; the text says which and why."""


@dataclass(frozen=True)
class TestResult:
    """One cocotb test that passed.

    Attributes:
        name: the test's function name.
        simulated_ns: time that passed in the simulation, in ns.
    """

    __test__ = False

    name: str
    simulated_ns: float


def simulation_environment(build: Build, test_module: str, results: Path) -> dict[str, str]:
    """The environment in which cocotb, inside the simulator, finds Python, the design and the tests."""
    libpython = find_libpython.find_libpython()
    if libpython is None:
        raise SimulationFailed("this Python has no shared library that a simulator can load (Debian: libpython3.11)")
    variables = installed.environment(build.simulator)
    variables["PATH"] += os.pathsep + str(cocotb_tools.config.libs_dir)
    variables |= {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYGPI_PYTHON_BIN": sys.executable,
        "GPI_USERS": f"{libpython};{cocotb_tools.config.pygpi_entry_point()}",
        "COCOTB_TOPLEVEL": build.top,
        "COCOTB_TEST_MODULES": test_module,
        "COCOTB_RESULTS_FILE": str(results),
        "TOPLEVEL_LANG": "verilog",
    }
    if build.simulator == "verilator":
        variables["COCOTB_TRUST_INERTIAL_WRITES"] = "1"
    return variables


def read_results(results: Path) -> list[TestResult]:
    """The tests in a cocotb results file, all of which must have passed.

    Raises:
        SimulationFailed: there is no such file, it lists no test that ran, or one failed.
    """
    try:
        cases = list(ElementTree.parse(results).iter("testcase"))
    except (FileNotFoundError, ElementTree.ParseError):
        raise SimulationFailed("the simulation ended without results") from None
    failures = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    if failures:
        names = ", ".join(f"{case.get('name')}: {_message(case)}" for case in failures)
        raise SimulationFailed(f"{len(failures)} of {len(cases)} tests failed: {names}")
    ran = [case for case in cases if case.find("skipped") is None]
    if not ran:
        raise SimulationFailed("no test was found")
    return [TestResult(case.get("name", ""), _simulated_ns(case)) for case in ran]


def _simulated_ns(case: ElementTree.Element) -> float:
    properties = {found.get("name"): found.get("value") for found in case.iter("property")}
    return float(properties.get("sim_time_duration") or 0)


def _message(case: ElementTree.Element) -> str:
    found = case.find("failure")
    found = found if found is not None else case.find("error")
    return "" if found is None else found.get("error_msg") or found.get("message") or (found.text or "").strip()


def tail(log: Path) -> str:
    """The last lines that a simulation said."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
