"""A simulator under cocotb as a process: it takes orders by one pipe, and answers by another."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Self

from cosim.engines.in_simulator import ANSWERS, ORDERS
from cosim.harness.stream_files import Outbox
from cosim.simulators.build import Build
from cosim.simulators.cocotb_results import LOG, RESULTS, SimulationFailed, read_results, simulation_environment, tail
from toolchain.process import running

__all__ = ["SimulatorProcess"]

_TEST_MODULE = "cosim.engines.in_simulator"
_EXIT_SECONDS = 30.0


class SimulatorProcess:
    """A simulator that runs `in_simulator` and takes orders."""

    def __init__(
        self, process: Popen[bytes], orders: int, answers: int, run_dir: Path, exit_seconds: float = _EXIT_SECONDS
    ) -> None:
        """Order through one pipe and be answered through the other, both given by their file descriptors.

        The process may take `exit_seconds` from the end of the orders to its own.
        """
        self._process = process
        self._orders = os.fdopen(orders, "w")
        self._answers = os.fdopen(answers)
        self._run_dir = run_dir
        self._exit_seconds = exit_seconds

    @classmethod
    @contextmanager
    def started(cls, compiled: Build, run_dir: Path, plusargs: list[str], waves: Path | None) -> Iterator[Self]:
        """Started in RUN_DIR; ended when the block is left."""
        orders_in, orders_out = os.pipe()
        answers_in, answers_out = os.pipe()
        variables = simulation_environment(compiled, _TEST_MODULE, run_dir / RESULTS)
        variables |= {ORDERS: str(orders_in), ANSWERS: str(answers_out)}
        # The test asserts nothing, and cocotb takes a third of its start for rewriting asserts.
        variables["COCOTB_REWRITE_ASSERTION_FILES"] = ""
        fds = (orders_in, answers_out)
        command = compiled.command(plusargs, waves)
        with running(command, cwd=run_dir, env=variables, log=run_dir / LOG, pass_fds=fds) as process:
            for fd in fds:
                os.close(fd)
            simulator = cls(process, orders_out, answers_in, run_dir)
            try:
                yield simulator
            finally:
                simulator.close()

    def order(self, stop: int, outbox: Outbox) -> None:
        """Run to cycle STOP with all that the outbox holds."""
        order = {"stop": stop, "controls": outbox.controls, "posted": outbox.posted}
        try:
            print(json.dumps(order), file=self._orders, flush=True)
        except BrokenPipeError:
            raise self._failure() from None

    def answer(self, outbox: Outbox) -> None:
        """Wait for the pause that was ordered. The outbox forgets what has been read."""
        line = self._answers.readline()
        if not line:
            raise self._failure()
        outbox.forget(json.loads(line)["taken"])

    def finish(self) -> None:
        """End the simulation and demand its results."""
        self._orders.close()
        status = self._status()
        read_results(self._run_dir / RESULTS)
        if status != 0:
            raise SimulationFailed(f"the simulator ended with status {status}\n{tail(self._run_dir / LOG)}")

    def close(self) -> None:
        """Close our ends of the pipes."""
        for end in (self._orders, self._answers):
            with suppress(BrokenPipeError):
                end.close()

    def _failure(self) -> SimulationFailed:
        """Why the simulator ended before its time."""
        return SimulationFailed(f"the simulator ended early, status {self._status()}\n{tail(self._run_dir / LOG)}")

    def _status(self) -> int:
        """The simulator's exit status, once it has ended; if it does not, it is killed when our block is left.

        Raises:
            SimulationFailed: it does not end.
        """
        try:
            return self._process.wait(self._exit_seconds)
        except TimeoutExpired:
            waited = f"the simulator did not end within {self._exit_seconds:g} s"
            raise SimulationFailed(f"{waited}\n{tail(self._run_dir / LOG)}") from None
