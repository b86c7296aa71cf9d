"""Running a cocotb test module on a build, and demanding its results."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import cocotb_tools.config
import find_libpython

from cosim.engines import toolchain
from cosim.engines.build import Build
from cosim.engines.process import run_logged

__all__ = ["SimulationFailed", "TestResult", "read_results", "run_test", "simulation_environment", "tail"]

LOG = "sim.log"
RESULTS = "results.xml"
_TAIL_LINES = 20


class SimulationFailed(Exception):
    """A simulation crashed, found no tests, or had tests that failed; the text says which and why."""


@dataclass(frozen=True)
class TestResult:
    """One cocotb test that passed.

    Attributes:
        name: the test's function name.
        simulated_ns: time that passed in the simulation, in ns.
        seconds: time that passed outside, in s.
    """

    __test__ = False

    name: str
    simulated_ns: float
    seconds: float


def simulation_environment(
    build: Build,
    test_module: str,
    *,
    testcase: str | None = None,
    seed: int | None = None,
    results: Path,
) -> dict[str, str]:
    """The environment in which cocotb, inside the simulator, finds Python, the design and the tests."""
    libpython = find_libpython.find_libpython()
    if libpython is None:
        raise SimulationFailed("this Python has no shared library that a simulator can load (Debian: libpython3.11)")
    variables = toolchain.environment(build.simulator)
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
    if testcase is not None:
        variables["COCOTB_TEST_FILTER"] = rf"\.{testcase}$"
    if seed is not None:
        variables["COCOTB_RANDOM_SEED"] = str(seed)
    return variables


def run_test(
    build: Build,
    test_module: str,
    run_dir: Path,
    *,
    testcase: str | None = None,
    plusargs: Sequence[str] = (),
    extra_env: Mapping[str, str] | None = None,
    waves: Path | None = None,
    seed: int | None = None,
    timeout_seconds: float | None = None,
) -> list[TestResult]:
    """Run the cocotb tests of TEST_MODULE on BUILD, and return them once all have passed.

    Args:
        build: what to run.
        test_module: importable name of the module with the tests.
        run_dir: working directory of the simulation, made if absent; gets sim.log and results.xml. Give each
            run its own.
        testcase: run this one test only (a regular expression on its name).
        plusargs: such as `+packets=/tmp/p.bin`, for `$value$plusargs`.
        extra_env: more environment variables, for the test module.
        waves: record FST waves to this file.
        seed: cocotb's random seed.
        timeout_seconds: end the run after this long, in real time.

    Raises:
        SimulationFailed: the simulator crashed, no test was found, or a test failed.
        ProcessTimeout: the run took longer than TIMEOUT_SECONDS.
    """
    run_dir = run_dir.resolve()
    run_dir.mkdir(parents=True, exist_ok=True)
    results, log = run_dir / RESULTS, run_dir / LOG
    for stale in (results, log):
        stale.unlink(missing_ok=True)
    variables = simulation_environment(build, test_module, testcase=testcase, seed=seed, results=results)
    command = build.command(plusargs, waves.resolve() if waves else None)
    status = run_logged(
        command, cwd=run_dir, env=variables | dict(extra_env or {}), log=log, timeout_seconds=timeout_seconds
    )
    try:
        passed = read_results(results)
    except SimulationFailed as failure:
        raise SimulationFailed(f"{failure} (exit status {status})\n{tail(log)}") from None
    if status != 0:
        raise SimulationFailed(f"{build.simulator} ended with status {status}\n{tail(log)}")
    return passed


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
    return [TestResult(case.get("name", ""), _simulated_ns(case), float(case.get("time", 0))) for case in ran]


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
