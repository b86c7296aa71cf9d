"""Files that come with Ironband and are called by name: scenarios, topologies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolchain.errors import UserError

__all__ = ["find_file", "packaged_files"]


def packaged_files(folder: Path, suffix: str) -> dict[str, Path]:
    """The files of a folder, by name without suffix."""
    return {path.stem: path for path in sorted(folder.glob(f"*{suffix}"))}


def find_file(what: str, name_or_path: str, packaged: Mapping[str, Path], suffix: str, wrong: type[UserError]) -> Path:
    """The file at a path, or else the packaged one of that name; WHAT is what it is called in errors, which are WRONG.

    Raises:
        UserError: there is neither, and without `suffix` or a folder it is no path that was meant; or the path cannot
            be looked for.
    """
    path = Path(name_or_path)
    try:
        if name_or_path in packaged and not path.is_file():
            return packaged[name_or_path]
        if path.exists() or path.suffix == suffix or path.parent != Path():
            return path
    except OSError as error:
        raise wrong(f"{what} {name_or_path!r}: {error.strerror}") from None
    raise wrong(f"{what} {name_or_path!r}: no such file, and Ironband comes with: {', '.join(packaged)}")
