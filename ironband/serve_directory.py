"""Where things are: the directory by which programs find a server, and the programs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from toolchain.atomic_files import writing
from toolchain.temporary_directory import LOCK, PREFIX, locked, temporary_directory

__all__ = ["PROGRAM_DIRECTORIES", "program_path", "server_directory"]

PROGRAM_DIRECTORIES = "/usr/sbin:/sbin"

_DRAWN = "12345678"
"""As many bytes as tempfile draws."""

_LONGEST = 90
"""Bytes of a directory's name, to which that of a socket is added (unix(7))."""


def program_path() -> str:
    """The PATH of programs: Debian has those that manage fabrics where only root looks by itself."""
    return f"{os.environ.get('PATH', os.defpath)}:{PROGRAM_DIRECTORIES}"


@contextmanager
def server_directory(where: Path | None) -> Iterator[Path]:
    """A directory for a server alone, removed in the end: AT, or a new one.

    What a server has left there that was killed is removed before.

    Raises:
        click.UsageError: it is in use, holds something else, or has too long a name.
        OutputError: it cannot be written.
    """
    with ExitStack() as held:
        with writing(f"directory {where or tempfile.gettempdir()}"):
            parent = Path(tempfile.gettempdir())
            length = len(os.fsencode((where or parent / f"{PREFIX}{_DRAWN}").resolve()))
            if length > _LONGEST:
                named = f"TMPDIR {parent}" if where is None else f"--dir {where}"
                raise click.UsageError(f"{named}: {length} bytes: expected a name of at most {_LONGEST}")
            if where is None:
                directory = held.enter_context(temporary_directory()).resolve()
            else:
                directory = where.resolve()
                if directory.exists() and not (directory / LOCK).exists() and any(directory.iterdir()):
                    raise click.UsageError(
                        f"--dir {where}: holds something else: expected a directory for a server alone"
                    )
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                try:
                    held.enter_context(locked(directory))
                except BlockingIOError:
                    raise click.UsageError(f"--dir {where}: a server is running there") from None
                held.callback(shutil.rmtree, directory, ignore_errors=True)
                _clear(directory)
        yield directory


def _clear(directory: Path) -> None:
    for left in directory.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        elif left.name != LOCK:
            left.unlink()
