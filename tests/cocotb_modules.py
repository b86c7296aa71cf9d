"""Modules of cocotb tests: which tests there are to run, each in a simulation of its own."""

from importlib import import_module

from cocotb.regression import Test, TestGenerator


def cocotb_tests(test_module: str) -> list[str]:
    """Names of the cocotb tests in a module."""
    found: list[str] = []
    for member in vars(import_module(test_module)).values():
        tests = member.generate_tests() if isinstance(member, TestGenerator) else [member]
        found += [test.name for test in tests if isinstance(test, Test)]
    return found
