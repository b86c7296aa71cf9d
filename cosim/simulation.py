"""Running a specification on any engine: the same stimulus, and the same trace from all of them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from importlib import import_module
from pathlib import Path

from cocotb.regression import Test, TestGenerator

from cosim.engines import amaranth, compiled_model, model, session
from cosim.engines.base import (
    Engine,
    EngineError,
    OnDelivery,
    Progress,
    Run,
    RunSpec,
    UnknownEngine,
    WavesUnsupported,
)
from cosim.engines.run import TestResult
from cosim.engines.toolchain import Simulator
from cosim.fabric import Fabric, OpenPorts, fabric_design
from cosim.mail import Delivery
from wire.parameters import FabricParameters
from wire.trace import Record

__all__ = [
    "ENGINES",
    "Delivery",
    "EngineError",
    "Run",
    "RunSpec",
    "UnknownEngine",
    "WavesUnsupported",
    "build",
    "cocotb_tests",
    "run",
    "run_cocotb",
]


def _on_simulator(
    simulator: Simulator,
    spec: RunSpec,
    work_dir: Path,
    waves: Path | None,
    on_delivery: OnDelivery | None,
    progress: Progress,
) -> Generator[Record, None, None]:
    design = fabric_design(spec.parameters)
    yield from session.simulate(simulator, design, spec, work_dir, waves, on_delivery, progress)


def _on_amaranth(
    spec: RunSpec,
    work_dir: Path,
    waves: Path | None,
    on_delivery: OnDelivery | None,
    progress: Progress,
) -> Generator[Record, None, None]:
    yield from amaranth.simulate(lambda: Fabric(spec.parameters), spec, work_dir, waves, on_delivery, progress)


_ENGINES: dict[str, Engine] = {
    "verilator": partial(_on_simulator, "verilator"),
    "icarus": partial(_on_simulator, "icarus"),
    "amaranth": _on_amaranth,
    "model": model.simulate,
}
ENGINES = tuple(_ENGINES)
"""Names of the engines."""


def run(
    engine: str,
    spec: RunSpec,
    work_dir: Path,
    *,
    waves: Path | None = None,
    on_delivery: Callable[[Delivery], None] | None = None,
) -> Run:
    """Run a specification on an engine.

    Args:
        engine: one of ENGINES.
        spec: the fabric and its stimulus.
        work_dir: made if absent, one run at a time; verilator and icarus leave sim.log there if the simulator
            failed.
        waves: record waves to this file: .fst on verilator and icarus, .vcd on amaranth.
        on_delivery: called with each delivered packet, in order of (cycle, node), before its DELIVER record
            is yielded.

    Returns:
        An iterable of records, and a context manager whose end ends the run. Nothing runs before iteration.

    Raises:
        UnknownEngine: there is no such engine.
        Iterating raises what the engines raise: WavesUnsupported, SimulatorMissing, BuildFailed,
        BuildDirectoryError, SimulationFailed, and ValueError for a stimulus that is out of order or out of range.
    """
    if engine not in _ENGINES:
        raise UnknownEngine(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    return Run(_ENGINES[engine], spec, work_dir, waves, on_delivery)


def build(engine: str, parameters: FabricParameters, *, waves: bool = False) -> None:
    """Do what an engine has to do before its first run of a fabric: elaborate, export and compile.

    Raises:
        UnknownEngine: there is no such engine.
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.engines.build.build`.
    """
    if engine not in _ENGINES:
        raise UnknownEngine(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    if engine in ("verilator", "icarus"):
        session.build_design("verilator" if engine == "verilator" else "icarus", fabric_design(parameters), waves)
    elif engine == "model":
        compiled_model.build()


def cocotb_tests(test_module: str) -> list[str]:
    """Names of the cocotb tests in a module.

    Raises:
        ImportError: there is no such module.
    """
    found: list[str] = []
    for member in vars(import_module(test_module)).values():
        tests = member.generate_tests() if isinstance(member, TestGenerator) else [member]
        found += [test.name for test in tests if isinstance(test, Test)]
    return found


def run_cocotb(
    simulator: Simulator,
    parameters: FabricParameters,
    test_module: str,
    testcase: str,
    run_dir: Path,
    *,
    open_ports: OpenPorts = (),
    seed: int | None = None,
    waves: Path | None = None,
) -> TestResult:
    """Run a cocotb test on a fabric, which it drives with `cosim.drivers.FabricDriver`.

    Args:
        simulator: `verilator` or `icarus`.
        parameters: the fabric.
        test_module: importable name of the module with the test.
        testcase: the test's name. Each test has a simulation for itself, as memories outlive a reset.
        run_dir: working directory of the simulation, made if absent; each run its own.
        open_ports: ports whose rows the test drives.
        seed: cocotb's random seed.
        waves: record FST waves to this file.

    Raises:
        SimulationFailed: the simulator crashed, the test was not found, or it failed.
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.engines.build.build`.
    """
    design = fabric_design(parameters, open_ports)
    return session.run_cocotb(simulator, design, parameters, test_module, testcase, run_dir, seed=seed, waves=waves)
