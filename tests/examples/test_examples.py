"""The examples run, and what docs/library.md shows of them is what happens."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/library.md").read_text()


def printed(name: str, *arguments: str) -> str:
    """What an example prints."""
    command = [sys.executable, f"examples/{name}", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=550)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def test_two_hosts_on_the_model_print_what_is_shown():
    assert f"```\n$ .venv/bin/python examples/two_hosts.py\n{printed('two_hosts.py')}```\n" in PAGE


@pytest.mark.slow
def test_two_hosts_on_rtl_print_the_same_and_how_much_was_compared():
    *same, compared = printed("two_hosts.py", "verilator").splitlines(keepends=True)
    assert "".join(same) == printed("two_hosts.py")
    assert f"```\n{compared}```\n" in PAGE


def test_the_page_shows_the_whole_example():
    assert f"```python\n{(ROOT / 'examples/two_hosts.py').read_text()}```\n" in PAGE


@pytest.mark.slow
@pytest.mark.parametrize("simulator", ["icarus", "verilator"])
def test_a_design_around_an_exported_switch_passes_its_tests_in_the_time_that_is_shown(simulator):
    command = "counted_switch/cocotb_counted_switch.py"
    shown = printed(command, simulator).replace("verilator", "icarus")
    assert f"```\n$ .venv/bin/python examples/{command}\n{shown}```\n" in PAGE


def test_the_page_shows_a_cocotb_test_of_it():
    tests = (ROOT / "examples/counted_switch/cocotb_counted_switch.py").read_text().split("\n\n\n")
    first = next(part for part in tests if part.startswith("@cocotb.test()"))
    assert f"```python\n{first}\n```\n" in PAGE
