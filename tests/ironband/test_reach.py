"""`ironband reach`: its table and files, and what it refuses."""

import csv
import json
from pathlib import Path

import pytest

from ironband import main
from tests.ironband.command import one_line_error

SHORT = "--lengths", "1000,10", "--buffers", "128,64"


def test_the_table_the_file_and_the_json_say_the_same(capsys):
    assert main(["reach", *SHORT, "--json", "j"]) == 0
    output = capsys.readouterr().out
    assert "   1,000           12.38     0.171 0.171     0.514 0.514\n" in output
    assert "full throughput up to, m               0             409\n" in output
    assert "full throughput ends at 51,674 m at 1X and 12,914 m at 4X" in output
    assert sorted(path.name for path in Path("out/reach").iterdir()) == ["reach.csv", "reach.png", "reach.svg"]
    found = json.loads(Path("j").read_text())
    rows = list(csv.DictReader(Path("out/reach/reach.csv").read_text().splitlines()))
    places = [(point["length_m"], point["buffer_blocks"]) for point in found["points"]]
    assert places == [(10, 64), (10, 128), (1000, 64), (1000, 128)]
    assert [float(row["measured"]) for row in rows] == [point["measured"] for point in found["points"]]
    assert found["needs_blocks"] == {"10": 66, "1000": 198}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lengths", "10,0"], "'--lengths': 0.0 is not in the range 0<x<=52428.8"),
        (["--lengths", "far"], "'--lengths': 'far' is not a valid float range"),
        (["--buffers", "33"], "'--buffers': 33 is not in the range 34<=x<=4095"),
        (["--buffers", ""], "'--buffers': '' is not a valid integer range"),
        (["--width", "2X"], "'--width': '2X' is not one of"),
    ],
)
def test_bad_use_is_one_line_status_2_and_leaves_nothing_behind(capsys, arguments, message):
    assert message in one_line_error(capsys, "reach", *arguments)
    assert not list(Path().iterdir())
