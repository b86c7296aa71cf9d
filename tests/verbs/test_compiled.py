"""Transports compiled are the plain ones, only faster."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.compiled import CompiledPackage

pytestmark = pytest.mark.slow

HOUSE = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=HOUSE, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    assert CompiledPackage("verbs").build(), "mypyc is not installed"


def test_both_say_the_same_to_the_bit() -> None:
    plain, compiled = (run("tests.verbs.conversation_log", *form).stdout.split() for form in ((), ("compiled",)))
    assert (plain[0], compiled[0]) == ("py", "so")
    assert int(plain[1]) > 2_000
    assert plain[1:] == compiled[1:]


def test_what_is_said_of_transports_holds_for_them_compiled() -> None:
    said = run(
        "pytest", "-q", "-x", "-p", "cosim", "-p", "no:cacheprovider", "-m", "not deep and not slow", "tests/verbs"
    )
    assert said.returncode == 0, said.stdout[-2000:]


def test_a_room_that_is_in_use_stays_as_it_is() -> None:
    assert not CompiledPackage("verbs").take_place()
