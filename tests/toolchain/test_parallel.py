"""Calls in processes of their own: at the same time, with all that they give and raise, and none outlives us."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from cosim.simulators import installed
from toolchain.parallel import in_parallel

MEET = """\
import pathlib, sys, time
mine, other = map(pathlib.Path, sys.argv[1:])
mine.touch()
while not other.exists():
    time.sleep(0.01)
"""
SLEEP = """\
import os, pathlib, sys, time
part = pathlib.Path(sys.argv[1] + ".part")
part.write_text(str(os.getpid()))
part.rename(sys.argv[1])
time.sleep(100)
"""


def script(text: str, *arguments: Path) -> partial:
    return partial(subprocess.run, [sys.executable, "-c", text, *map(str, arguments)], check=True, timeout=50)


def test_results_come_in_the_order_of_the_calls() -> None:
    with in_parallel([partial(pow, 2, exponent) for exponent in range(3)]) as results:
        assert results() == [1, 2, 4]


def test_no_calls_have_no_results() -> None:
    with in_parallel([]) as results:
        assert results() == []


def test_calls_run_at_the_same_time(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with in_parallel([script(MEET, one, other), script(MEET, other, one)]) as results:
        assert [result.returncode for result in results()] == [0, 0]


def test_what_a_call_raises_is_raised_here_and_tells_where_from() -> None:
    with (
        in_parallel([partial(pow, 2, 3), partial(int, "two")]) as results,
        pytest.raises(ValueError, match="'two'") as raised,
    ):
        results()
    assert any("_main" in note for note in raised.value.__notes__)


def test_missing_simulator_is_told_as_if_it_was_missed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with (
        in_parallel([partial(installed.require, "verilator")]) as results,
        pytest.raises(installed.SimulatorMissing, match=r"verilator cannot run: make is missing, .* package `make`"),
    ):
        results()


def test_process_that_dies_is_an_error() -> None:
    with in_parallel([partial(os._exit, 3)]) as results, pytest.raises(RuntimeError, match="died"):
        results()


def test_nothing_runs_when_the_block_is_left(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    with in_parallel([script(SLEEP, place)]):
        while not place.exists():
            time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.kill(int(place.read_text()), 0)
        pytest.fail("a process outlives the block")
