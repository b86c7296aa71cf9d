"""cocotb tests, run on designs around an exported switch (docs/library.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cosim.engines.base import PART_ENGINES, UnknownEngine
from cosim.simulators.cocotb_results import TestResult
from cosim.simulators.installed import Simulator
from toolchain.errors import UserError

__all__ = ["TestResult", "run_cocotb", "simulator_named"]

_MODULE: Final = re.compile(r"^\s*module\s+(\w+)", re.M)


def run_cocotb(
    file: str | Path,
    simulator: str = "icarus",
    *,
    sources: Sequence[str | Path],
    top: str,
    waves: str | Path | None = None,
    seed: int | None = None,
) -> list[TestResult]:
    """Builds a design of one's own, unless that is in the build cache, and runs the cocotb tests of a file on it.

    Args:
        file: of Python, with the tests; `ironband.drivers` has what drives a switch.
        simulator: icarus or verilator.
        sources: Verilog, all with different names.
        top: the module that is cocotb's `dut`.
        waves: a file for waves, .fst.
        seed: of cocotb's random numbers.

    Returns:
        The tests, all of which passed; each has a `name` and the time in the simulation that it took, `simulated_ns`.

    Raises:
        UserError: no such simulator or file; the design is not one; a test failed.
    """
    from cosim.simulators import regression
    from cosim.simulators.build import build
    from cosim.simulators.cocotb_files import importable
    from ironband.common import check_waves_file, work_directory

    chosen = simulator_named(simulator)
    texts: dict[str, str] = {}
    for source in map(Path, sources):
        if source.name in texts:
            raise UserError(f"{source}: expected another name, as two sources are called {source.name}")
        try:
            texts[source.name] = source.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"{source}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise UserError(f"{source}: byte {error.start} is not UTF-8, expected Verilog") from None
    if not any(re.search(rf"\b{re.escape(top)}\b", text) for text in texts.values()):
        modules = [name for text in texts.values() for name in _MODULE.findall(text)]
        raise UserError(f"top {top}: no such module; there are {', '.join(modules) or 'none'}")
    wave_file = None if waves is None else Path(waves)
    check_waves_file(simulator, wave_file)
    with importable(Path(file)) as module, work_directory() as directory:
        built = build(chosen, texts, top, waves=wave_file is not None)
        return regression.run(built, module, directory, waves=wave_file, seed=seed)


def simulator_named(text: str) -> Simulator:
    """The simulator that is called so.

    Raises:
        UserError: there is none.
    """
    for known in PART_ENGINES:
        if text == known:
            return known
    raise UnknownEngine(f"simulator {text!r}: expected one of {', '.join(PART_ENGINES)}")
