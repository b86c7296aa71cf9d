"""How fast this machine is: fixed loops, timed now and then during a benchmark, against what a reference takes."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.figures import LoopKind, Reading
from cosim.simulators import installed
from toolchain.build_cache import cached
from toolchain.process import run_tool

__all__ = ["Calibration", "Loop", "Speed", "loops"]

_SOURCE = Path(__file__).with_suffix(".cpp")
_LIBRARY = "calibration.so"
_COMMAND = ["g++", "-O2", "-shared", "-fPIC", "-o", _LIBRARY, str(_SOURCE)]
_COMPILED_STEPS = 40_000_000
_PYTHON_STEPS = 600_000
_PYTHON_KEYS = 1 << 14

_COMPILED_REFERENCE_S = 0.175
_PYTHON_REFERENCE_S = 0.16


class Loop(NamedTuple):
    """A fixed amount of work."""

    run: Callable[[], object]
    reference_s: float
    """What it takes on a machine of calibration 1.0; docs/bench.md says how these were found."""


class Speed(NamedTuple):
    """How fast this machine is at one kind of work."""

    calibration: Reading
    """Times as fast as the reference."""
    loop_s: float
    """What the loop takes here; the median."""
    reference_s: float


class Calibration:
    """The times that loops have taken so far."""

    def __init__(self, loops: Mapping[LoopKind, Loop], clock: Callable[[], float] = time.perf_counter) -> None:
        self._loops = loops
        self._clock = clock
        self._seconds: dict[LoopKind, list[float]] = {kind: [] for kind in loops}

    def measure(self) -> None:
        """Time each loop once."""
        for kind, loop in self._loops.items():
            started = self._clock()
            loop.run()
            self._seconds[kind].append(self._clock() - started)

    @property
    def speeds(self) -> dict[LoopKind, Speed]:
        """By kind of work, of what has been measured."""
        return {
            kind: Speed(
                Reading.of(self._loops[kind].reference_s / one for one in seconds),
                median(seconds),
                self._loops[kind].reference_s,
            )
            for kind, seconds in self._seconds.items()
            if seconds
        }


def loops() -> dict[LoopKind, Loop]:
    """The loops of the benchmark; the compiled one is built if it is not in the cache.

    Raises:
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """
    key = {"source": _SOURCE.read_text(), "compiler": installed.versions("verilator")["compiler"]}
    folder = cached("calibration", key, lambda directory: run_tool(_COMMAND, directory, dict(os.environ)))
    library = ctypes.CDLL(str(folder / _LIBRARY))
    compiled = library.calibration_loop
    compiled.argtypes, compiled.restype = [ctypes.c_uint64], ctypes.c_uint64
    return {
        "compiled": Loop(lambda: compiled(_COMPILED_STEPS), _COMPILED_REFERENCE_S),
        "python": Loop(_python_loop, _PYTHON_REFERENCE_S),
    }


def _python_loop() -> int:
    """What Python mostly does here: small integers, dictionaries, lists."""
    random = 1
    counts: dict[int, int] = {}
    order: list[int] = []
    for _step in range(_PYTHON_STEPS):
        random = random * 1_103_515_245 + 12_345 & 0x7FFF_FFFF
        key = random >> 8 & _PYTHON_KEYS - 1
        if key not in counts:
            order.append(key)
        counts[key] = counts.get(key, 0) + 1
    return sum(counts[key] for key in order)
