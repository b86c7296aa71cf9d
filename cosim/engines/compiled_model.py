"""The golden model compiled: the sources in model/, through mypyc, three times as fast.

The model is plain Python and also runs so. Compiled, it is the same program in another package, built once for
these sources and found by them: a source that changed is not compiled yet.

    python -m cosim.engines.compiled_model      compiles it
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import shutil
import sys
from pathlib import Path
from typing import cast

import model.fabric
import wire
from toolchain.build_cache import cached, find
from toolchain.process import run_tool

__all__ = ["build", "fabric_class"]

_KIND = "model"
_PACKAGE = "ironband_model"
_SETTINGS = "[mypy]\nignore_missing_imports = True\nfollow_imports = silent\n"
_SETUP = """\
from setuptools import setup
from mypyc.build import mypycify
modules = mypycify({names}, opt_level="1", debug_level="0", separate={libraries})
setup(name={package!r}, ext_modules=modules, script_args=["build_ext", "--inplace", "--parallel={jobs}"])
"""
"""The C compiler takes twice the time for -O3, and the model is no faster."""

_SETUP_FILE = "setup.py"
_LIBRARIES = 4
"""Into which the modules go, compiled at the same time."""

_MODEL = Path(model.__file__).parent
_WIRE = Path(wire.__file__).parent


def build() -> bool:
    """Compile the model unless that has been done; False if mypyc is not installed, which is no harm.

    Raises:
        BuildFailed: mypyc or the C compiler failed.
        BuildDirectoryError: the build root cannot be written.
    """
    version = _mypyc_version()
    if version is None:
        return False
    cached(_KIND, _key(version), _compile)
    return True


def fabric_class() -> type[model.fabric.Fabric]:
    """`model.fabric.Fabric`, compiled if that has been built of these sources."""
    version = _mypyc_version()
    folder = find(_KIND, _key(version)) if version else None
    if folder is None:
        return model.fabric.Fabric
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return cast("type[model.fabric.Fabric]", importlib.import_module(f"{_PACKAGE}.fabric").Fabric)


def _mypyc_version() -> str | None:
    """The version of mypy, of which mypyc is a part; None if it is not installed."""
    try:
        return importlib.metadata.version("mypy")
    except importlib.metadata.PackageNotFoundError:
        return None


def _key(version: str) -> dict[str, object]:
    """What is compiled, and with what. Constants of wire/ are compiled in."""
    sources = {str(path.relative_to(_MODEL.parent)): path.read_text() for path in _sources()}
    return {
        "sources": sources,
        "settings": [_SETTINGS, _SETUP, _LIBRARIES],
        "mypyc": version,
        "python": sys.implementation.cache_tag,
    }


def _sources() -> list[Path]:
    return sorted([*_MODEL.rglob("*.py"), *_WIRE.glob("*.py")])


def _compile(folder: Path) -> None:
    sources = sorted(_MODEL.rglob("*.py"), key=lambda source: (source.stat().st_size, source.name))
    names = []
    for source in sources:
        copy = Path(_PACKAGE) / source.relative_to(_MODEL)
        (folder / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / copy)
        names.append(str(copy))
    libraries = [(names[first::_LIBRARIES], None) for first in range(_LIBRARIES)]
    setup = _SETUP.format(names=names, libraries=libraries, package=_PACKAGE, jobs=os.cpu_count() or 1)
    (folder / _SETUP_FILE).write_text(setup)
    (folder / "mypy.ini").write_text(_SETTINGS)
    above = str(_WIRE.parent)
    environment = {**os.environ, "MYPYPATH": above, "PYTHONPATH": above}
    run_tool([sys.executable, _SETUP_FILE], folder, environment)
    shutil.rmtree(folder / "build")
    shutil.rmtree(folder / ".mypy_cache", ignore_errors=True)


if __name__ == "__main__":
    sys.exit(None if build() else "mypyc is not installed: expected it with mypy")
