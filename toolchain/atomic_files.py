"""Files for the user: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchain.errors import UserError

__all__ = ["OutputError", "atomic_file", "output_directory", "output_file", "write_atomically"]


class OutputError(UserError):
    """A place that cannot be written; the text is one line naming it and why."""


def output_directory(path: Path) -> Path:
    """The directory, made if absent, and known to be writable.

    Raises:
        OutputError: it is not.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OutputError(f"directory {path}: cannot be written: {error.strerror}") from None
    return path


def output_file(path: Path) -> Path:
    """The path of a file that is written later, known to be writable.

    Raises:
        OutputError: it is a directory, or its directory is absent or cannot be written.
    """
    target = path.resolve()
    if target.is_dir():
        raise OutputError(f"{path}: cannot be written: Is a directory")
    if not _is_special(target):
        try:
            with tempfile.TemporaryFile(dir=target.parent):
                pass
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
    return path


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to, renamed to it at the end; on any exception nothing is left.

    A symbolic link stays one. A device or a pipe, which has no other name to be made under, is written itself.

    Raises:
        OutputError: the directory cannot be written.
    """
    target = path.resolve()
    if _is_special(target):
        yield target
        return
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files that only their owner may read.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        try:
            temporary.replace(target)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises:
        OutputError: it cannot be written.
    """
    with atomic_file(path) as temporary:
        try:
            temporary.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def _is_special(path: Path) -> bool:
    """Whether there is something other than a file or a directory, such as /dev/null."""
    return path.exists() and not path.is_file() and not path.is_dir()
