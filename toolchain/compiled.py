"""Packages of ours through mypyc: the same program in machine code, several times as fast.

They are plain Python and also run so. Compiled, they are built once for their sources and found by them: a source that
changed is not compiled yet. The constants of `wire` are compiled in.

    python -m toolchain.compiled ROOM...      compiles these rooms
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import shutil
import sys
from pathlib import Path

from toolchain.build_cache import cached, find
from toolchain.process import run_tool

__all__ = ["CompiledPackage"]

_SETTINGS = "[mypy]\nignore_missing_imports = True\nfollow_imports = silent\n"
_SETUP = """\
from setuptools import setup
from mypyc.build import mypycify
modules = mypycify({names}, opt_level="1", debug_level="0", separate={libraries})
setup(name={package!r}, ext_modules=modules, script_args=["build_ext", "--inplace", "--parallel={jobs}"])
"""
"""The C compiler takes twice the time for -O3, and nothing is faster."""

_SETUP_FILE = "setup.py"
_LIBRARIES = 4
"""Into which the modules go, compiled at the same time."""

_HOUSE = Path(__file__).resolve().parents[1]
_WIRE = _HOUSE / "wire"


class CompiledPackage:
    """A room of the house compiled, under another name if both are to be had at once."""

    def __init__(self, room: str, name: str | None = None) -> None:
        self.room = room
        self.name = name or room
        self._folder = _HOUSE / room

    def build(self) -> bool:
        """Compile it unless that has been done; False if mypyc is not installed, which is no harm.

        Raises:
            BuildFailed: mypyc or the C compiler failed.
            BuildDirectoryError: the build root cannot be written.
        """
        version = _mypyc_version()
        if version is None:
            return False
        cached(self.room, self._key(version), self._compile)
        return True

    def find(self) -> Path | None:
        """The folder above the compiled package; None if these sources have not been compiled."""
        version = _mypyc_version()
        return find(self.room, self._key(version)) if version else None

    def take_place(self) -> bool:
        """Let imports of the room find what is compiled from now on; False if it is not, or the room is in use."""
        in_use = any(name.startswith(f"{self.room}.") for name in sys.modules)
        folder = None if in_use else self.find()
        if folder is None:
            return False
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
        importlib.import_module(self.room).__path__.insert(0, str(folder / self.name))
        return True

    def _key(self, version: str) -> dict[str, object]:
        """What is compiled, and with what."""
        sources = sorted([*self._sources(), *_WIRE.glob("*.py")])
        return {
            "sources": {str(path.relative_to(_HOUSE)): path.read_text() for path in sources},
            "settings": [_SETTINGS, _SETUP, _LIBRARIES, self.name],
            "mypyc": version,
            "python": sys.implementation.cache_tag,
        }

    def _sources(self) -> list[Path]:
        return list(self._folder.rglob("*.py"))

    def _compile(self, folder: Path) -> None:
        names = []
        for source in sorted(self._sources(), key=lambda source: (source.stat().st_size, source.name)):
            copy = Path(self.name) / source.relative_to(self._folder)
            (folder / copy).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / copy)
            names.append(str(copy))
        libraries = [(names[first::_LIBRARIES], None) for first in range(_LIBRARIES)]
        setup = _SETUP.format(names=names, libraries=libraries, package=self.name, jobs=os.cpu_count() or 1)
        (folder / _SETUP_FILE).write_text(setup)
        (folder / "mypy.ini").write_text(_SETTINGS)
        environment = {**os.environ, "MYPYPATH": str(_HOUSE), "PYTHONPATH": str(_HOUSE)}
        run_tool([sys.executable, _SETUP_FILE], folder, environment)
        shutil.rmtree(folder / "build")
        shutil.rmtree(folder / ".mypy_cache", ignore_errors=True)


def _mypyc_version() -> str | None:
    """The version of mypy, of which mypyc is a part; None if it is not installed."""
    try:
        return importlib.metadata.version("mypy")
    except importlib.metadata.PackageNotFoundError:
        return None


def _main(rooms: list[str]) -> str | None:
    if not all(CompiledPackage(room).build() for room in rooms):
        return "mypyc is not installed: expected it with mypy"
    return None


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
