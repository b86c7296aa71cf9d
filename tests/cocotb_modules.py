"""Modules of cocotb tests: which tests there are to run, each in a simulation of its own."""

from importlib.util import find_spec
from pathlib import Path

from cosim.simulators.cocotb_files import tests_of


def cocotb_tests(test_module: str) -> list[str]:
    """Names of the cocotb tests in a module."""
    found = find_spec(test_module)
    assert found is not None
    assert found.origin is not None
    return tests_of(Path(found.origin))
