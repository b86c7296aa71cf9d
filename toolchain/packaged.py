"""Files that come with Ironband and are called by name: scenarios, topologies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["NotPackaged", "find_file", "packaged_files"]


class NotPackaged(Exception):
    """A name that is neither a file nor one that Ironband comes with; the text says what there is."""


def packaged_files(folder: Path, suffix: str) -> dict[str, Path]:
    """The files of a folder, by name without suffix."""
    return {path.stem: path for path in sorted(folder.glob(f"*{suffix}"))}


def find_file(name_or_path: str, packaged: Mapping[str, Path], suffix: str) -> Path:
    """The file at a path, or else the packaged one of that name.

    Raises:
        NotPackaged: there is neither, and without `suffix` or a folder it is no path that was meant.
        OSError: it cannot be looked for.
    """
    path = Path(name_or_path)
    if name_or_path in packaged and not path.is_file():
        return packaged[name_or_path]
    if not path.exists() and path.suffix != suffix and path.parent == Path():
        raise NotPackaged(f"no such file, and Ironband comes with: {', '.join(packaged)}")
    return path
