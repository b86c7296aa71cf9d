"""Files of cocotb tests, from anywhere, which are imported inside a simulator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchain.errors import UserError

__all__ = ["importable"]


@contextmanager
def importable(file: Path) -> Iterator[str]:
    """While it lasts, simulators that are started import the file, by this name.

    Raises:
        UserError: it is no file of Python.
    """
    if file.suffix != ".py" or not file.is_file():
        raise UserError(f"{file}: expected a file of Python with cocotb tests")
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield file.stem
    finally:
        sys.path.remove(folder)
