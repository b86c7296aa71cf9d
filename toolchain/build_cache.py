"""Build directories keyed by a hash of everything that went into them, safe between processes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from filelock import FileLock, Timeout

from toolchain.errors import UserError

__all__ = ["BuildDirectoryError", "build_root", "cached", "code_of", "find"]

_ROOT_VARIABLE = "IRONBAND_SIM_BUILD"
_DIGEST_DIGITS = 20
_UNUSED_SECONDS = 30 * 24 * 3600
"""How long a build is kept that nobody asks for."""
_SEARCH_SECONDS = 24 * 3600
"""How often such builds are looked for: there may be thousands, and a design asks for a hundred."""
_SEARCHED = ".searched"


class BuildDirectoryError(UserError):
    """The folder for build output cannot be written."""


def code_of(*modules: ModuleType) -> list[str]:
    """The sources of modules, for the key of what they make."""
    return [Path(str(module.__file__)).read_text() for module in modules]


def build_root() -> Path:
    """The folder that holds all build output.

    `IRONBAND_SIM_BUILD` if set, else `sim_build/` of the checkout, else the user's cache folder (installed
    without a checkout).
    """
    if configured := os.environ.get(_ROOT_VARIABLE):
        return Path(configured).resolve()
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").exists():
        return checkout / "sim_build"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ironband"


def cached(kind: str, key: Mapping[str, object], fill: Callable[[Path], None]) -> Path:
    """The directory built from KEY, building it with FILL if nobody has yet.

    FILL gets an empty directory, which takes its final name only when FILL returns: an interrupted or failed
    build leaves nothing. Among processes that want the same key, one builds and the others wait for it.
    Builds that nobody has asked for in thirty days are removed when another of their kind is made, once a day.

    Args:
        kind: subfolder of the build root, such as `verilator`.
        key: all that decides the result, JSON-serializable: sources' text, options, versions of tools.
        fill: writes the build into the directory it is given.

    Raises:
        BuildDirectoryError: the build root cannot be written.
    """
    final = _place(kind, key)
    if _is_used(final):
        return final
    folder, digest = final.parent, final.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        locked = FileLock(folder / f".{digest}.lock").acquire()
    except OSError as error:
        raise BuildDirectoryError(f"cannot write build output in {folder}: {error.strerror}") from error
    with locked:
        if not final.is_dir():
            _fill_and_publish(final, folder / f".{digest}.part", fill)
            _prune(folder)
    return final


def find(kind: str, key: Mapping[str, object]) -> Path | None:
    """The directory that `cached` would return, None if nobody has built it yet."""
    final = _place(kind, key)
    return final if _is_used(final) else None


def _place(kind: str, key: Mapping[str, object]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:_DIGEST_DIGITS]
    return build_root() / kind / digest


def _is_used(build: Path) -> bool:
    """Whether there is such a build; from now on it counts as used today."""
    with suppress(OSError):
        try:
            os.utime(build)
        except (FileNotFoundError, NotADirectoryError):
            return False
    return build.is_dir()


def _prune(folder: Path) -> None:
    """Remove builds that nobody has asked for in a long time, but none that somebody is making."""
    searched = folder / _SEARCHED
    with suppress(FileNotFoundError):
        if time.time() - searched.stat().st_mtime < _SEARCH_SECONDS:
            return
    searched.touch()
    for build in folder.iterdir():
        if build.name.startswith(".") or not _is_stale(build):
            continue
        with suppress(Timeout), FileLock(folder / f".{build.name}.lock", blocking=False):
            if _is_stale(build):
                leaving = folder / f".{build.name}.part"
                build.rename(leaving)
                shutil.rmtree(leaving, ignore_errors=True)


def _is_stale(build: Path) -> bool:
    return build.is_dir() and time.time() - build.stat().st_mtime > _UNUSED_SECONDS


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
