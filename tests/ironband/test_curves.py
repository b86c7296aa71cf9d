"""`ironband curves`: what it says and draws, and what it refuses."""

from pathlib import Path

import pytest

from ironband import main
from tests.ironband.command import one_line_error


def test_curves_are_measured_and_drawn(capsys):
    assert main(["curves", "--sim", "model", "--ports", "3", "--cycles", "4000", "--loads", "0.5,1", "--out", "c"]) == 0
    output = capsys.readouterr().out
    assert "VOQ, golden model" in output
    assert "wrote c/throughput.png" in output
    assert sorted(path.name for path in Path("c").iterdir()) == ["throughput.png", "throughput.svg"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curves", "--loads", "0.5,2"], "Invalid value for '--loads': 2 is not in the range 0<x<=1."),
        (["curves", "--loads", "a"], "Invalid value for '--loads': 'a': expected numbers with commas between them"),
    ],
)
def test_bad_use_is_one_line_and_status_2(capsys, arguments, message):
    assert message in one_line_error(capsys, *arguments)
