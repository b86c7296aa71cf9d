"""The preloaded library, compiled once for its source.

python -m doors.shim      compiles it
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from toolchain.build_cache import cached
from toolchain.errors import UserError
from toolchain.process import run_tool

__all__ = ["NoCompiler", "build_shim"]

_SOURCE: Final = Path(__file__).with_suffix(".c")
_LIBRARY: Final = "libironband-shim.so"
_OPTIONS: Final = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")


class NoCompiler(UserError):
    """There is no C compiler."""


def build_shim() -> Path:
    """The library's file, compiled unless that has been done.

    Raises:
        NoCompiler: there is none.
        BuildFailed: it refused the source.
        BuildDirectoryError: the build root cannot be written.
    """
    compiler = shutil.which("gcc")
    if compiler is None:
        raise NoCompiler("no gcc: expected it for the library that programs are run with (Debian: gcc)")
    source = _SOURCE.read_text()

    def compile_into(folder: Path) -> None:
        (folder / _SOURCE.name).write_text(source)
        command = [compiler, *_OPTIONS, "-o", _LIBRARY, _SOURCE.name, "-ldl"]
        run_tool(command, folder, {"PATH": "/usr/bin:/bin"})

    return cached("shim", {"source": source, "options": _OPTIONS}, compile_into) / _LIBRARY


if __name__ == "__main__":
    build_shim()
