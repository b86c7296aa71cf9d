"""A simulation under cocotb, window by window: feed the stimulus ahead of time, read the trace behind it.

While the simulator runs one window, the next one's stimulus is written to the players' files, unless it depends on what
this one delivers; the records of the one before are read when it has paused. Windows decide nothing about the result:
whatever may act in a window is posted before it begins.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cosim.engines.base import RunOptions
from cosim.engines.compiled_design import build_design
from cosim.engines.simulator_process import SimulatorProcess
from cosim.harness.stream_files import (
    DELIVERY_FILE,
    TAP_FILE,
    TRACE_FILE,
    DeliveryReader,
    Outbox,
    TapReader,
    TraceReader,
)
from cosim.harness.top import NO_DELIVERIES, ROWS_PERIOD, begin_ns
from cosim.simulators.build import WAVES_BEGIN, WAVES_END
from cosim.simulators.cocotb_results import LOG, SimulationFailed
from cosim.simulators.installed import Simulator
from toolchain.atomic_files import atomic_file
from verilog.design import Design
from wire.stimulus import Delivery
from wire.trace import Kind, Record

__all__ = ["Feed", "Window", "windows"]

_FIRST_WINDOW = 1024
_LAST_WINDOW = 1 << 16
_WINDOW_SECONDS = 0.5


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

    def sent(self, record: Record) -> None:
        """Takes a SEND record, if what is posted depends on such."""
        ...


@dataclass(frozen=True)
class Window:
    """What came out of a simulation in a window of cycles.

    Attributes:
        stop: the cycle after it.
        records: the trace.
        deliveries: packets delivered, if they were asked for.
        tapped: rows that entered the links of the design's taps, see `TapReader`.
    """

    stop: int
    records: Iterable[Record]
    deliveries: list[Delivery]
    tapped: Iterable[tuple[int, int, int, int]]


def windows(
    simulator: Simulator,
    design: Design,
    feed: Feed,
    options: RunOptions,
    *,
    deliveries: bool,
    prepare: Callable[[Path], None] = lambda run_dir: None,
) -> Generator[Window, None, None]:
    """Run a simulation, window by window.

    Args:
        simulator, design: what simulates what.
        feed: what acts on it.
        options: of which only the directory, the waves, the period of rows and the plusargs count here.
        deliveries: keep the packets that are delivered.
        prepare: is called with the directory that the simulation is about to run in.

    Raises:
        SimulationFailed: the simulator ended early.
    """
    waves = options.waves
    compiled = build_design(simulator, design, waves is not None)
    with _run_dir(options.work_dir) as run_dir:
        recorded = None if waves is None else run_dir / "waves.fst"
        prepare(run_dir)
        plusargs = [*options.plusargs, *([] if deliveries else [f"+{NO_DELIVERIES}"])]
        if options.rows:
            plusargs.append(f"+{ROWS_PERIOD}={options.rows}")
        if waves is not None and waves.cycles is not None:
            ends = zip((WAVES_BEGIN, WAVES_END), (waves.cycles.start, waves.cycles.stop), strict=True)
            plusargs += [f"+{name}={begin_ns(cycle)}" for name, cycle in ends]
        with (
            Outbox(run_dir, design.ports) as outbox,
            SimulatorProcess.started(compiled, run_dir, plusargs, recorded) as process,
        ):
            try:
                yield from _windows(process, outbox, feed, run_dir, deliveries, bool(design.ports.taps))
            except GeneratorExit:
                # Waves are wanted most of a run that was left where it went wrong: only a simulator that ends by itself
                # completes them.
                if waves is None:
                    raise
            process.finish()
        if waves is None or recorded is None:
            return
        if recorded.exists():
            with atomic_file(waves.file) as temporary:
                shutil.move(recorded, temporary)
        else:
            waves.file.unlink(missing_ok=True)


def _windows(
    simulator: SimulatorProcess, outbox: Outbox, feed: Feed, run_dir: Path, keeps_deliveries: bool, tapped: bool
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
    trace = deliveries = taps = None
    try:
        while True:
            following = None if feed.answers else post_from(stop)
            simulator.answer(outbox)
            if time.monotonic() - started < _WINDOW_SECONDS:
                window = min(2 * window, _LAST_WINDOW)
            trace = trace or TraceReader(run_dir / TRACE_FILE)
            if keeps_deliveries:
                deliveries = deliveries or DeliveryReader(run_dir / DELIVERY_FILE)
            if tapped:
                taps = taps or TapReader(run_dir / TAP_FILE)
            # Drawn before the simulator writes on: what is there now is exactly the finished windows'.
            records: Iterable[Record] = trace.new()
            if feed.answers:
                records = list(records)
                for record in records:
                    if record.kind == Kind.SEND:
                        feed.sent(record)
            finished = Window(stop, records, deliveries.new() if deliveries else [], taps.new() if taps else ())
            for reader in (trace, deliveries, taps):
                if reader is not None:
                    reader.forget()
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
        for reader in (trace, deliveries, taps):
            if reader is not None:
                reader.close()


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
