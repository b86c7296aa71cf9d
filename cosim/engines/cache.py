"""Build directories keyed by a hash of everything that went into them, safe between processes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from filelock import FileLock

__all__ = ["BuildDirectoryError", "build_root", "cached"]

_ROOT_VARIABLE = "IRONBAND_SIM_BUILD"
_DIGEST_DIGITS = 20


class BuildDirectoryError(Exception):
    """The folder for build output cannot be written."""


def build_root() -> Path:
    """The folder that holds all build output.

    `IRONBAND_SIM_BUILD` if set, else `sim_build/` of the checkout, else the user's cache folder (installed
    without a checkout).
    """
    if configured := os.environ.get(_ROOT_VARIABLE):
        return Path(configured).resolve()
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").exists():
        return checkout / "sim_build"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ironband"


def cached(kind: str, key: Mapping[str, object], fill: Callable[[Path], None]) -> Path:
    """The directory built from KEY, building it with FILL if nobody has yet.

    FILL gets an empty directory, which takes its final name only when FILL returns: an interrupted or failed
    build leaves nothing. Among processes that want the same key, one builds and the others wait for it.

    Args:
        kind: subfolder of the build root, such as `verilator`.
        key: all that decides the result, JSON-serializable: sources' text, options, versions of tools.
        fill: writes the build into the directory it is given.

    Raises:
        BuildDirectoryError: the build root cannot be written.
    """
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:_DIGEST_DIGITS]
    folder = build_root() / kind
    final = folder / digest
    if final.is_dir():
        return final
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f".{digest}.lock")
        lock.acquire()
    except OSError as error:
        raise BuildDirectoryError(f"cannot write build output in {folder}: {error.strerror}") from error
    try:
        if not final.is_dir():
            _fill_and_publish(final, folder / f".{digest}.part", fill)
    finally:
        lock.release()
    return final


def _fill_and_publish(final: Path, part: Path, fill: Callable[[Path], None]) -> None:
    """Run FILL in PART and rename it to FINAL; the caller holds the lock, so a PART found is a dead build's."""
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        fill(part)
        part.rename(final)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
