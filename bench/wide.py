"""A switch of 36 ports, as wide as what is sold: how long it takes to build, and how fast it runs."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import ExitStack, closing
from pathlib import Path

from bench.cold import cold_builds
from bench.figures import Measured, Reading
from bench.settings import Settings
from cosim.engines.base import RunOptions
from cosim.engines.compiled_design import build_design
from cosim.engines.session import simulate
from cosim.experiments.experiment import scenario_experiment
from cosim.scenario.uniform_load import uniform_load
from verilog.design import fabric_design

__all__ = ["WIDE_FIGURES", "wide"]

WIDE_FIGURES = ("build36_s", "cycles36_per_s")
_PORTS = 36
_SIZE = 2048


def wide(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """`build36_s` and `cycles36_per_s`: a 36-port switch with an adapter at each port.

    The build is from Verilog to executable, cold. The run is under cocotb, with all ports saturated, timed as a whole.
    """
    load = uniform_load(_PORTS, cycles=settings.wide_cycles, size=_SIZE, seed=settings.seed)
    experiment = scenario_experiment(load)
    design = fabric_design(experiment.topology.fabric)
    found = Measured()
    with ExitStack() as stack:
        if "build36_s" in asked:
            stack.enter_context(cold_builds(work_dir))
        started = time.perf_counter()
        build_design("verilator", design)
        if "build36_s" in asked:
            found.readings["build36_s"] = Reading.once(time.perf_counter() - started)
        if "cycles36_per_s" in asked:
            spec = experiment.spec()
            started = time.perf_counter()
            run = simulate("verilator", design, spec, RunOptions(work_dir / "wide"))
            with closing(run):
                for _record in run:
                    continue
            found.readings["cycles36_per_s"] = Reading.once(experiment.cycles / (time.perf_counter() - started))
    return found
