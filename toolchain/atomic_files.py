"""Files for the user: whole or not at all."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
        # By a name like the one that it is written under: it may be too long.
        with _partial(path, target):
            pass
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
    with _partial(path, target) as temporary:
        yield temporary
        with writing(f"{path}"):
            temporary.replace(target)


@contextmanager
def _partial(path: Path, target: Path) -> Iterator[Path]:
    """A new file beside TARGET, which is that of PATH, with a longer name; at the end it is gone, whatever happened.

    Its name is known before it is there: an interrupt may come as soon as it is.
    """
    temporary = target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")
    try:
        with writing(f"{path}"):
            temporary.touch(exist_ok=False)
        yield temporary
    finally:
        with suppress(OSError):  # it may not be there, nor have been possible
            temporary.unlink()


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
