"""How a switch with an adapter at each port grows with its ports: its Verilog, its build, its speed."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from pathlib import Path

from bench.bare_loop import BareLoop
from bench.cold import cold_builds
from cosim.engines.compiled_design import build_design
from cosim.experiments.experiment import scenario_experiment
from cosim.scenario.uniform_load import uniform_load
from verilog.design import fabric_design

__all__ = ["Growth", "growth"]

_SIZE = 2048
_CYCLES = 5_000


@dataclass(frozen=True)
class Growth:
    """What a fabric of one switch and an adapter at each port costs under Verilator, everything made anew.

    Attributes:
        ports: of the switch.
        verilog_bytes: of the whole fabric.
        export_s: wall time from parameters to Verilog.
        build_s: wall time from Verilog to executable; `build_cpu_s`: the processor time of all its processes.
        cycles_per_s: of the bare loop with all ports saturated, by processor time, the start left in.
    """

    ports: int
    verilog_bytes: int
    export_s: float
    build_s: float
    build_cpu_s: float
    cycles_per_s: float


def growth(ports: int, work_dir: Path, seed: int = 1) -> Growth:
    """Measure one width, in an empty build folder in WORK_DIR and without a compiler cache.

    Raises:
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """
    experiment = scenario_experiment(uniform_load(ports, cycles=_CYCLES, size=_SIZE, seed=seed))
    with cold_builds(work_dir) as empty:
        started = time.perf_counter()
        design = fabric_design(experiment.topology.fabric)
        exported = time.perf_counter()
        used = _children_cpu_s()
        build_design("verilator", design)
        built, build_cpu_s = time.perf_counter(), _children_cpu_s() - used
        loop = BareLoop.prepared(experiment.spec(), empty / "run")
        used = _children_cpu_s()
        loop.run()
        return Growth(
            ports,
            len(design.verilog),
            exported - started,
            built - exported,
            build_cpu_s,
            experiment.cycles / (_children_cpu_s() - used),
        )


def _children_cpu_s() -> float:
    """Processor time of all processes that we started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
