"""A switch of 36 ports, as wide as what is sold: how long it takes to build, and how fast it runs."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from bench.figures import Reading
from bench.settings import Settings
from cosim.engines.base import RunOptions
from cosim.engines.compiled_design import build_design
from cosim.engines.session import simulate
from cosim.experiments.experiment import scenario_experiment
from cosim.scenario.uniform_load import uniform_load
from verilog.design import fabric_design

__all__ = ["WIDE_FIGURES", "environment", "wide"]

WIDE_FIGURES = ("build36_s", "cycles36_per_s")
_PORTS = 36
_SIZE = 2048


def wide(settings: Settings, asked: Collection[str], work_dir: Path) -> dict[str, Reading]:
    """`build36_s` and `cycles36_per_s`: a 36-port switch with an adapter at each port.

    The build is from Verilog to executable, in an empty folder and without a compiler cache. The run is under
    cocotb, with all ports saturated, timed as a whole.
    """
    load = uniform_load(_PORTS, cycles=settings.wide_cycles, size=_SIZE, seed=settings.seed)
    experiment = scenario_experiment(load)
    design = fabric_design(experiment.topology.fabric)
    found = {}
    with ExitStack() as stack:
        if "build36_s" in asked:
            empty = stack.enter_context(tempfile.TemporaryDirectory(dir=work_dir))
            stack.enter_context(environment({"IRONBAND_SIM_BUILD": empty, "CCACHE_DISABLE": "1"}))
        started = time.perf_counter()
        build_design("verilator", design)
        if "build36_s" in asked:
            found["build36_s"] = Reading.once(time.perf_counter() - started)
        if "cycles36_per_s" in asked:
            spec = experiment.spec()
            started = time.perf_counter()
            run = simulate("verilator", design, spec, RunOptions(work_dir / "wide"))
            with closing(run):
                for _record in run:
                    continue
            found["cycles36_per_s"] = Reading.once(experiment.cycles / (time.perf_counter() - started))
    return found


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the time of the block, for us and what we start."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
