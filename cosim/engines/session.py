"""A scenario on a simulator under cocotb: feed the stimulus ahead of time, read the trace behind it.

Time goes in windows. While the simulator runs one, the next one's stimulus is written to the players' files, unless
it depends on what this one delivers; the records of the one before are read when it has paused. Windows decide
nothing about the result: whatever may act in a window is posted before it begins.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Protocol

from cosim.drivers.description import Description
from cosim.engines.base import OnDelivery, Progress, WavesUnsupported
from cosim.engines.in_simulator import ANSWERS, ORDERS
from cosim.harness.stream_files import DELIVERY_FILE, TRACE_FILE, DeliveryReader, Outbox, TraceReader
from cosim.harness.top import NO_DELIVERIES, PUBLIC, TOP, sources
from cosim.simulators import regression
from cosim.simulators.build import Build, build
from cosim.simulators.cocotb_results import (
    LOG,
    RESULTS,
    SimulationFailed,
    TestResult,
    read_results,
    simulation_environment,
    tail,
)
from cosim.simulators.installed import Simulator
from cosim.stimulus.run_spec import RunSpec, Stimulus
from toolchain.atomic_files import atomic_file
from toolchain.process import running
from verilog.design import Design
from wire.parameters import FabricParameters
from wire.stimulus import Delivery
from wire.trace import Record

__all__ = ["Feed", "Window", "build_design", "run_cocotb", "simulate", "windows"]

_TEST_MODULE = "cosim.engines.in_simulator"
_FIRST_WINDOW = 1024
_LAST_WINDOW = 1 << 16
_WINDOW_SECONDS = 0.5
_EXIT_SECONDS = 30.0


class Feed(Protocol):
    """What acts on a simulation."""

    @property
    def answers(self) -> bool:
        """Whether what is posted depends on what is delivered."""
        ...

    def post(self, outbox: Outbox, cycle: int, wish: int) -> int:
        """Post all that may act in the window from CYCLE on, and in the cycle after its last, which is returned.

        That is at most WISH; the run is over where it is CYCLE.
        """
        ...

    def delivered(self, delivery: Delivery) -> None:
        """Takes a delivered packet, in order of (cycle, node)."""
        ...


@dataclass(frozen=True)
class Window:
    """What came out of a simulation in a window of cycles.

    Attributes:
        stop: the cycle after it.
        records: the trace.
        deliveries: packets delivered, if they were asked for.
    """

    stop: int
    records: Iterable[Record]
    deliveries: list[Delivery]


def build_design(simulator: Simulator, design: Design, waves: bool = False) -> Build:
    """The compiled harness of a design.

    Raises:
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """
    return build(simulator, sources(design.ports, design.verilog), TOP, public=PUBLIC, waves=waves)


def simulate(
    simulator: Simulator,
    design: Design,
    spec: RunSpec,
    work_dir: Path,
    waves: Path | None,
    on_delivery: OnDelivery | None,
    progress: Progress,
) -> Generator[Record, None, None]:
    """Run a specification on a simulator; see `cosim.engines.base.Engine`.

    Raises:
        SimulationFailed: the simulator ended early.
        WavesUnsupported: WAVES is not an .fst file.
    """
    feed = _StimulusFeed(spec)
    deliveries = on_delivery is not None or feed.answers
    with closing(windows(simulator, design, feed, work_dir, waves, deliveries=deliveries)) as found:
        for window in found:
            progress(window.stop)
            if on_delivery is not None:
                for delivery in window.deliveries:
                    on_delivery(delivery)
            yield from window.records


def windows(
    simulator: Simulator,
    design: Design,
    feed: Feed,
    work_dir: Path,
    waves: Path | None,
    *,
    deliveries: bool,
    prepare: Callable[[Path], None] = lambda run_dir: None,
) -> Generator[Window, None, None]:
    """Run a simulation, window by window.

    Args:
        simulator, design, work_dir, waves: as for `simulate`.
        feed: what acts on it.
        deliveries: keep the packets that are delivered.
        prepare: is called with the directory that the simulation is about to run in.

    Raises:
        SimulationFailed: the simulator ended early.
        WavesUnsupported: WAVES is not an .fst file.
    """
    if waves is not None and waves.suffix != ".fst":
        raise WavesUnsupported(f"waves {waves}: {simulator} writes .fst files")
    compiled = build_design(simulator, design, waves is not None)
    with _run_dir(work_dir) as run_dir:
        partial_waves = run_dir / "waves.fst" if waves else None
        prepare(run_dir)
        with ExitStack() as stack:
            outbox = stack.enter_context(Outbox(run_dir, design.ports))
            plusargs = [] if deliveries else [f"+{NO_DELIVERIES}"]
            process = stack.enter_context(_Simulator.started(compiled, run_dir, plusargs, partial_waves))
            yield from _windows(process, outbox, feed, run_dir, deliveries)
            process.finish()
        if waves is not None and partial_waves is not None:
            with atomic_file(waves) as temporary:
                shutil.move(partial_waves, temporary)


def run_cocotb(
    simulator: Simulator,
    design: Design,
    parameters: FabricParameters,
    test_module: str,
    testcase: str,
    run_dir: Path,
    *,
    seed: int | None = None,
    waves: Path | None = None,
) -> TestResult:
    """Run a cocotb test on a design; see `cosim.engines.simulation.run_cocotb`."""
    compiled = build_design(simulator, design, waves is not None)
    run_dir.mkdir(parents=True, exist_ok=True)
    Description.of(parameters, design.ports).write(run_dir)
    (result,) = regression.run(compiled, test_module, run_dir, testcase=re.escape(testcase), seed=seed, waves=waves)
    return result


class _StimulusFeed:
    """Feeds a simulation of a whole fabric with its stimulus."""

    def __init__(self, spec: RunSpec) -> None:
        self._stimulus = Stimulus(spec)

    @property
    def answers(self) -> bool:
        """Whether there is an actor."""
        return self._stimulus.answers

    def post(self, outbox: Outbox, cycle: int, wish: int) -> int:
        """Post control operations and packets."""
        end = min(wish, self._stimulus.until(cycle))
        for control in self._stimulus.controls_until(end):
            outbox.control(control)
        for post in self._stimulus.posts_until(end):
            outbox.packet(post)
        return end

    def delivered(self, delivery: Delivery) -> None:
        """Tell the actor."""
        self._stimulus.delivered(delivery)


def _windows(
    simulator: _Simulator, outbox: Outbox, feed: Feed, run_dir: Path, keeps_deliveries: bool
) -> Generator[Window, None, None]:
    """Run all windows, giving each while the next one runs."""
    window = _FIRST_WINDOW

    def post_from(cycle: int) -> int:
        """Post all that may act in the next window; its end."""
        end = feed.post(outbox, cycle, cycle + window)
        outbox.flush()
        return end

    stop = post_from(0)
    simulator.order(stop, outbox)
    started = time.monotonic()
    trace = deliveries = None
    try:
        while True:
            following = None if feed.answers else post_from(stop)
            simulator.answer(outbox)
            if time.monotonic() - started < _WINDOW_SECONDS:
                window = min(2 * window, _LAST_WINDOW)
            trace = trace or TraceReader(run_dir / TRACE_FILE)
            if keeps_deliveries:
                deliveries = deliveries or DeliveryReader(run_dir / DELIVERY_FILE)
            # Drawn before the simulator writes on: what is there now is exactly the finished windows'.
            finished = Window(stop, trace.new(), deliveries.new() if deliveries else [])
            trace.forget()
            if deliveries:
                deliveries.forget()
            for delivery in finished.deliveries:
                feed.delivered(delivery)
            if following is None:
                following = post_from(stop)
            if following > stop:
                started = time.monotonic()
                simulator.order(following, outbox)
            yield finished
            if following == stop:
                return
            stop = following
    finally:
        for reader in (trace, deliveries):
            if reader is not None:
                reader.close()


class _Simulator:
    """A simulator that runs `in_simulator` and takes orders."""

    def __init__(self, process: Popen[bytes], orders: int, answers: int, run_dir: Path) -> None:
        self._process = process
        self._orders = os.fdopen(orders, "w")
        self._answers = os.fdopen(answers)
        self._run_dir = run_dir

    @classmethod
    @contextmanager
    def started(cls, compiled: Build, run_dir: Path, plusargs: list[str], waves: Path | None) -> Iterator[_Simulator]:
        """Started in RUN_DIR; ended when the block is left."""
        orders_in, orders_out = os.pipe()
        answers_in, answers_out = os.pipe()
        variables = simulation_environment(compiled, _TEST_MODULE, results=run_dir / RESULTS)
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
            try:
                end.close()
            except BrokenPipeError:
                continue

    def _failure(self) -> SimulationFailed:
        """Why the simulator ended before its time."""
        return SimulationFailed(f"the simulator ended early, status {self._status()}\n{tail(self._run_dir / LOG)}")

    def _status(self) -> int:
        """The simulator's exit status, once it has ended; if it does not, it is killed when our block is left.

        Raises:
            SimulationFailed: it does not end.
        """
        try:
            return self._process.wait(_EXIT_SECONDS)
        except TimeoutExpired:
            waited = f"the simulator did not end within {_EXIT_SECONDS:g} s"
            raise SimulationFailed(f"{waited}\n{tail(self._run_dir / LOG)}") from None


@contextmanager
def _run_dir(work_dir: Path) -> Iterator[Path]:
    """A fresh directory for a simulation's files, removed in the end unless the simulation failed by itself."""
    work_dir.mkdir(parents=True, exist_ok=True)
    run_dir = work_dir.resolve() / ".simulation"
    shutil.rmtree(run_dir, ignore_errors=True)
    run_dir.mkdir()
    try:
        yield run_dir
    except SimulationFailed:
        # Its log is what the user is pointed at.
        (run_dir / LOG).replace(work_dir / LOG)
        raise
    finally:
        shutil.rmtree(run_dir, ignore_errors=True)
