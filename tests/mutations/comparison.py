"""Compares the RTL in the current directory with the golden model there: `check OPTIONS`, or `mixed NAME NODE,...`: a
stimulus of stimuli.py where only these nodes are RTL.

Exit status as `ironband` has it: 0 held, 1 a difference, 2 anything else.
"""

from __future__ import annotations

import gc
import importlib
import sys
import tempfile
import traceback
from pathlib import Path

from stimuli import STIMULI

from cosim.engines.simulation import run
from cosim.trace.compare import Names, compare
from ironband import main as ironband

PACKAGES = ("wire", "toolchain", "rtl", "model", "sm", "capture", "verilog", "cosim", "ironband")
_ENGINE = "icarus"


def compare_stimulus(name: str, rtl: list[str]) -> int:
    """Compare on a stimulus where only these nodes are RTL, and say where the sides part."""
    spec = STIMULI[name]
    with (
        tempfile.TemporaryDirectory(prefix="ironband-") as directory,
        run(_ENGINE, spec(), Path(directory) / _ENGINE, rtl=rtl) as seen,
        run("model", spec(), Path(directory) / "model") as expected,
    ):
        comparison = compare(expected, seen)
    difference = comparison.difference
    if difference is None:
        print(f"{name}: {comparison.records} records are the same")
        return 0
    again = f"comparison.py mixed {name} {','.join(rtl)}"
    print(difference.report(Names(spec().parameters), again, seen_by=_ENGINE))
    return 1


def main(arguments: list[str]) -> int:
    """Run a comparison, if the packages are those of the current directory."""
    for package in PACKAGES:
        origin = importlib.import_module(package).__file__
        if origin is None or Path(origin).parents[1] != Path.cwd():
            print(f"{package} was imported from {origin}, expected {Path.cwd()}", file=sys.stderr)
            return 2
    try:
        match arguments:
            case ["check", *options]:
                return ironband(["check", "--sim", _ENGINE, *options])
            case ["mixed", name, nodes]:
                return compare_stimulus(name, nodes.split(","))
    except Exception:  # a design that does not elaborate, too, is no difference
        traceback.print_exc()
        return 2
    print(f"{arguments}: expected check OPTIONS or mixed NAME NODE,...", file=sys.stderr)
    return 2


if __name__ == "__main__":
    # Elaboration makes many objects and little garbage.
    gc.disable()
    sys.exit(main(sys.argv[1:]))
