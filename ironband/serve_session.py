"""A fabric served: its directory, the command that runs in it, and what is told."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from cosim.doors.door import Door
from cosim.doors.shim import build_shim
from cosim.experiments.serving import ServeTask, make_door, serve_fabric
from cosim.trace.compare import Names
from ironband.common import work_directory
from toolchain.process import in_foreground

__all__ = ["run_session"]

_PROGRAMS = "/usr/sbin:/sbin"


def run_session(task: ServeTask, topology: str, host: str, command: Sequence[str]) -> int:
    """Serve until the command has ended, or somebody ends it; the exit status.

    Raises:
        click.UsageError: the command cannot be run.
        What the engines raise, and the library's compilation (cosim.doors.shim.build_shim).
    """
    shim = build_shim()
    with _directory() as directory, ExitStack() as stack:
        session = _Session(directory, shim, host, command, stack)
        door = make_door(task, directory, host, session.begin, session.tell)
        session.door = door
        stack.callback(door.close)
        if command and shutil.which(command[0], path=session.environment["PATH"]) is None:
            raise click.UsageError(f"{command[0]}: no such program")
        work_dir = stack.enter_context(work_directory())
        comparison, _cycles = serve_fabric(task, door, work_dir)
        if comparison is not None and comparison.difference is not None:
            print(comparison.difference.report(Names(task.fabric), f"ironband serve {topology}", seen_by=task.engine))
            return 1
        return session.status


class _Session:
    """What goes on beside the simulation."""

    def __init__(self, directory: Path, shim: Path, host: str, command: Sequence[str], stack: ExitStack) -> None:
        self.door: Door
        self.status = 0
        self._command = command
        self._stack = stack
        self._scratch = directory / "scratch"
        self._scratch.mkdir()
        preload = f"{shim}:{os.environ['LD_PRELOAD']}" if os.environ.get("LD_PRELOAD") else str(shim)
        self._given = {
            "LD_PRELOAD": preload,
            "IRONBAND_DIR": str(directory),
            "IRONBAND_HOST": host,
            "OSM_CACHE_DIR": f"{self._scratch}",
            "OSM_TMP_DIR": f"{self._scratch}",
            "PATH": f"{os.environ.get('PATH', os.defpath)}:{_PROGRAMS}",
        }
        self.environment = os.environ | self._given

    def begin(self) -> None:
        """The fabric can be used."""
        if not self._command:
            for name, value in self._given.items():
                print(f"export {name}={value}", flush=True)
            return
        process = self._stack.enter_context(in_foreground(self._command, env=self.environment))
        descriptor = os.pidfd_open(process.pid)
        self._stack.callback(os.close, descriptor)
        self.door.selector.register(descriptor, selectors.EVENT_READ, lambda events: self._ended(process, descriptor))

    def tell(self, line: str) -> None:
        """Say something."""
        print(f"ironband: {line}", file=sys.stderr, flush=True)

    def _ended(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.door.selector.unregister(descriptor)
        status = process.wait()
        self.status = status if status >= 0 else 128 - status
        self.door.end()


@contextmanager
def _directory() -> Iterator[Path]:
    """A private directory, removed in the end."""
    with tempfile.TemporaryDirectory(prefix="ironband-", ignore_cleanup_errors=True) as name:
        yield Path(name)
