"""Peak memory of a long run, and whether it grows with the run's length."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

from bench.figures import Reading
from bench.settings import Settings
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.experiments.experiment import perform, scenario_experiment
from cosim.scenario.uniform_load import uniform_load
from cosim.simulators.cocotb_results import SimulationFailed, tail
from toolchain.process import run_logged

__all__ = ["memory"]

_SIZE = 2048
_RATE = 0.9
"""Below what the switch can carry: what it can't waits in the hosts, and a list that grows is no leak."""

_LONGER = 4
_KB_PER_MB = 1000 / 1.024
_LOG = "memory.log"


def memory(settings: Settings, work_dir: Path) -> dict[str, Reading]:
    """`peak_rss_mb` of a run and `peak_rss_growth` in one 4 times as long.

    A run has all that can be switched on: RTL under cocotb, golden model, comparison, check of every delivery. Each
    is in processes of its own; their peaks are added.

    Raises:
        SimulationFailed: a run failed.
    """
    short, long = (_peak_mb(settings, settings.memory_cycles * times, work_dir) for times in (1, _LONGER))
    return {"peak_rss_mb": Reading.once(short), "peak_rss_growth": Reading.once(long / short)}


def _peak_mb(settings: Settings, cycles: int, work_dir: Path) -> float:
    """Peak resident memory of a run, in MB."""
    result, log = work_dir / "memory.json", work_dir / _LOG
    arguments = [str(settings.ports), str(settings.seed), str(cycles), str(work_dir / "memory"), str(result)]
    command = [sys.executable, "-m", __name__, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if run_logged(command, cwd=work_dir, env=environment, log=log) != 0:
        raise SimulationFailed(f"the run of {cycles} cycles failed: {tail(log).splitlines()[-1]}")
    peaks: dict[str, float] = json.loads(result.read_text())
    return sum(peaks.values())


def _main(ports: int, seed: int, cycles: int, work_dir: Path, result: Path) -> None:
    """In a process of its own: a run, and the peaks of this process and of the simulator to RESULT."""
    experiment = scenario_experiment(uniform_load(ports, cycles=cycles, size=_SIZE, rate=_RATE, seed=seed))
    deliveries = DeliveryCheck(experiment.topology, experiment.packets())
    perform(experiment, "verilator", work_dir, observe=lambda record: None, on_delivery=deliveries.deliver)
    kinds = {"python": resource.RUSAGE_SELF, "simulator": resource.RUSAGE_CHILDREN}
    result.write_text(json.dumps({name: resource.getrusage(who).ru_maxrss / _KB_PER_MB for name, who in kinds.items()}))


if __name__ == "__main__":
    _ports, _seed, _cycles = map(int, sys.argv[1:4])
    _main(_ports, _seed, _cycles, Path(sys.argv[4]), Path(sys.argv[5]))
