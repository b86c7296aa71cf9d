"""A mutant is the design with one thing broken; here it is made, and compared with the golden model.

Everything runs in a copy of the packages, so that what is broken is what is imported, and so that the keys of the
build cache see the change.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from wire.trace import Kind

__all__ = ["PACKAGES", "ROOT", "Mutant", "MutantRotten", "Outcome", "compared", "copy_packages"]

ROOT = Path(__file__).parents[2]
PACKAGES = ("wire", "toolchain", "rtl", "model", "sm", "verilog", "cosim", "ironband")
COMPARISON = Path(__file__).with_name("comparison.py")

_TIMEOUT_SECONDS = 600
_DIFFERENCE = re.compile(r"^first difference: cycle (?P<cycle>\d+), (?P<place>\S.*)$", re.MULTILINE)
_SIDE = re.compile(r"^  (?P<side>model|icarus) +(?:no such event|cycle \d+  .+?  (?P<kind>[A-Z_]+)  .+)$", re.MULTILINE)


class MutantRotten(Exception):
    """The text that a mutant changes is not in its file exactly once."""


@dataclass(frozen=True)
class Mutant:
    """One thing broken.

    Attributes:
        name: what is broken, as a short sentence.
        file: in `rtl/`.
        old: its text there, which occurs once.
        new: what stands there instead.
        arguments: of `comparison.py`: a stimulus that exposes it.
        kind: of the first record that differs.
        place: where that is, `S[2]` for port 2 of the switch; None where several are as likely.
    """

    name: str
    file: str
    old: str
    new: str
    arguments: tuple[str, ...]
    kind: Kind
    place: str | None = None

    def apply(self, tree: Path) -> None:
        """Break the copy of the packages in `tree`.

        Raises:
            MutantRotten: the design has changed, and this mutant has to follow.
        """
        path = tree / "rtl" / self.file
        text = path.read_text()
        if (found := text.count(self.old)) != 1:
            raise MutantRotten(f"{self.name}: rtl/{self.file} has {self.old!r} {found} times, expected once")
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True)
class Outcome:
    """What a comparison said.

    Attributes:
        status: exit status.
        said: all of its output.
    """

    status: int
    said: str

    @property
    def cycle(self) -> int | None:
        """Cycle of the first difference."""
        found = _DIFFERENCE.search(self.said)
        return int(found["cycle"]) if found else None

    @property
    def place(self) -> str | None:
        """Port, node or link of the first difference."""
        found = _DIFFERENCE.search(self.said)
        return found["place"] if found else None

    @property
    def sides(self) -> dict[str, str | None]:
        """What either side has there: the kind of its record, None if it has no such event."""
        return {found["side"]: found["kind"] for found in _SIDE.finditer(self.said)}


def copy_packages(tree: Path) -> None:
    """Copy the packages to `tree`, compiled; files changed later are seen to be changed by their contents."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(tree, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def compared(tree: Path, arguments: tuple[str, ...], builds: Path) -> Outcome:
    """Run a comparison on the packages in `tree`, with build output in `builds`."""
    result = subprocess.run(
        [sys.executable, str(COMPARISON), *arguments],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree), "IRONBAND_SIM_BUILD": str(builds)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_TIMEOUT_SECONDS,
    )
    return Outcome(result.returncode, result.stdout)
