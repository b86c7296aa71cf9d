"""Running a tool so that nothing of it outlives us."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from toolchain.errors import UserError

__all__ = ["BuildFailed", "ProcessTimeout", "in_foreground", "nothing_left", "run_logged", "run_tool", "running"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.01
_LOG = "build.log"
_MOST_LINES = 5


class BuildFailed(UserError):
    """A simulator or compiler refused the sources; the text ends with what it said."""


class ProcessTimeout(UserError):
    """A tool ran longer than it was given, and was ended."""


def _die_with_parent() -> None:
    """Ask the kernel to end this process when the one that started it dies, whatever the cause."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def running(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    pass_fds: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """Run COMMAND beside the body of the `with` block, with its output appended to LOG.

    The command gets a process group of its own, which is ended when the block is left, whatever the cause.
    It inherits the file descriptors PASS_FDS, under their numbers.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_parent,
            pass_fds=pass_fds,
        )
        try:
            yield process
        finally:
            _end_group(process)


@contextlib.contextmanager
def in_foreground(command: Sequence[str], *, env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run COMMAND beside the body of the `with` block, with our input, output and terminal.

    What it leaves running is ended with it when the block is left, whatever the cause.

    Raises:
        OSError: it cannot be run.
    """
    before = _adopting()
    process: subprocess.Popen[bytes] | None = None
    try:
        process = subprocess.Popen(command, env=dict(env), preexec_fn=_die_with_parent)
        yield process
    finally:
        # It may run already when an interruption keeps us from hearing of it.
        _end_children(process, before)


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """What the block has started, or what was started by that, is ended with the block if it still runs."""
    before = _adopting()
    try:
        yield
    finally:
        _end_children(None, before)


def run_logged(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    timeout_seconds: float | None = None,
) -> int:
    """Run COMMAND to its end, as `running` does; return its exit status.

    Raises:
        ProcessTimeout: it ran longer than TIMEOUT_SECONDS.
    """
    with running(command, cwd=cwd, env=env, log=log) as process:
        try:
            return process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise ProcessTimeout(f"{Path(command[0]).name} ran longer than {timeout_seconds:g} s") from None


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


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of PROCESS's group: ask, wait a little, then kill."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None and number == signal.SIGTERM:
            # The leader is gone; anything it left behind has no work to finish.
            continue
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)


def _adopting() -> set[int]:
    """Our children; from now on those are too whose own parents end."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    return _children()


def _children() -> set[int]:
    """Our children, those included whose own parents have gone. One that ends meanwhile may hide others."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(number) for one in lists for number in one.read_text().split()}


def _children_later() -> set[int]:
    time.sleep(_LOOK_SECONDS)
    return _children()


def _end_children(process: subprocess.Popen[bytes] | None, spared: set[int]) -> None:
    """End all children but these: ask, wait a little, then kill. Those whose parents end come to us, too."""
    deadline = time.monotonic() + _GRACE_SECONDS
    asked: set[int] = set()
    while left := _children() - spared or _children_later() - spared:
        late = time.monotonic() > deadline
        for child in left if late else left - asked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL if late else signal.SIGTERM)
        asked |= left
        if process is not None:
            process.poll()
        for child in left - ({process.pid} if process is not None else set()):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(_LOOK_SECONDS)
    if process is not None:
        process.wait()
