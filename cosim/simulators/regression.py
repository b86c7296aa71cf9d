"""cocotb-test for pytest, on the lean builds.

cocotb-test compiles with every net public and into one directory for all tests. Here it is given what build()
made and only runs it, each test in a directory of its own, and it passes only if tests ran.
"""

from __future__ import annotations

import logging
import signal
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import ParseError

from cocotb_test.simulator import Simulator as CocotbTest

from cosim.simulators.build import Build
from cosim.simulators.cocotb_results import (
    LOG,
    SimulationFailed,
    TestResult,
    read_results,
    simulation_environment,
    tail,
)
from toolchain.process import run_logged

__all__ = ["run"]


class _LeanSimulator(CocotbTest):
    """cocotb-test's simulator, with our build, environment and process handling in the place of its own."""

    env: dict[str, str]

    def __init__(
        self,
        build: Build,
        test_module: str,
        run_dir: Path,
        waves: Path | None,
        timeout_seconds: float | None,
        **options: object,
    ) -> None:
        super().__init__(toplevel=build.top, module=test_module, sim_build=str(run_dir), **options)
        self.build = build
        self.run_dir = run_dir
        self.waves_file = waves
        self.timeout_seconds = timeout_seconds
        self.status = 0

    def set_env(self) -> None:
        asked = dict(self.env)
        results = Path(asked["COCOTB_RESULTS_FILE"])
        self.env = simulation_environment(self.build, self.module, results) | asked

    def build_command(self) -> list[list[str]]:
        return [self.build.command(self.plus_args, self.waves_file)]

    def execute(self, cmds: list[list[str]]) -> None:
        for command in cmds:
            self.status = run_logged(
                command,
                cwd=self.run_dir,
                env=self.env,
                log=self.run_dir / LOG,
                timeout_seconds=self.timeout_seconds,
            )


def run(
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

    cocotb-test runs them, so its pytest options (such as --cocotbxml) apply.

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
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # cocotb-test switches DeprecationWarning on for the whole process and takes two signals for good.
    with warnings.catch_warnings():
        simulator = _LeanSimulator(
            build,
            test_module,
            run_dir,
            waves.resolve() if waves else None,
            timeout_seconds,
            testcase=None if testcase is None else rf"\.{testcase}$",
            plus_args=list(plusargs),
            extra_env=dict(extra_env or {}),
            seed=seed,
        )
        simulator.logger.setLevel(logging.WARNING)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        said = ""
        try:
            simulator.run()
        except SystemExit as ended:
            said = str(ended)
        except ParseError:
            # The results are empty, as where the test module could not be imported in the simulator.
            last = tail(run_dir / LOG)
            raise SimulationFailed(
                f"the simulation ended without results: {last.rpartition(chr(10))[2].strip()}\n{last}"
            ) from None
    try:
        passed = read_results(Path(simulator.env["COCOTB_RESULTS_FILE"]))
    except SimulationFailed as failure:
        raise SimulationFailed(f"{failure} (exit status {simulator.status})\n{tail(run_dir / LOG)}") from None
    if said or simulator.status != 0:
        raise SimulationFailed(f"{said or build.simulator} (exit status {simulator.status})\n{tail(run_dir / LOG)}")
    return passed
