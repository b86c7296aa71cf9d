"""Files for the user: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchain.errors import UserError

__all__ = ["OutputError", "atomic_file", "is_special", "output_directory", "output_file", "write_atomically", "writing"]


class OutputError(UserError):
    """A place that cannot be written; the text is one line naming it and why."""


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Raise OutputError, which names PLACE, for any OSError of the block."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from None


def output_directory(path: Path) -> Path:
    """The directory, made if absent, and known to be writable.

    Raises:
        OutputError: it is not.
    """
    with writing(f"directory {path}"):
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    return path


def output_file(path: Path) -> Path:
    """The path of a file that is written later, known to be writable.

    Raises:
        OutputError: it is a directory, or its directory is absent or cannot be written.
    """
    target = path.resolve()
    if target.is_dir():
        raise OutputError(f"{path}: cannot be written: Is a directory")
    if not is_special(target):
        with writing(f"{path}"):
            # By a name like the one that it is written under: it may be too long.
            _partial(target).unlink()
    return path


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to, renamed to it at the end; on any exception nothing is left.

    A symbolic link stays one. A device or a pipe, which has no other name to be made under, is written itself.

    Raises:
        OutputError: the directory cannot be written.
    """
    target = path.resolve()
    if is_special(target):
        yield target
        return
    with writing(f"{path}"):
        temporary = _partial(target)
    try:
        yield temporary
        # mkstemp makes files that only their owner may read.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        with writing(f"{path}"):
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _partial(target: Path) -> Path:
    """A new file beside TARGET, whose name is longer."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
    os.close(handle)
    return Path(name)


def write_atomically(path: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises:
        OutputError: it cannot be written.
    """
    with atomic_file(path) as temporary, writing(f"{path}"):
        temporary.write_text(text, encoding="utf-8")


def is_special(path: Path) -> bool:
    """Whether there is something other than a file or a directory, such as /dev/null."""
    return path.exists() and not path.is_file() and not path.is_dir()
