"""Running a specification on any engine: the same stimulus, and the same trace from all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from functools import partial
from importlib import import_module
from pathlib import Path

from cocotb.regression import Test, TestGenerator

from cosim.engines import amaranth, compiled_model, mixed, model, session
from cosim.engines.base import Engine, EngineError, Run, RunOptions, UnknownEngine, WavesUnsupported
from cosim.engines.compiled_design import build_design
from cosim.engines.names import ENGINES
from cosim.simulators.cocotb_results import TestResult
from cosim.simulators.installed import Simulator
from cosim.stimulus.run_spec import RunSpec
from rtl.fabric.fabric import Fabric
from verilog.design import fabric_design
from wire.parameters import FabricParameters
from wire.stimulus import Delivery
from wire.trace import Record

__all__ = [
    "Delivery",
    "EngineError",
    "Run",
    "RunSpec",
    "UnknownEngine",
    "WavesUnsupported",
    "WholeFabricsOnly",
    "build",
    "cocotb_tests",
    "run",
    "run_cocotb",
]


class WholeFabricsOnly(EngineError):
    """The engine does not simulate some nodes of a fabric alone."""


def _on_simulator(simulator: Simulator, spec: RunSpec, options: RunOptions) -> Generator[Record, None, None]:
    yield from session.simulate(simulator, fabric_design(spec.parameters), spec, options)


def _on_amaranth(spec: RunSpec, options: RunOptions) -> Generator[Record, None, None]:
    return amaranth.simulate(lambda: Fabric(spec.parameters), spec, options)


_SIMULATORS: dict[str, Simulator] = {"verilator": "verilator", "icarus": "icarus"}
_ENGINES: dict[str, Engine] = {
    **{name: partial(_on_simulator, simulator) for name, simulator in _SIMULATORS.items()},
    "amaranth": _on_amaranth,
    "model": model.simulate,
}


def run(
    engine: str,
    spec: RunSpec,
    work_dir: Path,
    *,
    rtl: Collection[str] | None = None,
    waves: Path | None = None,
    on_delivery: Callable[[Delivery], None] | None = None,
) -> Run:
    """Run a specification on an engine.

    Args:
        engine: one of ENGINES.
        spec: the fabric and its stimulus.
        work_dir, waves, on_delivery: see `RunOptions`.
        rtl: the nodes that the engine simulates, by name, all without it; the others are the golden model.

    Returns:
        An iterable of records, and a context manager whose end ends the run. Nothing runs before iteration.

    Raises:
        UnknownEngine: there is no such engine.
        WholeFabricsOnly: this one does not simulate some nodes alone.
        ValueError: RTL names no node, or one that is not there.
        Iterating raises what the engines raise: WavesUnsupported, SimulatorMissing, BuildFailed,
        BuildDirectoryError, SimulationFailed, ShadowMismatch, and ValueError for a stimulus out of order or range.
    """
    simulates = _engine(engine)
    if rtl is not None and set(rtl) != set(spec.parameters.nodes):
        simulates = partial(mixed.simulate, _part_simulator(engine, spec.parameters, rtl), rtl)
    return Run(simulates, spec, RunOptions(work_dir, waves, on_delivery))


def _engine(name: str) -> Engine:
    if name not in _ENGINES:
        raise UnknownEngine(f"engine {name!r}: expected one of {', '.join(ENGINES)}")
    return _ENGINES[name]


def _part_simulator(engine: str, parameters: FabricParameters, rtl: Collection[str]) -> Simulator:
    """What simulates these nodes alone."""
    if engine not in _SIMULATORS:
        allowed = " or ".join(_SIMULATORS)
        raise WholeFabricsOnly(f"{engine} simulates whole fabrics only: expected {allowed} where some nodes are RTL")
    if not rtl:
        raise ValueError("no nodes are RTL: expected some")
    for name in rtl:
        if name not in parameters.nodes:
            raise ValueError(f"RTL node {name}: no such node; there are {', '.join(parameters.nodes)}")
    return _SIMULATORS[engine]


def build(
    engine: str, parameters: FabricParameters, *, rtl: Collection[str] | None = None, waves: bool = False
) -> None:
    """Do what an engine has to do before its first run of a fabric: elaborate, export and compile; RTL: as for `run`.

    Raises:
        UnknownEngine, WholeFabricsOnly, ValueError: as for `run`.
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """
    _engine(engine)
    if rtl is not None and set(rtl) != set(parameters.nodes):
        mixed.build(_part_simulator(engine, parameters, rtl), parameters, rtl, waves)
    elif engine in _SIMULATORS:
        build_design(_SIMULATORS[engine], fabric_design(parameters), waves)
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
    seed: int | None = None,
    waves: Path | None = None,
) -> TestResult:
    """Run a cocotb test on a fabric, which it drives with `cosim.drivers.FabricDriver`.

    Args:
        simulator: `verilator` or `icarus`.
        parameters: the fabric; the test drives the rows of its open ports.
        test_module: importable name of the module with the test.
        testcase: the test's name. Each test has a simulation for itself, as memories outlive a reset.
        run_dir: working directory of the simulation, made if absent; each run its own.
        seed: cocotb's random seed.
        waves: record FST waves to this file.

    Raises:
        SimulationFailed: the simulator crashed, the test was not found, or it failed.
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """
    design = fabric_design(parameters)
    return session.run_cocotb(simulator, design, parameters, test_module, testcase, run_dir, seed=seed, waves=waves)
