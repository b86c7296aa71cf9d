"""Temporary directories that nobody has to remove by hand, also if the process that made them was killed."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

__all__ = ["LOCK", "PREFIX", "locked", "temporary_directory"]

PREFIX: Final = "ironband-"
LOCK: Final = ".ironband-lock"
"""A file in a directory of a process, which has it locked for as long as it lives."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory.

    Raises:
        BlockingIOError: a living process has it.
        OSError: it cannot be made.
    """
    with (directory / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A new directory, removed in the end. Those of our user's processes that were killed are removed before.

    Raises:
        OSError: it cannot be made.
    """
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{PREFIX}*"):
        _remove_dead(left)
    while True:
        directory = parent / f"{PREFIX}{secrets.token_hex(4)}"
        with ExitStack() as held:
            # Before it is there: an interrupt may come as soon as it is.
            held.callback(shutil.rmtree, directory, ignore_errors=True)
            try:
                directory.mkdir(mode=0o700)
            except FileExistsError:
                held.pop_all()
                continue
            # Until it is locked, it looks like that of a process that was killed, and another one may remove it.
            try:
                held.enter_context(locked(directory))
            except (BlockingIOError, FileNotFoundError):
                continue
            if not (directory / LOCK).exists():
                continue
            yield directory
            return


def _remove_dead(directory: Path) -> None:
    """Remove a directory if it is one of ours with a lock that nobody holds."""
    with suppress(OSError):
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return
        lock = os.open(directory / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(lock)
