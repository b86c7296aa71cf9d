"""The examples run, and what docs/library.md shows of them is what happens."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ironband.campaign.campaign_file import read_campaign

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


def test_a_page_shows_a_whole_campaign_and_how_many_runs_each_is():
    page = (ROOT / "docs/campaign.md").read_text()
    assert f"```toml\n{(ROOT / 'examples/campaign.toml').read_text()}```\n" in page
    for name in ("campaign.toml", "coverage.toml"):
        kinds = Counter(run.kind for run in read_campaign(ROOT / "examples" / name).runs)
        for kind, count in kinds.items():
            assert f"\n{kind:<8}{count:>8}{count:>13}" in page


COCOTB = ("cocotb_two_hosts.py", "cocotb_open_port.py", "counted_switch/cocotb_counted_switch.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "simulator"),
    [
        ("cocotb_two_hosts.py", "icarus"),
        ("cocotb_open_port.py", "icarus"),
        ("counted_switch/cocotb_counted_switch.py", "icarus"),
        # That tests run on Verilator, those say that are written for it (tests/ironband/test_cocotb_tests.py).
        pytest.param("cocotb_two_hosts.py", "verilator", marks=pytest.mark.deep),
        pytest.param("cocotb_open_port.py", "verilator", marks=pytest.mark.deep),
        pytest.param("counted_switch/cocotb_counted_switch.py", "verilator", marks=pytest.mark.deep),
    ],
)
def test_cocotb_tests_pass_in_the_time_that_is_shown_on_every_simulator(name, simulator):
    shown = printed(name, simulator).replace("verilator", "icarus")
    assert f"```\n$ .venv/bin/python examples/{name}\n{shown}```\n" in PAGE


@pytest.mark.parametrize(("name", "which"), list(zip(COCOTB, (0, 1, 0), strict=True)))
def test_the_page_shows_a_cocotb_test_of_each(name, which):
    tests = [
        part for part in (ROOT / "examples" / name).read_text().split("\n\n\n") if part.startswith("@cocotb.test()")
    ]
    assert f"```python\n{tests[which]}\n```\n" in PAGE
