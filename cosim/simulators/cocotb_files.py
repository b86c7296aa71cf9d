"""Files of cocotb tests, from anywhere: imported inside a simulator, and asked here which tests they have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from cocotb.regression import Test, TestGenerator

from toolchain.errors import UserError

__all__ = ["importable", "tests_of"]


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


def tests_of(file: Path) -> list[str]:
    """Names of the cocotb tests in a file.

    Raises:
        UserError: it has none, or it is no file of Python.
        What importing it raises.
    """
    with importable(file) as name:
        spec = spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        before = sys.modules.get(name)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[name]
            if before is not None:
                sys.modules[name] = before
    found: list[str] = []
    for member in vars(module).values():
        tests = member.generate_tests() if isinstance(member, TestGenerator) else [member]
        found += [test.name for test in tests if isinstance(test, Test)]
    if not found:
        raise UserError(f"{file}: has no cocotb test, expected functions marked @cocotb.test()")
    return found
