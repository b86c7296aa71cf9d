"""The directory that an exported switch is written to."""

from __future__ import annotations

import tempfile
from pathlib import Path

from toolchain.atomic_files import OutputError

__all__ = ["check_directory"]


def check_directory(directory: Path, force: bool) -> None:
    """Raise OutputError unless DIRECTORY can be written to, and is absent or empty or there is FORCE."""
    if directory.exists() and not directory.is_dir():
        raise OutputError(f"{directory}: is a file, expected a directory")
    try:
        if not force and directory.is_dir() and any(directory.iterdir()):
            raise OutputError(f"directory {directory}: is not empty; --force replaces the files of an export in it")
        with tempfile.TemporaryFile(dir=_existing(directory)):
            pass
    except OSError as error:
        raise OutputError(f"directory {directory}: cannot be written: {error.strerror}") from None


def _existing(directory: Path) -> Path:
    """The directory, or the first above it that is there."""
    return next(place for place in (directory, *directory.absolute().parents) if place.exists())
