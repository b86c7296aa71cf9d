"""The bare C++ loop: the executable that cocotb runs, without cocotb, on stimulus written before."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from cosim.engines.compiled_design import build_design
from cosim.harness.stream_files import TRACE_FILE, Outbox
from cosim.harness.top import TOP
from cosim.simulators.build import Build
from cosim.simulators.cocotb_results import LOG, SimulationFailed, tail
from cosim.simulators.installed import environment
from cosim.stimulus.run_spec import RunSpec, Stimulus
from toolchain.process import run_logged
from verilog.design import fabric_design

__all__ = ["BareLoop"]


@dataclass(frozen=True)
class BareLoop:
    """A Verilated fabric and the files of its whole stimulus.

    Attributes:
        build: the executable.
        signals: what the bare loop sets before the clock starts, as cocotb does in a run: doorbells and the stop.
        directory: holds the files.
    """

    build: Build
    signals: tuple[str, ...]
    directory: Path

    @classmethod
    def prepared(cls, spec: RunSpec, directory: Path) -> BareLoop:
        """Build the fabric if need be, and write all its stimulus to files in DIRECTORY.

        Raises:
            SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
        """
        design = fabric_design(spec.parameters)
        stimulus = Stimulus(spec)
        directory.mkdir(parents=True)
        with Outbox(directory, design.ports) as outbox:
            for control in stimulus.controls_until(spec.cycles):
                outbox.control(control)
            for post in stimulus.posts_until(spec.cycles):
                outbox.packet(post)
        posted = sum(count << 32 * stream for stream, count in enumerate(outbox.packets))
        values = {"controls_posted": outbox.controls, "posted": posted, "stop": spec.cycles}
        signals = tuple(f"{TOP}.{name}={value:x}" for name, value in values.items())
        return cls(build_design("verilator", design), signals, directory)

    @property
    def trace(self) -> Path:
        """The trace that a run leaves."""
        return self.directory / TRACE_FILE

    def run(self) -> float:
        """Run it from reset to the stop; the wall time in s, from the start of its process to the end.

        Raises:
            SimulationFailed: it did not get there.
        """
        command = [*self.build.command(), "--bare", *self.signals]
        log = self.directory / LOG
        started = time.perf_counter()
        status = run_logged(command, cwd=self.directory, env=environment("verilator"), log=log)
        seconds = time.perf_counter() - started
        if status != 0:
            raise SimulationFailed(f"the bare loop ended with status {status}\n{tail(log)}")
        return seconds
