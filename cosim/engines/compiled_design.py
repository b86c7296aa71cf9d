"""A design in the harness, compiled for a simulator."""

from __future__ import annotations

from cosim.harness.top import PUBLIC, TOP, sources
from cosim.simulators.build import Build, build
from cosim.simulators.installed import Simulator
from verilog.design import Design

__all__ = ["build_design"]


def build_design(simulator: Simulator, design: Design, waves: bool = False) -> Build:
    """The compiled harness of a design.

    Raises:
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """
    return build(simulator, sources(design.ports, design.verilog), TOP, public=PUBLIC, waves=waves)
