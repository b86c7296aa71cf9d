"""What tells some files from others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["files_digest"]


def files_digest(files: Iterable[Path], folder: Path) -> str:
    """Another one for other paths below FOLDER, or other contents, whatever the order; 64 hexadecimal digits."""
    summed = hashlib.sha256()
    for file in sorted(files):
        contents = file.read_bytes()
        summed.update(f"{file.relative_to(folder).as_posix()} {len(contents)}\n".encode())
        summed.update(contents)
    return summed.hexdigest()
