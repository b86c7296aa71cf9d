"""A mutant is the design with one thing broken; here it is made, and compared with the golden model.

Everything runs in a copy of the packages, so that what is broken is what is imported, and so that the keys of the
build cache see the change.
"""

from __future__ import annotations

import compileall
import json
import py_compile
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from wire.trace import Kind

__all__ = [
    "CHECK",
    "COMPARISON",
    "PACKAGES",
    "ROOT",
    "Change",
    "Comparer",
    "Mutant",
    "MutantRotten",
    "Outcome",
    "copy_packages",
    "mixed",
]

ROOT = Path(__file__).parents[2]
PACKAGES = ("wire", "toolchain", "rtl", "model", "sm", "capture", "verilog", "cosim", "ironband")
COMPARISON = Path(__file__).with_name("comparison.py")

CHECK: Final = ("check", "--ports", "2", "--vls", "1", "--cycles", "2000", "--seed", "41")
"""A stimulus: random traffic with errors, all of it RTL."""

_COMPARER = Path(__file__).with_name("comparer.py")
_DIFFERENCE = re.compile(r"^first difference: cycle (?P<cycle>\d+), (?P<place>\S.*)$", re.MULTILINE)
_SIDE = re.compile(r"^  (?P<side>model|icarus) +(?:no such event|cycle \d+  .+?  (?P<kind>[A-Z_]+)  .+)$", re.MULTILINE)


def mixed(name: str, *nodes: str) -> tuple[str, ...]:
    """A stimulus of `stimuli.py` where only these nodes are RTL."""
    return ("mixed", name, ",".join(nodes))


class MutantRotten(Exception):
    """The text that a mutant changes is not in its file exactly once."""


@dataclass(frozen=True)
class Change:
    """One thing broken.

    Attributes:
        name: what is broken, as a short sentence.
        file: in `rtl/`.
        old: its text there, which occurs once.
        new: what stands there instead.
    """

    name: str
    file: str
    old: str
    new: str

    @contextmanager
    def applied(self, tree: Path) -> Iterator[None]:
        """Within the block the copy of the packages in `tree` is broken.

        Raises:
            MutantRotten: the design has changed, and this mutant has to follow.
        """
        path = tree / "rtl" / self.file
        text = path.read_text()
        if (found := text.count(self.old)) != 1:
            raise MutantRotten(f"{self.name}: rtl/{self.file} has {self.old!r} {found} times, expected once")
        path.write_text(text.replace(self.old, self.new))
        try:
            yield
        finally:
            path.write_text(text)


@dataclass(frozen=True)
class Mutant(Change):
    """One thing broken, for a comparison to notice.

    Attributes:
        arguments: of `comparison.py`: a stimulus that exposes it.
        kind: of the first record that differs.
        place: where that is, `S[2]` for port 2 of the switch; None where several are as likely.
    """

    arguments: tuple[str, ...]
    kind: Kind
    place: str | None = None


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


class Comparer:
    """A process that imports what is not ours once, and compares again and again (see `comparer.py`)."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(_COMPARER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Comparer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it when it has compared what it is comparing."""
        with self._process as process:
            process.communicate()

    def compared(self, tree: Path, arguments: tuple[str, ...], builds: Path) -> Outcome:
        """Run a comparison on the packages in `tree`, with build output in `builds`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"tree": str(tree), "builds": str(builds), "arguments": arguments}
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        return Outcome(answer["status"], answer["said"])
