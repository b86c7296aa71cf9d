"""A tool that a build runs, whose failure is reported with what it said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchain.errors import UserError
from toolchain.process import run_logged

__all__ = ["BuildFailed", "run_tool"]

_LOG = "build.log"
_MOST_LINES = 5


class BuildFailed(UserError):
    """A simulator or compiler refused the sources; the text ends with what it said."""


def run_tool(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
    """Run COMMAND in DIRECTORY; what it says goes to build.log there.

    Raises:
        BuildFailed: it failed.
    """
    log = directory / _LOG
    if run_logged(command, cwd=directory, env=environment, log=log) != 0:
        said = log.read_text(errors="replace").splitlines()
        errors = [line for line in said if "error" in line.lower() or line.startswith("%Warning")]
        raise BuildFailed(f"{Path(command[0]).name} failed: " + "\n".join(errors[:_MOST_LINES] or said[-_MOST_LINES:]))
