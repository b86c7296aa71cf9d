"""A scenario on a simulator under cocotb."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path

from cosim.drivers.description import Description
from cosim.engines.base import RunOptions
from cosim.engines.compiled_design import build_design
from cosim.engines.taps import RowTaps
from cosim.engines.windows import windows
from cosim.harness.stream_files import Outbox
from cosim.simulators import regression
from cosim.simulators.cocotb_results import TestResult
from cosim.simulators.installed import Simulator
from cosim.stimulus.bus_bring_up import BringUp
from cosim.stimulus.run_spec import RunSpec, Stimulus
from verilog.design import Design
from wire.parameters import FabricParameters
from wire.trace import Record

__all__ = ["run_cocotb", "simulate"]


def simulate(simulator: Simulator, design: Design, spec: RunSpec, options: RunOptions) -> Generator[Record, None, None]:
    """Run a specification on a simulator; see `cosim.engines.base.Engine`.

    Raises:
        What `cosim.engines.windows.windows` raises.
    """
    feed = _StimulusFeed(spec)
    deliveries = options.on_delivery is not None or feed.answers
    taps = RowTaps(options.taps)
    with closing(windows(simulator, design, feed, options, deliveries=deliveries)) as found:
        for window in found:
            options.progress(window.stop)
            options.deliver(window.deliveries)
            taps.rows(window.tapped, window.stop)
            yield from window.records
    taps.end()


def run_cocotb(
    simulator: Simulator,
    design: Design,
    parameters: FabricParameters,
    test_module: str,
    testcase: str,
    run_dir: Path,
    *,
    seed: int | None = None,
    lids: Mapping[str, int] | None = None,
    bring_up: BringUp | None = None,
    waves: Path | None = None,
) -> TestResult:
    """Run a cocotb test on a fabric, which it drives with `cosim.drivers.FabricDriver`.

    Args:
        simulator: `verilator` or `icarus`.
        design: the fabric; the test drives the rows of its open ports.
        parameters: those of the design.
        test_module: importable name of the module with the test.
        testcase: the test's name. Each test has a simulation for itself, which is reset at power-up only.
        run_dir: working directory of the simulation, made if absent; each run its own.
        seed: cocotb's random seed.
        lids: that hosts have once the test has brought the fabric up.
        bring_up: which does that.
        waves: record FST waves to this file.

    Raises:
        SimulationFailed: the simulator crashed, the test was not found, or it failed.
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """
    compiled = build_design(simulator, design, waves is not None)
    run_dir.mkdir(parents=True, exist_ok=True)
    up = bring_up or BringUp((), 0)
    Description.of(parameters, design.ports, lids or {}, up.controls, up.start).write(run_dir)
    (result,) = regression.run(compiled, test_module, run_dir, testcase=re.escape(testcase), seed=seed, waves=waves)
    return result


class _StimulusFeed(Stimulus):
    """Feeds a simulation of a whole fabric with its stimulus (`cosim.engines.windows.Feed`)."""

    def post(self, outbox: Outbox, cycle: int, wish: int) -> int:
        """Post control operations and packets."""
        end = min(wish, self.until(cycle))
        for control in self.controls_until(end):
            outbox.control(control)
        for post in self.posts_until(end):
            outbox.packet(post)
        return end
