"""Running a specification on any engine: the same stimulus, and the same trace from all of them.

An engine is imported when it is used: RTL and what elaborates it takes longer to import than most runs of the golden
model last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from functools import partial
from pathlib import Path

from cosim.engines import compiled_model, model
from cosim.engines.base import (
    ENGINES,
    MODEL,
    NO_TAPS,
    Engine,
    EngineError,
    Run,
    RunOptions,
    Taps,
    UnknownEngine,
    Waves,
    check_waves,
)
from cosim.engines.part import Part
from cosim.simulators.installed import Simulator, require
from cosim.stimulus.run_spec import RunSpec
from wire.parameters import FabricParameters
from wire.stimulus import Delivery
from wire.trace import Record

__all__ = ["WholeFabricsOnly", "build", "run"]


class WholeFabricsOnly(EngineError):
    """The engine does not simulate some nodes of a fabric alone."""


def _on_simulator(simulator: Simulator, spec: RunSpec, options: RunOptions) -> Generator[Record, None, None]:
    # Before minutes go into what it would simulate.
    require(simulator)

    from cosim.engines import session
    from verilog.design import fabric_design

    design = fabric_design(spec.parameters, taps=options.taps.directions, rows=options.rows > 0)
    yield from session.simulate(simulator, design, spec, options)


def _in_amaranth(spec: RunSpec, options: RunOptions) -> Generator[Record, None, None]:
    from cosim.engines import amaranth
    from rtl.fabric.fabric import Fabric

    def make() -> Fabric:
        return Fabric(spec.parameters, taps=options.taps.directions, rows=options.rows > 0)

    yield from amaranth.simulate(make, spec, options)


def _mixed(
    simulator: Simulator, rtl: Collection[str], spec: RunSpec, options: RunOptions
) -> Generator[Record, None, None]:
    require(simulator)

    from cosim.engines import mixed

    yield from mixed.simulate(simulator, rtl, spec, options)


_SIMULATORS: dict[str, Simulator] = {"verilator": "verilator", "icarus": "icarus"}
_ENGINES: dict[str, Engine] = {
    **{name: partial(_on_simulator, simulator) for name, simulator in _SIMULATORS.items()},
    "amaranth": _in_amaranth,
    "model": model.simulate,
}


def run(
    engine: str,
    spec: RunSpec,
    work_dir: Path,
    *,
    rtl: Collection[str] | None = None,
    waves: Waves | None = None,
    on_delivery: Callable[[Delivery], None] | None = None,
    taps: Taps = NO_TAPS,
    rows: int = 0,
    kinds: Collection[int] | None = None,
) -> Run:
    """Run a specification on an engine.

    Args:
        engine: one of ENGINES.
        spec: the fabric and its stimulus.
        work_dir, waves, on_delivery, taps, rows, kinds: see `RunOptions`.
        rtl: the nodes that the engine simulates, by name, all without it; the others are the golden model.

    Returns:
        An iterable of records, and a context manager whose end ends the run. Nothing runs before iteration.

    Raises:
        UnknownEngine: there is no such engine.
        WavesUnsupported: it records no waves, or not into such a file.
        WholeFabricsOnly: it does not simulate some nodes alone.
        ValueError: RTL names no node, or one that is not there.
        Iterating raises what the engines raise: SimulatorMissing, BuildFailed, BuildDirectoryError,
        SimulationFailed, ShadowMismatch, and ValueError for a stimulus out of order or range.
    """
    simulates = _engine(engine)
    check_waves(engine, None if waves is None else waves.file)
    if rtl is not None and set(rtl) != set(spec.parameters.nodes):
        if rows:
            raise WholeFabricsOnly("ROWS records where only some nodes are RTL: there all rows are compared anyhow")
        simulates = partial(_mixed, _part_simulator(engine, spec.parameters, rtl), rtl)
    elif spec.played and engine != MODEL:
        raise WholeFabricsOnly(
            f"{engine}: packets are played by the golden model: expected some nodes that are not RTL"
        )
    return Run(simulates, spec, RunOptions(work_dir, waves, on_delivery, taps, rows, kinds))


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


def build(engine: str, parameters: FabricParameters, *, rtl: Collection[str] | None = None) -> None:
    """Do what an engine has to do before its first run of a fabric: elaborate, export and compile; RTL: as for `run`.

    Raises:
        UnknownEngine, WholeFabricsOnly, ValueError: as for `run`.
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """
    _engine(engine)
    part = None
    if rtl is not None and set(rtl) != set(parameters.nodes):
        part = _part_simulator(engine, parameters, rtl), Part(parameters, rtl).parameters
    if engine == MODEL:
        compiled_model.build()
    elif engine in _SIMULATORS:
        require(_SIMULATORS[engine])

        from cosim.engines.compiled_design import build_design
        from verilog.design import fabric_design

        if part is None:
            build_design(_SIMULATORS[engine], fabric_design(parameters))
        else:
            simulator, parameters = part
            build_design(simulator, fabric_design(parameters, part=True))
